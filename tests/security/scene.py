"""Three places that look alike: a project, its sister in the same tenant, and one of another tenant.

In each a gated run waits for its approval, so that there is an id of every kind to try on the others.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID, uuid4

from django.urls import URLPattern, get_resolver

import config.urls  # noqa: F401 - it registers every path
from approvals.commands import publish_policy_revision
from approvals.selectors import current_policy
from factory.kernel.context import Context, system
from factory.kernel.models import OutboxEvent
from factory.kernel.permissions import table
from factory.kernel.tenancy import reading
from factory.messaging.webhooks.commands import create_webhook
from factory.messaging.webhooks.signing import new_secret
from projects.commands import add_member, join_identity, lend_role, onboard_project, register_service_account
from projects.commands.inputs import NewEnvironment, NewMember
from registry.commands import move_alias
from registry.selectors import load_release
from runs.commands import start_run
from runs.models import Lease, Run
from runs.rest.submissions import submit
from tests.support.issuers import outside
from tests.support.proposals import DIFF
from tests.support.running import House
from tests.support.waivers import ask_waiver, template
from tests.support.world import context_of, subject_of
from usage.commands import create_budget
from usage.pricing.periods import label, month_of, next_month
from usage.selectors import reservation_of

ROLES = ("Requester", "Reviewer", "Operator", "WorkspaceAdmin")
GRANTS = ("finance", "audit", "payloads")


@dataclass(frozen=True)
class Place:
    """A project with one id of each kind, and somebody who may do everything in it."""

    house: House
    project: UUID
    everybody: Context
    ids: dict[str, str]

    @property
    def tenant(self) -> str:
        return self.house.tenant

    def system(self) -> Context:
        return system(self.tenant, "test", project_id=self.project)


@dataclass(frozen=True)
class Scene:
    home: Place
    sister: Place
    foreign: Place


def build() -> Scene:
    tenant = f"t-{uuid4().hex[:16]}"
    here, there = House(tenant), House(f"{tenant}-b")
    sister = _sister(here)
    return Scene(_place(here, here.world.project), _place(here, sister), _place(there, there.world.project))


def _sister(house: House) -> UUID:
    person = NewMember(subject_of(house.tenant, "sister"), ROLES, GRANTS)
    made = onboard_project(
        house.system,
        slug="sister",
        name="The sister",
        environments=[NewEnvironment("staging")],
        members=[person],
    )
    project = UUID(made["projectId"])
    ctx = system(house.tenant, "test", project_id=project)
    create_budget(ctx, project_id=project, month=month_of(datetime.now(UTC)), amount=Decimal(100))
    return project


def _place(house: House, project: UUID) -> Place:
    ctx = system(house.tenant, "test", project_id=project)
    name = f"all-{project.hex[-6:]}"
    subject = subject_of(house.tenant, name)
    add_member(ctx, project_id=project, member=NewMember(subject, ROLES, GRANTS))
    other = NewMember(f"another-{subject}", ROLES, GRANTS)  # whose membership may end without harm to others
    member = add_member(ctx, project_id=project, member=other)
    everybody = context_of(subject, house.tenant, project)
    month = month_of(datetime.now(UTC))
    budgets = [
        create_budget(ctx, project_id=project, month=one, amount=Decimal(50))
        for one in (next_month(month), next_month(next_month(month)))
    ]
    environment = _environment(ctx, project)
    run_id, step_id, approval_id, attempt, lease = _waiting_run(house, everybody, project)
    _waiting_run(house, everybody, project)
    revision = _revisions(house, everybody)
    alias = f"only-{project.hex[-6:]}"
    move_alias(everybody, asset="sample", alias=alias, release_id=house.release, version=0)
    with reading(ctx):
        files = load_release(house.release)["files"]
    webhook = create_webhook(
        everybody, url="https://hooks.example.com/x", topics=(), consumer="", description=name,
        secret=new_secret(),
    )  # fmt: skip
    with reading(ctx):
        event = OutboxEvent.objects.filter(project_id=project).latest("occurred_at")
        held = reservation_of(UUID(run_id))
        assert held is not None
    channel, notification = _told(everybody)
    kind = template(house, by=everybody, name=name)
    ids = {
        "channel_id": channel,
        "notification_id": notification,
        "template_id": str(kind),
        "waiver_id": _waiver(house, everybody, kind, environment),
        "webhook_id": webhook,
        "event_id": str(event.id),
        "project_id": str(project),
        "account_id": _account(ctx, everybody, project),
        "worker_id": _worker(ctx, UUID(lease)),
        "member_id": str(member),
        "delegation_id": _delegation(everybody, project),
        "identity_id": _identity(house, subject),
        "approval_id": approval_id,
        "revision": revision,
        "release_id": str(house.release),
        "sha256": files[0]["sha256"],
        "asset": "sample",
        "alias": alias,
        "budget_id": str(budgets[0]),
        "reservation_id": str(held.id),
        "run_id": run_id,
        "step_id": step_id,
        "attempt_id": attempt,
        "lease_id": lease,
        "environment_id": environment,
        "subject": everybody.actor.subject,
    }
    return Place(house, project, everybody, ids)


def _waiver(house: House, ctx: Context, kind: UUID, environment: str) -> str:
    """It waits for its decision: the waiting and its end are tried like those of one in force."""
    asked = ask_waiver(house, kind, by=ctx, environment_ids=[UUID(environment)])
    return str(asked["waiver"])


def _account(ctx: Context, owner: Context, project: UUID) -> str:
    from projects.models import ServiceAccount

    slug = f"robot-{project.hex[-6:]}"
    values = {"slug": slug, "owner": owner.actor.subject, "roles": ("Requester",)}
    register_service_account(ctx, project_id=project, **values)
    with reading(ctx):
        return str(ServiceAccount.objects.get(slug=slug).id)


def _identity(house: House, person: str) -> str:
    """A sign-in that is somebody's, of an issuer that was trusted when it was joined."""
    admin = context_of(subject_of(house.tenant, "tenant_admin"), house.tenant, None)
    with TemporaryDirectory() as folder, outside(Path(folder), "https://idp.example"):
        return join_identity(
            admin, issuer="https://idp.example", subject=f"x|{uuid4().hex}", person=person, reason="seen"
        )


def _told(ctx: Context) -> tuple[str, str]:
    """A channel of somebody's, and a message on its way by it."""
    from notifications.commands import add_channel, send_test
    from notifications.models import Notification

    address = "discord://123456789012345678/abcdefghijklmnopqrstuvwxyz"
    channel = add_channel(ctx, name="chat", address=address, kinds=())
    send_test(ctx, channel_id=UUID(channel))
    with reading(ctx):
        return channel, str(Notification.objects.get(subject=ctx.actor.subject).id)


def _worker(ctx: Context, lease_id: UUID) -> str:
    with reading(ctx):
        return str(Lease.objects.get(pk=lease_id).worker_id)


def _delegation(ctx: Context, project: UUID) -> str:
    return lend_role(
        ctx,
        project_id=project,
        role="Reviewer",
        delegate=subject_of(ctx.tenant_id, "platform_admin"),
        expires_at=datetime.now(UTC) + timedelta(days=1),
        reason="away",
    )


def _environment(ctx: Context, project: UUID) -> str:
    from projects.models import Environment

    with reading(ctx):
        return str(Environment.objects.filter(project_id=project).earliest("created_at").id)


def _waiting_run(house: House, ctx: Context, project: UUID) -> tuple[str, str, str, str, str]:
    body, _ = submit(ctx, payload=house.payload("gated"), key=str(uuid4()))
    place = system(house.tenant, "test", project_id=project)
    start_run(place, run_id=UUID(body["runId"]))
    worker = house.hand(f"w-{uuid4().hex[:6]}")
    work = worker.take()
    asked = worker.ask(work)
    return body["runId"], str(work.step_id), str(asked.approval_id), str(work.attempt_id), str(work.lease_id)


def _revisions(house: House, ctx: Context) -> str:
    """A tenant's own number of revisions: each place adds as many as make its last word its own."""
    with reading(ctx):
        document = current_policy(ctx).document
    wanted = 2 if not house.tenant.endswith("-b") else 8
    word = "r1"
    admin = context_of(subject_of(house.tenant, "tenant_admin"), house.tenant, None)
    for _ in range(wanted):
        word = publish_policy_revision(admin, document=document, note=uuid4().hex)
    return word


@dataclass(frozen=True)
class Route:
    """A REST path with the operation of each method."""

    path: str
    params: tuple[str, ...]
    operations: dict[str, str]

    def url(self, ids: dict[str, str]) -> str:
        found = self.path
        for name in self.params:
            found = found.replace(f"<{name}>", ids[name])
        return found


def routes() -> list[Route]:
    """Every route of the REST surface, from the resolver: nobody has to remember to list one."""
    found = []
    for path, pattern in _walk(get_resolver().url_patterns, "/"):
        operations = getattr(getattr(pattern.callback, "cls", None), "operation", None)
        if operations is None:
            continue
        params = tuple(pattern.pattern.converters)
        bare = path
        for name, kind in pattern.pattern.converters.items():
            bare = bare.replace(f"<{_kind(kind)}:{name}>", f"<{name}>")
        found.append(Route(bare, params, dict(operations)))
    return found


def _walk(patterns: Any, before: str) -> Iterator[tuple[str, URLPattern]]:
    for one in patterns:
        path = before + str(one.pattern)
        if isinstance(one, URLPattern):
            yield path, one
        else:
            yield from _walk(one.url_patterns, path)


def _kind(converter: Any) -> str:
    return {"UUIDConverter": "uuid", "StringConverter": "str", "SlugConverter": "slug"}[
        type(converter).__name__
    ]


def console_routes() -> list[tuple[str, tuple[str, ...]]]:
    """Every admin path that names something, with its parameters."""
    return [
        (path, tuple(pattern.pattern.converters))
        for path, pattern in _walk(get_resolver().url_patterns, "/")
        if path.startswith("/admin/")
        and pattern.pattern.regex.groupindex
        and getattr(pattern.pattern, "converters", None)
    ]


def document(place: Place) -> dict[str, Any]:
    with reading(place.everybody):
        return dict(current_policy(place.everybody).document)


def a_hash(place: Place) -> str:
    from factory.kernel.hashing import digest

    return digest(DIFF)


Body = Callable[[Place, dict[str, str]], Any]
PRICES = {"provider": "p", "name": "n", "unit": "calls", "price": {"amount": "1", "currency": "USD"}}
BODIES: dict[str, Body] = {
    "OnboardProject": lambda p, i: {"slug": f"p-{uuid4().hex[:8]}", "name": "New"},
    "SuspendProject": lambda p, i: {"reason": "why"},
    "KillProject": lambda p, i: {"reason": "why"},
    "RevokeToken": lambda p, i: {"jti": uuid4().hex, "reason": "lost"},
    "RevokeServiceAccount": lambda p, i: {"reason": "lost"},
    "JoinIdentity": lambda p, i: {
        "issuer": "https://idp.example",
        "subject": f"x|{uuid4().hex}",
        "person": i["subject"],
        "reason": "seen",
    },
    "EndIdentity": lambda p, i: {"reason": "gone"},
    "RevokeWorker": lambda p, i: {"reason": "lost"},
    "ResumeProject": lambda p, i: {"reason": "why"},
    "AddEnvironment": lambda p, i: {"slug": f"e-{uuid4().hex[:8]}"},
    "AddMember": lambda p, i: {"subject": f"new-{uuid4().hex[:8]}", "roles": ["Observer"]},
    "ChangeMember": lambda p, i: {"roles": ["Observer"], "version": 1},
    "DecideApproval": lambda p, i: {
        "decision": "approve",
        "version": 1,
        "proposalHash": a_hash(p),
        "reason": "seen",
    },
    "DecideApprovals": lambda p, i: {
        "items": [{"approvalId": i["approval_id"], "decision": "reject", "version": 9, "proposalHash": "x"}]
    },
    "LendRole": lambda p, i: {
        "role": "Reviewer",
        "delegate": subject_of(p.tenant, "tenant_admin"),
        "expiresAt": (datetime.now(UTC) + timedelta(hours=1)).isoformat(),
        "reason": "away",
    },
    "PublishPolicyRevision": lambda p, i: {"document": document(p), "note": "again"},
    "EvaluatePolicy": lambda p, i: {"actionClass": "shared-write", "environment": "staging"},
    "SubmitRelease": lambda p, i: {
        "asset": "sample",
        "version": f"9.0.{uuid4().int % 9999}",
        "repository": "https://git.example.test/sample.git",
        "commit": "b" * 40,
    },
    "RecordEvaluation": lambda p, i: {
        "releaseHash": "sha256:" + "0" * 64,
        "suite": "smoke",
        "suiteVersion": "1.0.0",
        "scores": {"found": 1.0},
        "evidenceHash": "sha256:" + "1" * 64,
    },
    "RequestReview": lambda p, i: {},
    "DeprecateRelease": lambda p, i: {"inFlight": "drain", "reason": "old"},
    "RevokeRelease": lambda p, i: {"inFlight": "drain", "reason": "old"},
    "MoveAlias": lambda p, i: {"releaseId": i["release_id"], "version": 1},
    "CreateBudget": lambda p, i: {
        "scope": "project",
        "period": label(month_of(datetime.now(UTC))),
        "amount": {"amount": "5.000000", "currency": "USD"},
    },
    "ChangeBudgetAmount": lambda p, i: {"amount": {"amount": "60", "currency": "USD"}, "version": 1},
    "ChangeRecurrence": lambda p, i: {"recurs": True, "version": 1},
    "SettleHold": lambda p, i: {"reason": "the bill says so", "evidence": "bill 7, line 3"},
    "PublishPricingRevision": lambda p, i: {"document": {"prices": [PRICES]}},
    "SubmitRun": lambda p, i: p.house.payload(),
    "CreateRunTemplate": lambda p, i: {
        "name": f"kind-{uuid4().hex[:8]}",
        "workflowId": "gated",
        "modelProfileId": "code-agent",
        "limits": {"maxCostUsd": 5, "maxMinutes": 30},
    },
    "RetireRunTemplate": lambda p, i: {"reason": "over"},
    "RequestWaiver": lambda p, i: {
        "releaseId": i["release_id"],
        "environmentIds": [i["environment_id"]],
        "expiresAt": (datetime.now(UTC) + timedelta(hours=1)).isoformat(),
        "reason": "every night",
    },
    "RevokeWaiver": lambda p, i: {"reason": "over"},
    "CancelRun": lambda p, i: {"reason": "stop"},
    "CloseAttention": lambda p, i: {"reason": "looked", "version": 1},
    "LiftFreeze": lambda p, i: {"reason": "looked at it"},
    "ResolveUncertainStep": lambda p, i: {"resolution": "give-up", "evidence": "looked", "version": 1},
}
BODIES |= {
    "CreateWebhook": lambda p, i: {"url": "https://hooks.example.com/new"},
    "ChangeWebhook": lambda p, i: {"url": "https://hooks.example.com/other", "version": 1},
    "DisableWebhook": lambda p, i: {"reason": "moved"},
    "EnableWebhook": lambda p, i: None,
    "RotateWebhookSecret": lambda p, i: None,
    "PingWebhook": lambda p, i: None,
    "RetryDelivery": lambda p, i: {"kind": "handlers", "reason": "again"},
    "SkipDelivery": lambda p, i: {"kind": "streams", "reason": "nobody needs it"},
}
BODIES |= {
    "ChangeOwnNotifications": lambda p, i: {"kinds": ["decided"], "version": 0},
    "AddChannel": lambda p, i: {"name": uuid4().hex, "address": f"ntfys://{uuid4().hex}"},
    "ChangeChannel": lambda p, i: {"name": "chat", "kinds": ["decided"], "version": 0},
    "TestChannel": lambda p, i: None,
    "RetryNotification": lambda p, i: {"reason": "again"},
}
BODILESS = {"RemoveMember", "RevokeDelegation", "RemoveChannel"}
READS = {"GET", "HEAD"}

NOBODY: dict[str, Callable[[], str]] = {
    "revision": lambda: "r99",
    "sha256": lambda: "sha256:" + uuid4().hex * 2,
    "asset": lambda: f"nothing-{uuid4().hex[:6]}",
    "alias": lambda: f"nothing-{uuid4().hex[:6]}",
}


def random_id(name: str) -> str:
    return NOBODY.get(name, lambda: str(uuid4()))()


def allowed_to(place: Place, operation: str) -> Context:
    """Who may do it in the place: whoever has all roles of a project, or the only one who may."""
    if table[operation].roles == {"PlatformAdmin"}:
        return context_of(subject_of(place.tenant, "platform_admin"), place.tenant, place.project)
    return place.everybody


def tenant_wide(place: Place, who: str = "tenant_admin") -> Context:
    return context_of(subject_of(place.tenant, who), place.tenant, None)


def runs_of(place: Place) -> list[Run]:
    with reading(place.everybody):
        return list(Run.objects.filter(project_id=place.project))


__all__ = [
    "BODIES",
    "BODILESS",
    "Place",
    "Route",
    "Scene",
    "allowed_to",
    "build",
    "console_routes",
    "replace",
    "routes",
]
