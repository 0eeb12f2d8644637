"""Take one commit all the way to Published."""

import json
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from factory.identity.principals import effective_grants_of
from factory.kernel.context import Actor, Context, system
from factory.kernel.errors import DomainError, Forbidden
from factory.kernel.tenancy import reading
from projects.selectors import project_by_slug
from registry.commands.submitting import DEFAULT_MANIFEST
from registry.publication.publishing import PublicationPath, PublicationStopped, publish

SCOPES = frozenset(
    {"factory.registry.read", "factory.registry.write", "factory.approvals.read", "factory.approvals.decide"}
)


class Command(BaseCommand):
    help = (
        "Submits a commit as a release, resolves and evaluates it, asks for its review and decides it. "
        "Runs the release's evaluation suite on this machine: only for repositories that you trust."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("repository", help="https address, or a path below FACTORY_GIT_LOCAL_ROOTS")
        parser.add_argument("commit", help="the full commit id")
        parser.add_argument("--manifest", default=DEFAULT_MANIFEST, help="its path in the repository")
        parser.add_argument("--tenant", required=True)
        parser.add_argument("--project", required=True, help="the project's slug")
        parser.add_argument("--author", required=True, help="subject of the member who submits it")
        parser.add_argument("--reviewer", required=True, help="subject of the member who approves it")
        parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")

    def handle(self, *args: Any, **options: Any) -> None:
        silent = options["json"]
        try:
            path = PublicationPath(
                author=_member(options, "author"),
                reviewer=_member(options, "reviewer"),
                repository=options["repository"],
                commit=options["commit"],
                manifest_path=options["manifest"],
                tell=(lambda _: None) if silent else self.stdout.write,
            )
            done = publish(path)
        except (PublicationStopped, DomainError) as stopped:
            faults = "".join(f"\n  {f.pointer}: {f.detail}" for f in getattr(stopped, "errors", ()))
            raise CommandError(f"{stopped}{faults}") from stopped
        if silent:
            report = {"releaseId": str(done.release_id), "hash": done.hash, "asset": done.asset}
            self.stdout.write(json.dumps({**report, "version": done.version, "fresh": done.fresh}))
        elif done.fresh:
            self.stdout.write(f"{done.asset}@{done.version}: published, {done.hash}")


def _member(options: dict[str, Any], who: str) -> Context:
    """Return the context that a member's own session would give."""
    tenant, subject = options["tenant"], options[who]
    project_id = _project(tenant, options["project"])
    ctx = system(tenant, "publish_release", project_id=project_id, channel="cli")
    with reading(ctx):
        try:
            grants = effective_grants_of(subject, tenant, project_id)
        except Forbidden as nobody:
            raise CommandError(
                f"{subject}, who is named by --{who}, has no role in the project {options['project']} of the "
                f"tenant {tenant}. Name somebody who has, or add them on the project's page."
            ) from nobody
    actor = Actor(subject, grants.kind, grants.person, grants.roles, grants.grants, SCOPES)
    return Context(tenant, project_id, actor, channel="cli")


def _project(tenant: str, slug: str) -> UUID:
    with reading(system(tenant, "publish_release", channel="cli")):
        project = project_by_slug(slug)
    if project is None:
        raise CommandError(f"The tenant {tenant} has no project {slug}.")
    return project.id
