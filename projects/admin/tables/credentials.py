"""Pages of machines' identities, and of credentials that are refused."""

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from factory.console.base import BaseAdmin
from factory.console.confirming import Act, ChoiceField, Confirmation, act_on
from factory.console.lists.columns import Column, column
from factory.console.scope import context_of
from factory.console.show import seen, short, when
from factory.console.site import site
from factory.identity.config import format_leeway
from factory.kernel.models import RevokedToken
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading
from projects.admin.actions.add import way_to
from projects.admin.tables.projects import Stated
from projects.commands import revoke_credential, revoke_service_account, revoke_token
from projects.models import ServiceAccount
from projects.selectors import service_accounts
from projects.states import ServiceAccountState

KINDS = (
    ("jti", "One token, by its id (jti)"),
    ("subject", "Every token that a subject was given until now: a key or a device was lost"),
)


WHERE = (
    "A token's id is the member jti of its second part, which is base64. A subject is an address or a name "
    "such as it stands in the list of members or of service accounts."
)


@admin.register(ServiceAccount, site=site)
class ServiceAccountAdmin(Stated):
    """Accounts of machines. What one asks for counts as asked for by the person who answers for it."""

    view_operation = "ListServiceAccounts"
    list_display = ("name", "subject", "answerer", "status", "since")
    nothing_yet = "No machine acts here. An administrator registers one, with a person who answers for it."
    search_fields = ("name", "subject", "owner")
    search_help_text = "Words of a name, a subject, or who answers for it"
    fields = ("name", "short_name", "subject", "answerer", "status", "since")
    readonly_fields = fields

    answerer = Column("answers for it", "owner", seen, in_files="owner")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return service_accounts(context_of(request).project_id)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = path("<uuid:account_id>/revoke/", view(self.revoke_view), name="projects_revoke_account")
        return [own, *super().get_urls()]

    def acts(self, request: HttpRequest, row: Any) -> list[Act]:
        if row is None:
            return way_to("projects_register_account", context_of(request))
        active = row.state == ServiceAccountState.ACTIVE
        if not active or not may(context_of(request), "RevokeServiceAccount"):
            return []
        return [Act("Revoke it", reverse("admin:projects_revoke_account", args=[row.pk]), danger=True)]

    def revoke_view(self, request: HttpRequest, account_id: UUID) -> HttpResponse:
        ctx = context_of(request)
        if not may(ctx, "RevokeServiceAccount"):
            raise PermissionDenied("An administrator revokes accounts.")
        with reading(ctx):
            row = self.get_queryset(request).filter(pk=account_id).first()
        if row is None:
            raise Http404
        back = reverse("admin:projects_serviceaccount_change", args=[account_id])
        question = Confirmation(
            title=f"Revoke {row.name}",
            lead="It has no standing anywhere from now on, whatever token it shows. There is no way back.",
            button="Revoke it",
            back=back,
            facts=[("Subject", row.subject), ("Answers for it", row.owner)],
            consequences=(
                "Its memberships end.",
                "Runs that it requested go on.",
            ),
        )
        return act_on(
            self.admin_site,
            request,
            lambda: question,
            lambda reason: revoke_service_account(ctx, account_id=account_id, reason=reason),
            done="The account is revoked.",
            then=back,
        )


ONE_TOKEN = "the token with the id (jti) {}"


@admin.register(RevokedToken, site=site)
class RevocationAdmin(BaseAdmin[RevokedToken]):
    """Tokens and credentials of this tenant that are refused although their signatures are good."""

    view_operation = "ListRevocations"
    list_display = ("at", "which", "reason", "revoked_by")
    heading = "Revoked tokens"
    nothing_yet = "No token was revoked. An administrator revokes one with the button above."
    search_fields = ("jti", "subject", "reason")
    search_help_text = "A token's id (jti), a subject, or words of the reason"
    ordering = ("-revoked_at", "-id")
    fields = ("at", "all_of_which", "reason", "revoked_by")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[RevokedToken]:
        rows: QuerySet[RevokedToken] = RevokedToken.objects.filter(scope=context_of(request).tenant_id)
        return rows

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [path("new/", view(self.new_view), name="projects_revoke_token"), *super().get_urls()]

    def acts(self, request: HttpRequest, row: RevokedToken | None) -> list[Act]:
        if row is not None or not may(context_of(request), "RevokeToken"):
            return []
        return [Act("Revoke a token or a credential…", reverse("admin:projects_revoke_token"))]

    def new_view(self, request: HttpRequest) -> HttpResponse:
        ctx, sent = context_of(request), request.POST
        if not may(ctx, "RevokeToken"):
            raise PermissionDenied("An administrator revokes tokens.")
        back = reverse("admin:factory_revokedtoken_changelist")
        question = Confirmation(
            title="Revoke a token or a credential",
            lead="It is refused at once, by every process. There is no way back; a token of the same subject "
            f"that is issued {format_leeway()} is good.",
            button="Revoke it",
            back=back,
            fields=(
                ChoiceField("kind", "What is refused", KINDS),
                ChoiceField("value", "The token's id (jti), or the subject", help=WHERE),
            ),
        )

        def revoke(reason: str) -> object:
            value = sent.get("value", "").strip()
            if sent.get("kind") == "subject":
                return revoke_credential(ctx, subject=value, reason=reason)
            return revoke_token(ctx, jti=value, reason=reason)

        return act_on(
            self.admin_site, request, lambda: question, revoke, done="It is refused from now on.", then=back
        )

    def headline(self, row: RevokedToken) -> str:
        return "One token is refused" if row.jti else f"Every token that {row.subject} had is refused"

    at = Column("time", "revoked_at", when)

    @column("what is refused", lambda row: row.jti or f"every token of {row.subject} from before")
    def which(self, row: RevokedToken) -> SafeString:
        if row.jti:
            return format_html(ONE_TOKEN, short(row.jti))
        return format_html("every token of {} from before", seen(row.subject))

    @admin.display(description="what is refused")
    def all_of_which(self, row: RevokedToken) -> SafeString:
        """Return the same with the whole id, for which a search asks."""
        if row.jti:
            return format_html(ONE_TOKEN, format_html("<code>{}</code>", seen(row.jti)))
        return self.which(row)
