"""What is added to one project: members, environments and service accounts, each by a form of its own."""

from uuid import UUID

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from factory.console.confirming import Act, ChoiceField, Confirmation, act_on
from factory.console.scope import context_of
from factory.console.show import seen
from factory.kernel.context import Context
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading
from projects.admin.actions.membership import add_view, grants_field, roles_field
from projects.admin.detail.project import Added
from projects.commands import add_environment, register_service_account
from projects.commands.inputs import SERVICE_PREFIX
from projects.commands.reach import roles_in_reach
from projects.models import Project
from projects.states import OF_MACHINES


def adds_members(ctx: Context, project_id: UUID | None) -> bool:
    """Tell whether somebody decides who is a member there: by a role of their own, not by a lent one."""
    return may(ctx, "AddMember") and bool(roles_in_reach(ctx, project_id))


def adds_environments(ctx: Context, project_id: UUID | None) -> bool:
    return project_id is not None and may(ctx, "AddEnvironment")


def adds_accounts(ctx: Context, project_id: UUID | None) -> bool:
    return may(ctx, "RegisterServiceAccount") and bool(roles_in_reach(ctx, project_id))


def environment_view(site: AdminSite, request: HttpRequest, project: Project, back: str) -> HttpResponse:
    """Another place that runs of the project may target."""
    ctx, sent = context_of(request), request.POST
    slug, name = (sent.get(field, "").strip() for field in ("slug", "name"))
    question = Confirmation(
        title=f"Add an environment to {seen(project.name)}",
        lead="A place that runs may target from now on. The policy says which actions there need a decision.",
        button="Add the environment",
        back=back,
        heading="Environments",
        consequences=(
            "Rules of the policy that name it by its short name, or hold everywhere, hold in it at once.",
            "It cannot be renamed or taken away again.",
        ),
        fields=(
            ChoiceField(
                "slug",
                "Short name (slug)",
                help="Lower-case letters, digits and inner hyphens, such as production.",
            ),
            ChoiceField("name", "Name", optional=True, help="What people read; left empty, the short name."),
        ),
        reason="",
        danger=False,
    )
    return act_on(
        site,
        request,
        lambda: question,
        lambda _: add_environment(ctx, project_id=project.pk, slug=slug, name=name),
        done=f"Runs of this project may target {seen(name or slug)} now.",
        then=back,
    )


def account_view(site: AdminSite, request: HttpRequest, project: Project, back: str) -> HttpResponse:
    """A machine that acts in the project, and the person who answers for it."""
    ctx, sent = context_of(request), request.POST
    slug, name, owner = (sent.get(field, "").strip() for field in ("slug", "displayName", "owner"))

    def question() -> Confirmation:
        with reading(ctx):
            return _registering(ctx, project, back)

    return act_on(
        site,
        request,
        question,
        lambda _: register_service_account(
            ctx,
            project_id=project.pk,
            slug=slug,
            owner=owner,
            roles=tuple(sent.getlist("roles")),
            grants=tuple(sent.getlist("grants")),
            name=name,
        ),
        done=f"{SERVICE_PREFIX}{ctx.tenant_id}:{slug} is registered, and a member here. Who runs the "
        "installation gives it a token, with manage.py issue_token.",
        then=back,
    )


def _registering(ctx: Context, project: Project, back: str) -> Confirmation:
    return Confirmation(
        title=f"Register a service account in {seen(project.name)}",
        lead="A machine that acts here. What it asks for counts as asked for by who answers for it, too.",
        button="Register the account",
        back=back,
        heading="Service accounts",
        consequences=(
            "Who answers for it cannot decide on what it asked for.",
            "It never decides itself: the roles by which one decides are for people.",
            "When they are no member any more, the account ends with them.",
        ),
        fields=(
            ChoiceField(
                "slug",
                "Short name (slug)",
                help=f"Such as ci, for {SERVICE_PREFIX}{ctx.tenant_id}:ci.",
            ),
            ChoiceField("displayName", "What people call it", optional=True),
            ChoiceField(
                "owner",
                "Who answers for it",
                help="A person who is a member here, as they sign in.",
                chosen=ctx.actor.subject,
            ),
            roles_field(OF_MACHINES, wide=False),
            grants_field(wide=False),
        ),
        reason="",
        danger=False,
    )


OWN_ROLE = "An administrator of the project decides who is a member of it, by a role of their own."
ADDED = {
    "projects_add_member": Added("Add a member", OWN_ROLE, adds_members, add_view),
    "projects_add_environment": Added(
        "Add an environment",
        "An administrator of the project adds environments.",
        adds_environments,
        environment_view,
    ),
    "projects_register_account": Added("Register a service account", OWN_ROLE, adds_accounts, account_view),
}
"""By the names of their addresses."""


def way_to(name: str, ctx: Context) -> list[Act]:
    """The form for the project that is chosen in the header, for who may use it."""
    if ctx.project_id is None or not ADDED[name].offered(ctx, ctx.project_id):
        return []
    return [Act(ADDED[name].label, reverse(f"admin:{name}", args=[ctx.project_id]))]
