"""Pages on which somebody becomes a member, is given other roles, or ceases to be one."""

from collections.abc import Sequence
from datetime import UTC

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.defaultfilters import pluralize
from django.urls import reverse

from factory.console.confirming import ChoiceField, Confirmation, act_on
from factory.console.scope import context_of
from factory.console.settings import whole
from factory.console.show import seen
from factory.kernel.addresses import is_address
from factory.kernel.context import Context
from factory.kernel.errors import VersionMismatch
from factory.kernel.models import JournalEntry
from factory.kernel.tenancy import reading
from projects.admin.actions.end_membership import YOURSELF, after, ends_with, loans_lost, place_of
from projects.admin.detail.labels import grant_options, role_options
from projects.commands import add_member, change_member, remove_member
from projects.commands.inputs import MOST_EMAIL, NewMember, ordered
from projects.commands.reach import left_to_platform, roles_in_reach, why_last
from projects.models import Membership, Project
from projects.states import OF_MACHINES, ROLES, MembershipState, SubjectKind

NO_ROLE = ("",)
"""A member who stays one, and holds none of the roles that there are."""
WHO = ChoiceField(
    "subject",
    "Who",
    help="Mostly their e-mail address, by which they sign in here, and an issuer that has verified it knows "
    "them; or what an issuer calls them, exactly. Of a machine its subject, such as service:acme:ci: "
    "register it first.",
)
NAME = ChoiceField("displayName", "What people call them", optional=True, help="In lists and on decisions.")
EMAIL = ChoiceField(
    "email", "Where mail reaches them", optional=True, help="Left empty: the address above, if it is one."
)


def roles_field(roles: Sequence[str], chosen: Sequence[str] = (), *, wide: bool) -> ChoiceField:
    """The roles that may be given here, each with what it lets do in that place."""
    told = "At least one. Each also lets them look."
    return ChoiceField("roles", "Roles", role_options(roles, wide=wide), told, tuple(chosen), many=True)


def grants_field(chosen: Sequence[str] = (), *, wide: bool) -> ChoiceField:
    return ChoiceField(
        "grants",
        "Grants beside them",
        grant_options(wide=wide),
        "None is needed; some open what no role opens.",
        tuple(chosen),
        many=True,
        optional=True,
    )


def member_of(sent: QueryDict, before: str = "") -> NewMember:
    """The member that a form names; where mail goes follows from who they are, unless it is said."""
    subject, email = (sent.get(f"{before}{name}", "").strip() for name in ("subject", "email"))
    return NewMember(
        subject,
        tuple(sent.getlist(f"{before}roles")),
        tuple(sent.getlist(f"{before}grants")),
        email=email or _address(subject),
        display_name=sent.get(f"{before}displayName", "").strip(),
    )


def _address(subject: str) -> str:
    """The subject, where it can be an address of mail; a field left empty has no fault."""
    return subject if is_address(subject) and len(subject) <= MOST_EMAIL else ""


def add_view(site: AdminSite, request: HttpRequest, project: Project | None, back: str) -> HttpResponse:
    """Make somebody a member of a project, or of the whole tenant."""
    ctx, new = context_of(request), member_of(request.POST)
    project_id = project.pk if project else None

    def question() -> Confirmation:
        with reading(ctx):
            rows = Membership.objects.filter(project_id=project_id, state=MembershipState.ACTIVE)
            there = rows.filter(subject=new.subject).first() if new.subject else None
            return _adding(ctx, project, back, there)

    return act_on(
        site,
        request,
        question,
        lambda _: add_member(ctx, project_id=project_id, member=new),
        done=f"{seen(new.display_name or new.subject)} is a member now: {', '.join(new.roles)}. "
        f"Nothing was sent to them. Their page says how they come in; "
        "it counts from their next request on.",
        then=back,
    )


def _adding(ctx: Context, project: Project | None, back: str, there: Membership | None) -> Confirmation:
    where = seen(project.name) if project else "the whole tenant"
    holds = "in this project alone" if project else "in each of its projects, those to come included"
    return Confirmation(
        title=f"Add a member to {where}",
        lead=f"What you choose holds {holds}, from their next request on.",
        button="Add the member",
        back=back,
        fields=(
            WHO,
            NAME,
            EMAIL,
            roles_field(roles_in_reach(ctx, project.pk if project else None), wide=project is None),
            grants_field(wide=project is None),
        ),
        reason="",
        danger=False,
        instead=(url_of(there), "To the membership that there is: change it there") if there else None,
        heading="Members",
    )


def change_view(site: AdminSite, request: HttpRequest, row: Membership) -> HttpResponse:
    """Give a member other roles and grants, if they still are what the page showed."""
    ctx, sent = context_of(request), request.POST
    roles, grants = sent.getlist("roles"), sent.getlist("grants")

    def change(_: str) -> object:
        nonlocal row
        version = whole(sent.get("version", "")) or 0
        try:
            return change_member(ctx, membership_id=row.pk, version=version, roles=roles, grants=grants)
        except VersionMismatch as late:
            with reading(ctx):
                row = Membership.objects.select_related("project").get(pk=row.pk)
                told = _moved_on(row, version)
            raise VersionMismatch(told) from late

    def question() -> Confirmation:
        with reading(ctx):
            return _changing(ctx, row)

    done = f"{seen(row)} has these roles from now on: {', '.join(ordered(roles, ROLES))}."
    return act_on(site, request, question, change, done=done, then=url_of(row))


def _moved_on(row: Membership, version: int) -> str:
    """Return what was changed meanwhile and by whom, and what was therefore not done."""
    last = JournalEntry.objects.filter(stream_id=row.pk, sequence=row.version).first()
    who = f" by {seen(last.actor)}" if last else ""
    at = f"{row.updated_at.astimezone(UTC):%d %b %Y %H:%M:%S} UTC"
    if row.state != MembershipState.ACTIVE:
        return f"The membership was ended{who} at {at}, after this page was opened. Nothing was changed."
    return (
        f"It was changed{who} at {at}, after this page was opened: now it is {standing_of(row)}. What you "
        "chose was not set; it is kept below. If it shall hold all the same, press the button again."
    )


def standing_of(row: Membership) -> str:
    """Roles and grants in a line."""
    grants = (
        f" with the grant{pluralize(len(row.grants))} {', '.join(row.grants)}"
        if row.grants
        else ", without grants"
    )
    return f"{', '.join(row.roles)}{grants}"


def _changing(ctx: Context, row: Membership) -> Confirmation:
    lost, unread = loans_lost(ctx, after(row, NO_ROLE))
    own = [one for one in lost if one.delegator == row.subject]
    ends = [f"{one.role}, lent to {seen(one.delegate)}, ends if they lose that role." for one in own]
    yours = [YOURSELF] if row.subject == ctx.actor.subject else []
    last = [f"{told} Until then they keep the role."] if (told := why_last(row)) else _last_of_role(row)
    return Confirmation(
        title=f"Change what {seen(row)} is in {place_of(row)}",
        lead="It holds from their next request on, in place of what they are now.",
        button="Set these roles and grants",
        back=url_of(row),
        facts=[("Who", seen(row.subject)), ("Now", standing_of(row))],
        consequences=(
            *yours,
            *ends,
            *unread,
            *last,
            "What they asked for and decided by the roles that they had stays.",
        ),
        fields=(
            roles_field(_may_hold(ctx, row), row.roles, wide=row.project_id is None),
            grants_field(row.grants, wide=row.project_id is None),
        ),
        reason="",
        danger=False,
        hidden=(("version", str(row.version)),),
        heading="Members",
        stops=over(row),
    )


def _may_hold(ctx: Context, row: Membership) -> Sequence[str]:
    """Return the roles that the form offers: a machine is offered none by which one decides."""
    return OF_MACHINES if row.kind == SubjectKind.SERVICE else roles_in_reach(ctx, row.project_id)


def remove_view(site: AdminSite, request: HttpRequest, row: Membership) -> HttpResponse:
    """End a membership, with a page before that says what ends with it."""
    ctx = context_of(request)

    def question() -> Confirmation:
        with reading(ctx):
            return _removing(ctx, Membership.objects.select_related("project").get(pk=row.pk))

    return act_on(
        site,
        request,
        question,
        lambda reason: remove_member(ctx, membership_id=row.pk, reason=reason),
        done=f"{seen(row)} is no member of {place_of(row)} any more.",
        then=url_of(row),
    )


def _removing(ctx: Context, row: Membership) -> Confirmation:
    active = row.state == MembershipState.ACTIVE
    return Confirmation(
        title=f"Remove {seen(row)} from {place_of(row)}",
        lead="The membership ends at once. It stays on record, with what was done by it.",
        button="Remove the member",
        back=url_of(row),
        facts=[("Who", seen(row.subject)), ("Now", standing_of(row))],
        consequences=[*_last_of_role(row), *ends_with(ctx, row)] if active else (),
        heading="Members",
        stops=over(row) or why_last(row),
    )


def _last_of_role(row: Membership) -> list[str]:
    """Return what the command lets happen, and nobody should do unawares."""
    told = left_to_platform(row) if row.state == MembershipState.ACTIVE else ""
    return [told] if told else []


def over(row: Membership) -> str:
    """Return why nothing can be changed about it any more; empty while it is Active."""
    if row.removed_at is None:
        return ""
    return f"{seen(row)} is no member any more, since {row.removed_at:%d %b %Y %H:%M} UTC."


def url_of(row: Membership) -> str:
    return reverse("admin:projects_membership_change", args=[row.pk])


def may_decide_about(ctx: Context, row: Membership) -> bool:
    """Tell whether somebody may change or end this membership: it, and each of its roles, are within
    reach."""
    reach = roles_in_reach(ctx, row.project_id)
    return bool(reach) and set(row.roles) <= set(reach)
