"""The people of the demo tenant, and how they act from the command line."""

from uuid import UUID

from django.conf import settings

from factory.embedded.system import secret
from factory.identity.principals import effective_grants_of
from factory.kernel.context import Actor, Context, system
from factory.kernel.models import User
from factory.kernel.permissions import SCOPES
from factory.kernel.tenancy import reading

PEOPLE = {
    "requester": "requester@demo.test=Requester,payloads",
    "reviewer": "reviewer@demo.test=Reviewer,payloads",
    "operator": "operator@demo.test=Operator,payloads",
    "admin": "admin@demo.test=WorkspaceAdmin,audit,payloads",
    "finance": "finance@demo.test=Observer,finance",
}
# Of the whole tenant: who breaks the glass and changes the installation's settings.
TENANT_PEOPLE = {"platform": "platform@demo.test=PlatformAdmin"}
ALL_PEOPLE = PEOPLE | TENANT_PEOPLE
PERSONS_SCOPES = SCOPES - {"factory.worker"}


def email_of(part: str) -> str:
    return ALL_PEOPLE[part].partition("=")[0]


def sign_in(part: str) -> str:
    """The password of one of them. The user is made here if need be; a changed password is left alone."""
    email = email_of(part)
    password = secret(settings.SECRETS_DIR, f"password-{email}")
    if not User.objects.filter(subject=email).exists():
        User.objects.create_user(email, password, subject=email, is_staff=True)
    return password


def acting(part: str, tenant_id: str, project_id: UUID) -> Context:
    """The context of one of them, with the rights that their membership gives and no other."""
    email = email_of(part)
    with reading(system(tenant_id, "demo")):
        standing = effective_grants_of(email, tenant_id, project_id)
    actor = Actor(
        subject=email,
        kind="person",
        person=standing.person,
        roles=standing.roles,
        grants=standing.grants,
        scopes=PERSONS_SCOPES,
    )
    return Context(tenant_id, project_id, actor, channel="cli")
