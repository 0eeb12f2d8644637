"""Every page of the console: what the browser tests walk, and the gallery shows."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from django.db.models import Model
from django.urls import reverse

import config.urls  # noqa: F401 - it is what registers the pages
from approvals.states import ApprovalState
from factory.console.site import site
from factory.kernel.context import Context
from factory.kernel.tenancy import reading
from projects.states import MembershipState
from runs.states import LEASE_CURRENT
from tests.browser.visitor import Visitor

MODELS = sorted(site._registry, key=lambda model: model._meta.label)

NAMED = (
    "index", "notifications_mine", "factory_consumers", "approvals_policy_explain",
    "approvals_policy_compare", "approvals_policy_publish", "factory_webhook_new", "projects_revoke_token",
    "runs_new_template", "usage_explorer", "usage_new_budget",
)  # fmt: skip
"""Pages that are of no row."""

WIDE = ("projects_onboard", "projects_add_wide_member")
"""Of no row either, and for administrators of the whole tenant who have chosen it in the header."""

SEVERAL = {
    "runs.run": "/admin/runs/run/",
    "approvals.approvalrequest": "/admin/approvals/approvalrequest/?whose=all",
}
"""Lists of which several rows can be acted on at once."""

ASKED = {"approvals_policy_explain": {"class": "production", "environment": "production"}}
"""Of these, what they answer as well: the query of a form that was sent."""

OF_A_ROW: dict[str, tuple[str, ...]] = {
    "approvals.approvalrequest": ("approvals_break_glass",),
    "approvals.waiver": ("approvals_revoke_waiver",),
    "projects.project": (
        "projects_suspend", "projects_kill", "projects_add_member", "projects_add_environment",
        "projects_register_account",
    ),
    "projects.membership": ("projects_change_member", "projects_remove_member"),
    "projects.delegation": ("projects_revoke_delegation",),
    "projects.serviceaccount": ("projects_revoke_account",),
    "registry.release": ("registry_deprecate", "registry_revoke", "registry_point_alias"),
    "runs.run": ("runs_again",),
    "runs.runtemplate": ("runs_from_template", "runs_request_waiver", "runs_retire_template"),
    "runs.worker": ("runs_revoke_worker",),
    "usage.budget": ("usage_budget_amount",),
}  # fmt: skip
"""Pages of one row besides its own, by the kind of the row."""

STATES = {
    "approvals.approvalrequest": tuple(ApprovalState),
    "projects.membership": tuple(MembershipState),
}
"""Kinds whose pages differ so much by state that one of each is looked at."""


ACTED_ON = {"runs.run": "Completed", "registry.release": "Published", "projects.membership": "Active"}
"""Kinds of which not every row has these acts: in which state one does."""


def pages(ctx: Context) -> Iterator[tuple[str, str]]:
    """A name and an address for each page: lists, the newest row of each kind, and what is done about it."""
    for name in NAMED:
        yield name, reverse(f"admin:{name}")
        if name in ASKED:
            yield f"{name} answered", f"{reverse(f'admin:{name}')}?{urlencode(ASKED[name])}"
    for model in MODELS:
        label = model._meta.label_lower
        page = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        yield f"{label} list", reverse(f"{page}_changelist")
        for word, key in _rows(ctx, model, label):
            if label != "runs.step":
                yield f"{label} {word}".strip(), reverse(f"{page}_change", args=[key])
            if word == ACTED_ON.get(label, ""):
                for act in OF_A_ROW.get(label, ()):
                    yield f"{label} {act}", reverse(f"admin:{act}", args=[key])


def wide_pages() -> Iterator[tuple[str, str]]:
    """Those that only an administrator of the whole tenant can open, who has chosen it in the header."""
    yield from ((name, reverse(f"admin:{name}")) for name in WIDE)


def several_pages(visitor: Visitor) -> Iterator[tuple[str, str]]:
    """Those of several rows, which are kept for who chose them: all that a list shows, for each act there."""
    for page, path in SEVERAL.items():
        answer = visitor.open(path)
        if answer is None or answer.status != 200:
            continue
        acts = visitor.page.locator("#chosen-act option:not([value=''])")
        for act in acts.evaluate_all("found => found.map(each => each.value)"):
            visitor.open(path)
            visitor.page.get_by_role("button", name="Choose all of this page").click()
            visitor.page.locator("#chosen-act").select_option(act)
            with visitor.page.expect_navigation():
                visitor.page.get_by_role("button", name="Go on").click()
            yield f"{page} {act}", visitor.page.url.removeprefix(visitor.web)


def _rows(ctx: Context, model: type[Model], label: str) -> list[tuple[str, Any]]:
    """The newest row, and the newest in each of its states where that matters."""
    with reading(ctx):
        rows: Any = model._default_manager.order_by("-pk")
        if label == "runs.worker":
            rows = rows.filter(pool__tenants__contains=[ctx.tenant_id])
        if label == "usage.budget":  # the tenant's is changed from the whole tenant alone
            rows = rows.filter(project_id=ctx.project_id)
        if label == "runs.lease":
            rows = rows.filter(state__in=sorted(LEASE_CURRENT))  # the page is of what workers hold now
        found = [("", key) for key in rows.values_list("pk", flat=True)[:1]]
        states = STATES.get(label) or _states(model)
        for state in states:
            found += [(state, key) for key in rows.filter(state=state).values_list("pk", flat=True)[:1]]
    return found


def _states(model: type[Model]) -> tuple[str, ...]:
    lifecycle = getattr(model, "lifecycle", None)
    return tuple(sorted(lifecycle.states)) if lifecycle and model._meta.label_lower in _SHOWN else ()


_SHOWN = ("runs.run", "registry.release")
