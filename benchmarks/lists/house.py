"""The house that is measured: one of everything, in three projects of one tenant, and the people who look."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.test import override_settings

from benchmarks.lists.growing import Large
from factory.console.scope import CHOSEN
from factory.kernel.models import User
from factory.messaging.webhooks.commands import create_webhook
from factory.messaging.webhooks.signing import new_secret
from projects.commands import onboard_project
from projects.commands.inputs import NewEnvironment, NewMember
from tests.support.acts import deliver
from tests.support.client import Client
from tests.support.furnished import furnished
from tests.support.running import House

TENANT = "large"
FEW = {
    "small-requester": (("Requester",), ()),
    "small-operator": (("Operator",), ()),
    "small-finance": (("Observer",), ("finance", "audit")),
}
"""The people of the small project; names are also their addresses at bench.test."""
MAIN = ("tenant-admin", "workspace-admin", "operator", "requester", "reviewer", "finance", "auditor")
ENDPOINT = "127.0.0.1:9"


@dataclass(frozen=True)
class BenchmarkPerson:
    """Somebody who looks, in the place that they chose."""

    name: str
    client: Client

    @cached_property
    def offered(self) -> frozenset[str]:
        """The lists in their menu."""
        answer: Any = self.client.get("/admin/")
        return frozenset(re.findall(r'href="(/admin/[a-z_]+/[a-z_]+/)"', answer.content.decode()))


def built(rows: int) -> Large:
    """Everything once, by commands; the rows that grow are made of these."""
    house = furnished(TENANT)
    by = house.world.tenant_admin
    projects = [
        UUID(
            onboard_project(
                by,
                slug=slug,
                name=f"The {slug} project",
                environments=[NewEnvironment("production")],
                members=[NewMember(f"{who}@bench.test", *held) for who, held in people.items()],
            )["projectId"]
        )
        for slug, people in (("second", {}), ("small", FEW))
    ]
    with override_settings(FACTORY_WEBHOOKS_TRUSTED_HOSTS=[ENDPOINT]):
        url = f"http://{ENDPOINT}/"
        create_webhook(by, url=url, topics=(), consumer="", description="", secret=new_secret())
    _finished(house)
    return Large(TENANT, house.world.project, *projects, rows, datetime.now(UTC).isoformat())


def _finished(house: House) -> None:
    """A run that is through, with what it tells a webhook."""
    house.run("single")
    worker = house.hand("last")
    work = worker.poll()[0]
    worker.acquire(work)
    worker.report(work, output={"found": 1})
    deliver(house)


def people(tenant: str, small: UUID, second: UUID, main: UUID) -> Sequence[BenchmarkPerson]:
    """Who sees the whole tenant, those of its large project, one in the second, those of the small one."""
    wide = [_person(f"{who}@{tenant}.test", f"{tenant}/") for who in MAIN[:1]]
    large = [_person(f"{who}@{tenant}.test", f"{tenant}/{main}") for who in MAIN[1:]]
    between = [_person(f"{who}@{tenant}.test", f"{tenant}/{second}", "second-") for who in MAIN[:1]]
    few = [_person(f"{who}@bench.test", f"{tenant}/{small}") for who in FEW]
    return [*wide, *large, *between, *few]


def _person(subject: str, place: str, where: str = "") -> BenchmarkPerson:
    user = User.objects.filter(subject=subject).first() or User.objects.create_user(subject, subject=subject)
    client = Client()
    client.force_login(user)
    session = client.session
    session[CHOSEN] = place
    session.save()
    return BenchmarkPerson(f"{where}{subject.partition('@')[0]}", client)
