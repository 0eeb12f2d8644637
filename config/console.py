"""How the console looks and what its side bar offers: the theme's settings."""

from collections.abc import Callable
from typing import Any

from django.apps import apps
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy

Shown = Callable[[HttpRequest], bool]


def _opens(page: str) -> Shown:
    """Tell whether this person may open the list: the page itself is asked."""
    app, model, _ = page.split("_")

    def shown(request: HttpRequest) -> bool:
        from factory.console.site import site

        return bool(site._registry[apps.get_model(app, model)].has_view_permission(request))

    return shown


def _may(operation: str) -> Shown:
    """Tell whether this person may do something, for a page that is no list."""

    def shown(request: HttpRequest) -> bool:
        from factory.kernel.permissions import may

        ctx = getattr(request, "context", None)
        return ctx is not None and may(ctx, operation)

    return shown


def _entry(title: str, icon: str, page: str, counts: str = "", *, parts: str = "") -> dict[str, Any]:
    """A list; `counts` names the number that stands beside it, as the apps declare them.

    `parts` is a list without an entry of its own, of what belongs to the things of this one.
    """
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"admin:{page}"),
        "permission": _opens(page),
        "counts": counts,
        "also": reverse_lazy(f"admin:{parts}") if parts else "",
    }


def _group(title: str, *items: dict[str, Any]) -> dict[str, Any]:
    return {"title": title, "separator": False, "items": list(items)}


def console(navigation: list[dict[str, Any]]) -> dict[str, Any]:
    """UNFOLD: violet means an action, grey everything else; a state's colour always comes with its word."""
    return {
        "SITE_TITLE": "Factory Control Plane",
        "SITE_HEADER": "Factory Control Plane",
        "SITE_SYMBOL": "verified",
        "SITE_FAVICONS": [
            {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("factory/icon.svg")}
        ],
        "SITE_URL": None,
        "SHOW_HISTORY": False,
        "SHOW_VIEW_ON_SITE": False,
        "SHOW_BACK_BUTTON": False,
        "STYLES": [lambda request: static("factory/console.css")],
        "SCRIPTS": [
            lambda request: static("factory/console.js"),
            lambda request: static("factory/shortcuts.js"),
        ],
        "SIDEBAR": {"show_search": False, "show_all_applications": False, "navigation": navigation},
        "COLORS": {
            "primary": {
                "50": "#f5f3ff", "100": "#ede9fe", "200": "#ddd6fe", "300": "#c4b5fd", "400": "#a78bfa",
                "500": "#8b5cf6", "600": "#6d28d9", "700": "#5b21b6", "800": "#4c1d95", "900": "#3b1578",
                "950": "#2e1065",
            }
        },
    }  # fmt: skip


HOME = {"title": "First page", "icon": "home", "link": reverse_lazy("admin:index")}


NAVIGATION = [
    _group(
        "Work",
        HOME,
        _entry("Approvals", "inbox", "approvals_approvalrequest_changelist", "approvals"),
        _entry("Runs", "play_circle", "runs_run_changelist"),
        _entry("Run templates", "content_copy", "runs_runtemplate_changelist"),
        _entry("Uncertain attempts", "help", "runs_step_changelist", "uncertain"),
        _entry("Open leases", "timer", "runs_lease_changelist"),
        {
            "title": "My notifications",
            "icon": "notifications",
            "link": reverse_lazy("admin:notifications_mine"),
            "permission": _may("ReadOwnNotifications"),
        },
    ),
    _group(
        "Assets",
        _entry("Assets", "category", "registry_asset_changelist"),
        _entry("Releases", "deployed_code", "registry_release_changelist"),
        _entry("Aliases", "sell", "registry_alias_changelist", parts="registry_aliasmove_changelist"),
        _entry("Evaluations", "fact_check", "registry_evaluationrecord_changelist"),
        _entry("Policy", "shield", "approvals_policyrevision_changelist"),
        _entry("Waivers", "verified", "approvals_waiver_changelist"),
    ),
    _group(
        "Money",
        _entry("Budgets", "savings", "usage_budget_changelist", parts="usage_ledgerentry_changelist"),
        {
            "title": "Usage explorer",
            "icon": "query_stats",
            "link": reverse_lazy("admin:usage_explorer"),
            "permission": _opens("usage_usagerecord_changelist"),
        },
        _entry("Usage", "monitoring", "usage_usagerecord_changelist"),
        _entry("Refused receipts", "receipt_long_off", "runs_refusedreceipt_changelist"),
        _entry("Reservations", "lock_clock", "usage_reservation_changelist"),
        _entry("Prices", "sell", "usage_pricingrevision_changelist"),
    ),
    _group(
        "Tenant",
        _entry("Workers", "dns", "runs_worker_changelist"),
        _entry("Projects", "folder", "projects_project_changelist"),
        _entry("Environments", "lan", "projects_environment_changelist"),
        _entry("Settings", "tune", "factory_setting_changelist"),
        _entry("Members", "group", "projects_membership_changelist"),
        _entry("Delegations", "handshake", "projects_delegation_changelist"),
        _entry("Service accounts", "smart_toy", "projects_serviceaccount_changelist"),
        _entry("Webhooks", "webhook", "factory_webhooksubscription_changelist"),
        _entry("Revoked tokens", "key_off", "factory_revokedtoken_changelist"),
    ),
    _group(
        "Evidence",
        _entry("Journal", "link", "factory_journalentry_changelist"),
        _entry("Audit log", "visibility", "factory_auditentry_changelist"),
        _entry("Events", "bolt", "factory_outboxevent_changelist"),
        _entry("Verifications", "verified_user", "factory_verification_changelist"),
        _entry("Findings", "report", "factory_finding_changelist"),
        {
            "title": "Consumers",
            "icon": "move_to_inbox",
            "link": reverse_lazy("admin:factory_consumers"),
            "permission": _may("ListConsumers"),
            "counts": "set aside",
        },
        _entry("Notifications", "outgoing_mail", "notifications_notification_changelist"),
    ),
]
