"""The way from a name in the evidence to the page of what it names."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from factory.console.show import seen, short

PAGES = {
    "run": "runs_run",
    "run-template": "runs_runtemplate",
    "worker": "runs_worker",
    "approval": "approvals_approvalrequest",
    "policy-revision": "approvals_policyrevision",
    "waiver": "approvals_waiver",
    "release": "registry_release",
    "alias": "registry_alias",
    "budget": "usage_budget",
    "reservation": "usage_reservation",
    "usage-record": "usage_usagerecord",
    "pricing-revision": "usage_pricingrevision",
    "project": "projects_project",
    "membership": "projects_membership",
    "environment": "projects_environment",
    "delegation": "projects_delegation",
    "service-account": "projects_serviceaccount",
    "webhook": "factory_webhooksubscription",
    "event": "factory_outboxevent",
    "notification": "notifications_notification",
}
BY_NAME = {"policy-revision": "policy"}
"""What stands before the name of a thing, where that is not its kind: policy r2."""
IN_A_RUN = ("step", "attempt", "lease")
KINDS = (*PAGES, *IN_A_RUN, "door", "channel", "pool", "service",
         "setting", "subject", "system", "tenant", "token")  # fmt: skip
"""What the audit log speaks of, as `kind:key`."""


def thing(kind: str, key: Any, run: Any = None, *, called: str = "") -> SafeString:
    """A thing in words, as it is `called` or with the end of its id, and a link to its page: a step's is that
    of its run."""
    page, at = PAGES.get(kind), key
    if kind in IN_A_RUN and run is not None:
        page, at = PAGES["run"], run
    words = format_html("{} {}", kind.replace("-", " "), short(key))
    if called:
        words = format_html("{} {}", BY_NAME.get(kind, kind.replace("-", " ")), seen(called))
    if page is None:
        return words
    return format_html(
        '<a class="fc-link" href="{}">{}</a>', reverse(f"admin:{page}_change", args=[at]), words
    )


def named(subject: str, *, called: str = "") -> SafeString:
    """What an audit entry is about: `kind:key` in words, or as it is `called`."""
    kind, _, key = subject.partition(":")
    if kind == "alias" and "/" in key:
        return _alias(*key.split("/", 1))
    if kind in KINDS and key:
        return thing(kind, key, called=called) if len(key) == 36 else format_html("{} {}", kind, seen(key))
    return format_html("{}", seen(subject))


def _alias(asset: str, name: str) -> SafeString:
    """An alias, which the audit log calls by its names: the list finds it by them."""
    where = f"{reverse('admin:registry_alias_changelist')}?{urlencode({'q': f'{asset} {name}'})}"
    return format_html('<a class="fc-link" href="{}">alias {} {}</a>', where, seen(asset), seen(name))


Names = Callable[[Sequence[UUID]], Mapping[UUID, str]]
_names: dict[str, Names] = {}


def names(kind: str) -> Callable[[Names], Names]:
    """Declare how things of a kind are called: for pages of apps that cannot ask the one that knows."""

    def declare(find: Names) -> Names:
        _names[kind] = find
        return find

    return declare


def names_of(kind: str, keys: Sequence[UUID]) -> Mapping[UUID, str]:
    """What these things are called; one that is not there, or is another's, is not in it."""
    return _names[kind](keys) if keys and kind in _names else {}
