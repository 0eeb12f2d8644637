"""Print a token of the embedded issuer."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from factory.identity.config import format_leeway
from factory.identity.directory import directory
from factory.identity.issuer import IssuerOff, NotIssuable, issue_person_token, issue_worker_token
from factory.identity.pools import known_pools
from factory.identity.principals import admit
from factory.identity.tokens import TokenRefused, verifier
from factory.kernel.permissions import SCOPES

MAX_TTL = 365 * 86400
REVOKED = (
    "The credential was revoked a moment ago, and this token would fall with it. Ask again {} since then."
)


class Command(BaseCommand):
    help = "Print a signed token for a person, a service account (--service) or a worker (--worker-pool)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--subject", required=True, help="who the token speaks for (its sub)")
        parser.add_argument("--tenant", default="", help="the tenant's id")
        parser.add_argument(
            "--project", default="", help="the project's slug or id; without it, the tenant's operations"
        )
        parser.add_argument(
            "--scope",
            action="append",
            default=[],
            help="a scope; may be repeated. Without any: every scope of a person. Roles decide all the same",
        )
        parser.add_argument("--roles", default=None, help="comma-separated; narrows what memberships give")
        parser.add_argument("--service", action="store_true", help="the subject is a service account")
        parser.add_argument("--worker-pool", default="", help="a worker's token for this pool")
        parser.add_argument("--ttl", type=int, default=3600, help="seconds until it expires (default 3600)")

    def handle(self, *args: Any, **options: Any) -> None:
        if not 1 <= options["ttl"] <= MAX_TTL:
            raise CommandError("--ttl is between one second and a year.")
        try:
            made = self._worker(options) if options["worker_pool"] else self._person(options)
        except (IssuerOff, NotIssuable) as fault:
            raise CommandError(str(fault)) from fault
        try:
            admit(verifier().verify(made))
        except TokenRefused as refusal:
            told = REVOKED.format(format_leeway())
            raise CommandError(told if refusal.reason == "revoked" else refusal.detail) from refusal
        self.stdout.write(made)

    def _worker(self, options: dict[str, Any]) -> str:
        if options["tenant"] or options["project"]:
            raise CommandError("A worker's token names a pool and no tenant or project.")
        pool, known = options["worker_pool"], known_pools()
        if pool not in known:
            self.stderr.write(
                f"There is no pool {pool} yet: a worker with this token is refused until there is. "
                f"Pools: {', '.join(known) or 'none'}."
            )
        return issue_worker_token(options["subject"], pool=pool, ttl_seconds=options["ttl"])

    def _person(self, options: dict[str, Any]) -> str:
        if not options["tenant"]:
            raise CommandError("Name the --tenant, or a --worker-pool.")
        scopes = {
            s if s.startswith("factory.") else f"factory.{s}" for s in " ".join(options["scope"]).split()
        }
        scopes = scopes or {*SCOPES} - {"factory.worker"}
        if scopes - SCOPES:
            raise CommandError(f"There is no scope {', '.join(sorted(scopes - SCOPES))}. Known: {_known()}.")
        roles = None if options["roles"] is None else [r for r in options["roles"].split(",") if r]
        return issue_person_token(
            options["subject"],
            tenant_id=options["tenant"],
            project_id=_project(options["subject"], options["tenant"], options["project"]),
            scopes=scopes,
            roles=roles,
            service=options["service"],
            ttl_seconds=options["ttl"],
        )


def _project(subject: str, tenant_id: str, named: str) -> UUID | None:
    """The project that is meant, among those in which the subject is a member: another is no use."""
    places = [place for place in directory().places_of(subject) if place.tenant_id == tenant_id]
    if not places:
        raise CommandError(
            f"{subject} is a member of nothing in a tenant {tenant_id}: see manage.py onboard."
        )
    if not named:
        return None
    for place in places:
        if place.project_id is not None and named in (place.project_slug, str(place.project_id)):
            return place.project_id
    known = ", ".join(sorted(place.project_slug for place in places if place.project_slug)) or "none"
    raise CommandError(
        f"{subject} is no member of a project {named} of {tenant_id}. Their projects: {known}."
    )


def _known() -> str:
    return ", ".join(sorted(SCOPES))
