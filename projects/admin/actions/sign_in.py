"""How a member signs in, said by what decides it; sending a link, and joining and ending sign-ins."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from factory.console.confirming import Act, ChoiceField, Confirmation, act_on
from factory.console.scope import context_of
from factory.console.show import seen
from factory.identity.accounts import account_of, link_hours, why_no_link_here, why_no_sign_in
from factory.identity.config import identity_settings
from factory.kernel.addresses import is_address
from factory.kernel.context import Context
from factory.kernel.models import AuditEntry
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading
from projects.admin.actions.membership import over, url_of
from projects.commands import end_identity, join_identity, send_sign_in_link
from projects.commands.reach import roles_in_reach
from projects.models import Identity, Membership
from projects.selectors import sign_ins_of
from projects.states import IdentityState, SubjectKind


@dataclass(frozen=True, slots=True)
class SignsIn:
    """Hold how somebody comes in, whether they can now, and what is to be done where they cannot."""

    words: str
    able: bool
    remedy: str = ""
    command: str = ""


def signs_in(row: Membership) -> SignsIn:
    """Return how a member signs in, as the sign-in itself judges it."""
    subject = row.subject
    if row.kind == SubjectKind.SERVICE:
        return SignsIn(
            "A machine signs in nowhere; it shows tokens that who runs the installation issues.", True
        )
    if not is_address(subject):
        return _by_issuer(row, _issuers(row.tenant_id))
    outside = _vouching(subject, row.tenant_id)
    also = f" Also through {_listed(outside)}, where that has verified the address." if outside else ""
    if _known_to_sign_in(row):
        return SignsIn(f"With a password, as {seen(subject)}.{also}", True)
    told = f"With a password, as {seen(subject)}, once they have set one.{also}"
    if settings.FACTORY_EMAIL_ON:
        return SignsIn(told, bool(outside), "An administrator sends them a sign-in link from this page.")
    return SignsIn(
        told,
        bool(outside),
        "This installation sends no mail. Who runs it prints a link for them on the host with",
        f"manage.py sign_in_link {subject}",
    )


def _known_to_sign_in(row: Membership) -> bool:
    """Return whether this tenant knows that a member signs in with a password: it had the account made, or
    they have acted in it on the console. Of anybody else's account it learns nothing."""
    account = account_of(row.subject)
    if account is None or why_no_sign_in(account):
        return False
    acted = AuditEntry.objects.filter(actor=row.subject, channel="admin")
    return account.opened_by == row.tenant_id or bool(acted.exists())


def _by_issuer(row: Membership, outside: Sequence[str]) -> SignsIn:
    """Return how somebody comes in whom only an issuer knows: they need no password here."""
    if len(outside) == 1:
        return SignsIn(
            f"By {seen(outside[0])}, which calls them {seen(row.subject)}. They need no password here.",
            True,
        )
    joined = sign_ins_of(row.subject).filter(state=IdentityState.ACTIVE).exists()
    if joined:
        return SignsIn("By the sign-ins that are joined to them. They need no password here.", True)
    if not outside:
        return SignsIn(
            f"Not yet: {seen(row.subject)} is no address, and no other issuer is trusted for this tenant.",
            False,
            "Who runs the installation names the issuer that knows them (FACTORY_TRUSTED_ISSUERS).",
        )
    return SignsIn(
        f"Not yet: several issuers are trusted, and {seen(row.subject)} may be somebody else at each.",
        False,
        "An administrator of the whole tenant joins the right sign-in to them.",
    )


def _issuers(tenant_id: str) -> list[str]:
    return [one.issuer for one in identity_settings().speaking_for(tenant_id)]


def _vouching(address: str, tenant_id: str) -> list[str]:
    """Return the issuers that are believed in the tenant when they say whose an address is."""
    known = identity_settings()
    return [one.issuer for one in known.speaking_for(tenant_id) if known.believed(one, address, tenant_id)]


def _listed(words: Sequence[str]) -> str:
    return " or ".join(seen(word) for word in words)


def acts_of(ctx: Context, row: Membership) -> list[Act]:
    """Return what may be done about the sign-ins of an active member, for who may decide about them."""
    person = row.kind == SubjectKind.PERSON
    found = []
    if person and settings.FACTORY_EMAIL_ON and is_address(row.subject):
        found.append(Act("Send a sign-in link", reverse("admin:projects_send_sign_in_link", args=[row.pk])))
    if person and _issuers(row.tenant_id) and joins(ctx):
        found.append(Act("Join a sign-in", reverse("admin:projects_join_identity", args=[row.pk])))
    return found


def joins(ctx: Context) -> bool:
    """Return whether somebody is offered to join and end sign-ins; the commands judge again."""
    return ctx.project_id is None and may(ctx, "JoinIdentity") and bool(roles_in_reach(ctx, None))


def _require_joins(ctx: Context) -> None:
    if not joins(ctx):
        raise PermissionDenied("An administrator of the whole tenant does this, in the whole tenant.")


def joined_to(row: Membership) -> list[Identity]:
    """Return the sign-ins that are a member's."""
    return list(sign_ins_of(row.subject).filter(state=IdentityState.ACTIVE)[:50])


def send_view(site: AdminSite, request: HttpRequest, row: Membership) -> HttpResponse:
    """Have a link sent to a member's own mailbox."""
    ctx = context_of(request)

    def question() -> Confirmation:
        with reading(ctx):
            return _sending(row)

    return act_on(
        site,
        request,
        question,
        lambda _: send_sign_in_link(ctx, membership_id=row.pk),
        done=f"A sign-in link is on its way to {seen(row.subject)}. It is good for {link_hours()} hours.",
        then=url_of(row),
    )


def _sending(row: Membership) -> Confirmation:
    return Confirmation(
        title=f"Send {seen(row)} a sign-in link",
        lead="With it they set a password, and sign in to this console. Nobody else sees it, you neither.",
        button="Send the link",
        back=url_of(row),
        facts=[("To", seen(row.subject)), ("Good for", f"{link_hours()} hours, once")],
        consequences=(
            "A password that they have stays until they set another.",
            "When they set a password, whoever is signed in by their account is signed out, everywhere.",
            "It stands on record that you had it sent.",
        ),
        reason="",
        danger=False,
        heading="Members",
        stops=over(row) or why_no_link_here(row.subject),
    )


def join_view(site: AdminSite, request: HttpRequest, row: Membership) -> HttpResponse:
    """Make an issuer's subject a member's sign-in."""
    ctx, sent = context_of(request), request.POST
    with reading(ctx):
        _require_joins(ctx)
    issuer, subject = (sent.get(name, "").strip() for name in ("issuer", "subject"))
    return act_on(
        site,
        request,
        lambda: _joining(row),
        lambda reason: join_identity(ctx, issuer=issuer, subject=subject, person=row.subject, reason=reason),
        done=f"Who comes as {seen(subject)} of {seen(issuer)} is {seen(row)} from now on.",
        then=url_of(row),
    )


def _joining(row: Membership) -> Confirmation:
    return Confirmation(
        title=f"Join a sign-in to {seen(row)}",
        lead="Whoever comes by it is this member: in each project, with all that their memberships give.",
        button="Join it to them",
        back=url_of(row),
        facts=[("Who", seen(row.subject))],
        consequences=(
            "What they ask for by one sign-in they cannot decide by another: they are one person.",
            "Make sure that it is theirs: whoever holds it acts as them.",
        ),
        fields=(
            ChoiceField("issuer", "Issuer", tuple((one, one) for one in _issuers(row.tenant_id))),
            ChoiceField("subject", "What it calls them", help="The `sub` of their tokens, exactly."),
        ),
        reason="How you know that it is theirs",
        danger=False,
        heading="Members",
        stops=over(row),
    )


def end_view(site: AdminSite, request: HttpRequest, row: Membership, identity_id: UUID) -> HttpResponse:
    """Let a sign-in be nobody's again."""
    ctx = context_of(request)
    with reading(ctx):
        _require_joins(ctx)
        identity = sign_ins_of(row.subject).filter(pk=identity_id, state=IdentityState.ACTIVE).first()
    if identity is None:
        raise Http404
    question = Confirmation(
        title=f"End a sign-in of {seen(row)}",
        lead="Who comes by it is nobody here from the next request on. What was done by it stays.",
        button="End the sign-in",
        back=url_of(row),
        facts=[("Issuer", seen(identity.issuer)), ("Calls them", seen(identity.subject))],
        heading="Members",
    )
    return act_on(
        site,
        request,
        lambda: question,
        lambda reason: end_identity(ctx, identity_id=identity.pk, reason=reason),
        done="The sign-in is nobody's any more.",
        then=url_of(row),
    )
