"""manage.py onboard: a tenant, a project, its environments and its people, in one call."""

import json
import secrets
from argparse import ArgumentParser
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from factory.kernel.addresses import addresses_in
from factory.kernel.context import Context, system
from factory.kernel.errors import DomainError
from factory.kernel.models import User
from factory.kernel.tenancy import reading
from projects import selectors
from projects.commands import add_member, onboard_project, onboard_tenant, register_service_account
from projects.commands.inputs import NewEnvironment, NewMember
from projects.errors import MemberExists, ServiceAccountExists
from projects.states import GRANTS


@dataclass
class OnboardingReport:
    """Hold what there is after the command, as it is printed."""

    tenant: str
    projectId: str = ""
    project: str = ""
    created: bool = True
    environments: dict[str, str] = field(default_factory=dict)
    members: list[dict[str, Any]] = field(default_factory=list)
    serviceAccounts: dict[str, str] = field(default_factory=dict)


class Command(BaseCommand):
    help = "Make a project with its environments and members; the tenant too, if it is not there yet."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--tenant-name", default="")
        parser.add_argument("--project", required=True, metavar="SLUG")
        parser.add_argument("--name", default="", help="what people call the project")
        parser.add_argument("--environment", action="append", default=[], metavar="SLUG[=NAME]")
        who = "somebody and what they are, for example ann@example.org=Reviewer,payloads"
        parser.add_argument("--member", action="append", default=[], metavar="EMAIL=ROLE,…", help=who)
        parser.add_argument(
            "--tenant-member", action="append", default=[], metavar="EMAIL=ROLE,…", help="tenant-wide"
        )
        parser.add_argument(
            "--service-account", action="append", default=[], metavar="SLUG:OWNER=ROLE,…", help="a machine"
        )
        parser.add_argument("--create-users", action="store_true", help="with a generated password each")
        parser.add_argument("--if-missing", action="store_true", help="leave a project that is there alone")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            report = _onboard(options)
        except DomainError as refusal:
            faults = "".join(f"\n  {fault.pointer}: {fault.detail}" for fault in refusal.errors)
            raise CommandError(f"{refusal.detail}{faults}") from refusal
        self.stdout.write(json.dumps(report.__dict__) if options["as_json"] else _format_report(report))


def _onboard(options: dict[str, Any]) -> OnboardingReport:
    ctx = system(options["tenant"], "onboard", channel="cli")
    report = OnboardingReport(tenant=ctx.tenant_id, project=options["project"])
    _ensure_tenant(ctx, options["tenant_name"] or options["tenant"])
    members = [_member(text) for text in options["member"]]
    wide = [_member(text) for text in options["tenant_member"]]
    if options["if_missing"] and _found(ctx, report):
        return report
    onboarded = onboard_project(
        ctx,
        slug=options["project"],
        name=options["name"] or options["project"],
        environments=[_environment(text) for text in options["environment"]],
        members=members,
    )
    report.projectId, report.environments = onboarded["projectId"], onboarded["environments"]
    _join_tenant(ctx, wide)
    _register(ctx, report, options["service_account"])
    passwords = _users([*members, *wide]) if options["create_users"] else {}
    report.members = [_line(member, passwords) for member in [*members, *wide]]
    return report


def _ensure_tenant(ctx: Context, name: str) -> None:
    with reading(ctx):
        tenant = selectors.tenant(ctx.tenant_id)
    if tenant is None:
        onboard_tenant(ctx, name=name)


def _found(ctx: Context, report: OnboardingReport) -> bool:
    """Fill the report with the project that is there already, if there is one."""
    with reading(ctx):
        project = selectors.project_by_slug(report.project)
        if project is None:
            return False
        report.created, report.projectId = False, str(project.id)
        report.environments = {one.slug: str(one.id) for one in selectors.environments(project.id)}
        report.members = [
            {"subject": one.subject, "roles": list(one.roles), "grants": list(one.grants)}
            for one in selectors.members(project.id)
        ]
    return True


def _join_tenant(ctx: Context, wide: list[NewMember]) -> None:
    for member in wide:
        try:
            add_member(ctx, project_id=None, member=member)
        except MemberExists:
            continue  # onboarding a second project of the tenant


def _register(ctx: Context, report: OnboardingReport, texts: list[str]) -> None:
    for text in texts:
        name, _, granted = text.partition("=")
        slug, _, owner = name.partition(":")
        roles, grants = _roles_and_grants(granted)
        try:
            report.serviceAccounts[slug] = register_service_account(
                ctx, project_id=UUID(report.projectId), slug=slug, owner=owner, roles=roles, grants=grants
            )
        except ServiceAccountExists as refusal:
            raise CommandError(f"{refusal.detail} The project itself was onboarded.") from refusal


def _users(members: list[NewMember]) -> dict[str, str]:
    """Sign-ins for those who have none; the passwords are shown this once and kept nowhere."""
    passwords = {}
    for member in members:
        if not User.objects.filter(subject=member.subject).exists():
            passwords[member.subject] = secrets.token_urlsafe(15)
            User.objects.create_user(
                member.email, passwords[member.subject], subject=member.subject, is_staff=True
            )
    return passwords


def _line(member: NewMember, passwords: dict[str, str]) -> dict[str, Any]:
    line = {"subject": member.subject, "roles": list(member.roles), "grants": list(member.grants)}
    return line | ({"password": passwords[member.subject]} if member.subject in passwords else {})


def _environment(text: str) -> NewEnvironment:
    slug, _, name = text.partition("=")
    return NewEnvironment(slug, name)


def _member(text: str) -> NewMember:
    written, _, granted = text.partition("=")
    roles, grants = _roles_and_grants(granted)
    email = next(iter(addresses_in(written)), written)
    return NewMember(email, roles, grants, email=email)


def _roles_and_grants(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Roles and grants in one list: their words are never the same."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    return tuple(w for w in words if w not in GRANTS), tuple(w for w in words if w in GRANTS)


def _format_report(report: OnboardingReport) -> str:
    verb = "onboarded" if report.created else "is there already"
    lines = [f"tenant   {report.tenant}", f"project  {report.project} {verb}: {report.projectId}"]
    lines += [f"  environment  {slug}  {key}" for slug, key in report.environments.items()]
    for member in report.members:
        password = f"  password {member['password']}" if "password" in member else ""
        lines.append(
            f"  member  {member['subject']}  {', '.join([*member['roles'], *member['grants']])}{password}"
        )
    lines += [f"  service account  {subject}" for subject in report.serviceAccounts.values()]
    return "\n".join(lines)
