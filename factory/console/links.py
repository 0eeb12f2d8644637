"""The way from a name in the evidence to the page of what it names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from factory.console.show import link, seen, short

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


@dataclass(frozen=True, slots=True)
class Reference:
    """A thing that evidence names: in words with all of its id, and on pages with the end of it and a link.

    The page of a step is that of its `run`; `url` is that of what has none of its own.
    """

    kind: str
    key: Any
    run: Any = None
    called: str = ""
    url: str = ""

    def __str__(self) -> str:
        return f"{self._prefix} {self.called or self.key}"

    def __html__(self) -> str:
        words = format_html("{} {}", self._prefix, seen(self.called) if self.called else short(self.key))
        return link(self.url, words) if self.url else self._linked(words)

    @property
    def _prefix(self) -> str:
        kind = self.kind.replace("-", " ")
        return BY_NAME.get(self.kind, kind) if self.called else kind

    def _linked(self, words: SafeString) -> SafeString:
        page, at = PAGES.get(self.kind), self.key
        if self.kind in IN_A_RUN and self.run is not None:
            page, at = PAGES["run"], self.run
        return link(reverse(f"admin:{page}_change", args=[at]), words) if page else words


def named(subject: str, *, called: str = "") -> Reference | str:
    """Return what an audit entry is about: `kind:key` in words, or as it is `called`."""
    kind, _, key = subject.partition(":")
    if kind == "alias" and "/" in key:  # the audit log calls it by its names: the list finds it by them
        words = key.replace("/", " ", 1)
        url = f"{reverse('admin:registry_alias_changelist')}?{urlencode({'q': words})}"
        return Reference(kind, key, called=words, url=url)
    if kind in KINDS and key:
        return Reference(kind, key, called=called) if len(key) == 36 else f"{kind} {key}"
    return subject


Names = Callable[[Sequence[UUID]], Mapping[UUID, str]]
_names: dict[str, Names] = {}


def names(kind: str) -> Callable[[Names], Names]:
    """Declare how things of a kind are called: for pages of apps that cannot ask the one that knows."""

    def declare(find: Names) -> Names:
        _names[kind] = find
        return find

    return declare


def names_of(kind: str, keys: Sequence[UUID]) -> Mapping[UUID, str]:
    """Return what these things are called; one that is not there, or is another's, is not in it."""
    return _names[kind](keys) if keys and kind in _names else {}
