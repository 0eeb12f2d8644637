"""What a message says: a subject line, and plain text with one link that leads to a page.

Nothing that a worker or a decider wrote stands in it, and names are reduced to what a name is made of: a mail
program makes a link of any text that looks like one, and a chat wakes everybody for the right word.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse

from approvals.selectors import ApprovalView
from approvals.states import ApprovalState, OnExpiry, SubjectType
from factory.identity.accounts import link_hours, sign_in_link
from factory.kernel.models import User
from notifications.states import Kind

LONGEST_NAME = 120
_STRANGE = re.compile(r"[^\w .@:,+/-]|(?<!\w)@|@(?!\w)|://|_{2,}")


@dataclass(frozen=True, slots=True)
class Message:
    title: str
    body: str


def name(text: object) -> str:
    """Return a name for a line of text: no controls or line breaks, nor marks that a program acts upon."""
    return " ".join(_STRANGE.sub(" ", str(text or "")).split())[:LONGEST_NAME]


def format_time(at: datetime | None) -> str:
    return at.astimezone(UTC).strftime("%d %b %Y %H:%M UTC") if at else "–"


def message(kind: str, view: ApprovalView | None) -> Message:
    """Return the message about a request as it is now."""
    if view is None:
        return Message(
            "Factory: a test",
            "You asked for this message. It says nothing but that it arrived.\n\n" + _foot(mine_link()),
        )
    title, lead = _WRITERS[Kind(kind)](view)
    facts = "\n".join(f"{label}: {value}" for label, value in _facts(view))
    do = ", and decide there" if kind in (Kind.REQUESTED, Kind.EXPIRING) else ""
    look = f"See exactly what it is about{do}:\n{request_link(view)}"
    return Message(f"Factory: {title}", "\n\n".join((lead, facts, look, _foot(mine_link()))))


def sign_in_message(account: User) -> Message:
    """Return the mail with the link by which somebody sets their password; only its reader may have it."""
    lines = (
        f"You have been made a member at {settings.FACTORY_PUBLIC_URL}, or asked for a new password there.",
        f"With this link, good once and for {link_hours()} hours, you set the password with which you "
        f"sign in as {account.email}:",
        sign_in_link(account),
        "If you expect nothing of the kind, leave it: without the link nothing changes.\n",
    )
    return Message("Factory: set your password", "\n\n".join(lines))


def ending_budget(month: date, project: str) -> Message:
    """Return what is told of a month that no budget covers."""
    where, whole = (f"in {name(project)}", "") if project else ("in the whole tenant", " of the whole tenant")
    but = "" if project else " in a project without a budget of its own"
    return Message(
        f"Factory: no budget{whole} covers {month:%B %Y} yet, {where}",
        f"From {month:%d %b %Y}, 00:00 UTC, no run can start {where}{but}, unless a budget is opened until "
        "then. You may open one; it can recur, so that the next months open by themselves.\n\n"
        f"The first page leads to it:\n{settings.FACTORY_PUBLIC_URL}{reverse('admin:index')}\n\n"
        + _foot(mine_link()),
    )


def request_link(view: ApprovalView) -> str:
    """Return the page that leads on to the request, in whatever place the reader stands."""
    query = urlencode({"in": f"{view.tenant_id}/{view.project_id or ''}"})
    return f"{settings.FACTORY_PUBLIC_URL}{reverse('admin:notifications_open', args=[view.id])}?{query}"


def mine_link() -> str:
    return f"{settings.FACTORY_PUBLIC_URL}{reverse('admin:notifications_mine')}"


def _foot(link: str) -> str:
    return (
        "-- \nThis message decides nothing, and neither does opening its link. "
        f"What you are told, and how, you choose here:\n{link}\n"
    )


def _what(view: ApprovalView) -> str:
    """Return the request in the product's own words."""
    where = "/".join(name(part) for part in (view.project, view.environment) if part)
    of = {
        SubjectType.SPEND: "the money of a run",
        SubjectType.PUBLICATION: "a publication",
        SubjectType.WAIVER: "a waiver, which approves shared writes in advance",
    }
    what = of.get(SubjectType(view.subject_type), f"an action of class {view.action_class}")
    return f"{what} in {where}" if where else what


def _facts(view: ApprovalView) -> list[tuple[str, str]]:
    facts = [
        ("Request", str(view.id)),
        ("Class", view.action_class),
        ("Asked by", name(view.requested_by)),
        ("Asked", format_time(view.requested_at)),
    ]
    facts += [("Run", str(view.run_id))] if view.run_id else []
    if view.is_pending:
        return [*facts, ("Decided by", _deciders(view)), ("Ends", format_time(view.expires_at))]
    return [*facts, ("State", view.state), ("Closed", format_time(view.closed_at))]


def _deciders(view: ApprovalView) -> str:
    """Return the rule's roles in words; which rules of the policy said so stands on the page."""
    many = f"{view.quorum} people, each " if view.quorum > 1 else ""
    who = " or ".join(view.approver_roles) or "nobody, as the rules stand,"
    return f"{many}{who} of the project, never whoever asked for it"


def _requested(view: ApprovalView) -> tuple[str, str]:
    again = "once more" if view.renews else "waiting for a decision"
    votes = f" It needs {view.quorum} people." if view.quorum > 1 else ""
    return (
        f"{again}: {_what(view)}, until {format_time(view.expires_at)}",
        f"A request waits that you may decide: {_what(view)}.{votes} {_at_its_end(view)}",
    )


def _expiring(view: ApprovalView) -> tuple[str, str]:
    return (
        f"ends {format_time(view.expires_at)}: {_what(view)}",
        f"A quarter of its time is left: {_what(view)}. You may still decide. {_at_its_end(view)}",
    )


def _at_its_end(view: ApprovalView) -> str:
    again = view.on_expiry == OnExpiry.RE_REQUEST and view.renews is None
    after = "is asked once more" if again else "ends without a yes"
    return f"If nobody answers until {format_time(view.expires_at)}, it {after}."


def _decided(view: ApprovalView) -> tuple[str, str]:
    if view.state == ApprovalState.EXPIRED:
        return f"nobody answered: {_what(view)}", f"Nobody decided in time on {_what(view)}."
    word = "sent back" if view.sent_back else str(view.state).lower()
    by = name(view.decided_by)
    for_whom = f", for {name(view.decided_for)}" if view.decided_for else ""
    glass = " by break-glass" if view.break_glass else ""
    return f"{word}: {_what(view)}", f"{by}{for_whom} decided{glass} on {_what(view)}: {word}."


def _break_glass(view: ApprovalView) -> tuple[str, str]:
    word = str(view.state).lower()
    return (
        f"decided past you, {word}: {_what(view)}",
        f"{name(view.decided_by)} decided outside the rule on {_what(view)}, which you could have decided. "
        "The reason stands on its page.",
    )


def _too_few(view: ApprovalView) -> tuple[str, str]:
    if view.names_nobody:
        return (
            f"nobody can decide: {_what(view)}",
            f"A request was opened that no member can decide: {_what(view)}. The rules and the node name no "
            "role in common, and a newer policy does not change that: a PlatformAdmin decides outside the "
            f"rule, or the run is cancelled. {_at_its_end(view)}",
        )
    return (
        f"too few can decide: {_what(view)}",
        f"A request was opened that too few people can decide: {_what(view)}. A workspace admin can add one, "
        f"or a PlatformAdmin decides outside the rule. {_at_its_end(view)}",
    )


_WRITERS: dict[Kind, Callable[[ApprovalView], tuple[str, str]]] = {
    Kind.REQUESTED: _requested,
    Kind.EXPIRING: _expiring,
    Kind.DECIDED: _decided,
    Kind.BREAK_GLASS: _break_glass,
    Kind.TOO_FEW: _too_few,
}
