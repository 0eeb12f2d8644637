"""A house with a published release, money, and workers that poll: all that runs need, by real commands."""

from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any
from uuid import UUID, uuid4

from django.db import connections, transaction

from approvals.commands import adopt_platform_policy, decide_approval
from approvals.selectors import approval, approvals_of_run, pending_of_run
from factory.kernel.context import Actor, Context
from factory.kernel.hashing import canonical, digest
from factory.kernel.tenancy import reading
from registry.commands import record_evaluation, request_review, resolve_closure, submit_release
from registry.manifest.closure import close
from registry.manifest.definitions import check
from registry.publication.resolving import dependency_hashes
from registry.selectors import release as release_view
from runs.commands import (
    ParkRequest,
    acquire_lease,
    record_receipts,
    register_worker,
    report_outcome,
    request_approval,
    serve_tenant,
    start_run,
    take_authorization,
)
from runs.dispatch import poll_worker
from runs.models import Attempt, Lease, Run, Step
from runs.rest.submissions import submit
from runs.selectors import assignment_scope
from runs.selectors.answers import ApprovalResult, OfferedAttempt
from tests.support.months import Funded
from tests.support.world import World, world
from usage.commands import establish_pricing, publish_pricing_revision
from usage.pricing.quotes import default_document

PROFILE = "code-agent"
PATCH = """\
--- a/report.md
+++ b/report.md
@@ -1 +1,2 @@
 # Report
+{}
"""
DIFF = {"kind": "unified-diff", "diff": PATCH.format("All is well.")}
OTHER_DIFF = {"kind": "unified-diff", "diff": PATCH.format("All is very well.")}


def said(text: str) -> dict[str, str]:
    """A proposal in plain words."""
    return {"kind": "text", "text": text}


def node(key: str, *depends_on: str, side_effect_class: str = "read", **more: Any) -> dict[str, Any]:
    skill = {"read": "look", "sandbox": "build", "shared-write": "write"}[side_effect_class]
    made = {"key": key, "kind": "agent", "agentId": "analyst", "skillId": skill, **more}
    made["sideEffectClass"] = side_effect_class
    return made | {"dependsOn": list(depends_on)} if depends_on else made


def human(key: str, *depends_on: str, **more: Any) -> dict[str, Any]:
    made = {"key": key, "kind": "human", "question": f"{key}?", "sideEffectClass": "shared-write", **more}
    return made | {"dependsOn": list(depends_on)}


def workflow(workflow_id: str, *nodes: dict[str, Any]) -> dict[str, Any]:
    """The last node's output is the run's."""
    schema = {
        "type": "object",
        "additionalProperties": False,
        "required": ["repository"],
        "properties": {"repository": {"type": "string"}, "go": {"type": "boolean"}},
    }
    return {
        "workflowId": workflow_id,
        "version": "1.0.0",
        "title": workflow_id,
        "inputSchema": schema,
        "nodes": list(nodes),
        "output": nodes[-1]["key"],
    }


WORKFLOWS = [
    workflow("single", node("look")),
    workflow("stubborn", node("look", maxAttempts=1)),
    workflow("brief", node("look", timeoutMinutes=1)),
    workflow("diamond", node("a"), node("b", "a"), node("c", "a"), node("d", "b", "c")),
    workflow("gated", node("publish", side_effect_class="shared-write")),
    workflow(
        "narrow",
        node("publish", side_effect_class="shared-write", gate={"roles": ["WorkspaceAdmin"], "quorum": 2}),
    ),
    workflow("hasty", node("publish", side_effect_class="shared-write", timeoutMinutes=1)),
    workflow(
        "gates",
        node("one", side_effect_class="shared-write"),
        node("two", side_effect_class="shared-write"),
        node("end", "one", "two"),
    ),
    workflow(
        "row",
        node("one", side_effect_class="shared-write"),
        node("two", "one", side_effect_class="shared-write"),
    ),
    workflow(
        "five",
        *(node(f"n{i}", side_effect_class="shared-write") for i in range(5)),
        node("end", *(f"n{i}" for i in range(5))),
    ),
    workflow(
        "mixed",
        node("gate", side_effect_class="shared-write"),
        node("side"),
        node("end", "gate", "side"),
    ),
    workflow(
        "branches",
        node("scan"),
        node("fix", "scan", when="steps.scan.severity == 'high' && input.go"),
        node("check", "fix"),
        node("end", "scan", "check"),
    ),
    workflow("idle", node("a", when="input.go"), node("b", "a")),
    workflow(
        "modules",
        node("scan"),
        node("module", "scan", forEach="steps.scan.modules", correctionLimit=2),
        node("end", "module"),
    ),
    workflow("asked", human("ask"), node("end", "ask", when="steps.ask.decision == 'approve'")),
    workflow("twice", node("scan"), human("one", "scan"), human("two", "scan"), node("end", "one", "two")),
    workflow("word", human("first"), human("last", "first") | {"gate": {"roles": ["WorkspaceAdmin"]}}),
]
MANIFEST: dict[str, Any] = {
    "schemaVersion": 1,
    "asset": "sample",
    "version": "1.0.0",
    "agents": [
        {
            "agentId": "analyst",
            "description": "Looks.",
            "entry": "a.md",
            "skills": ["look", "build", "write"],
        }
    ],
    "skills": [
        {
            "skillId": name,
            "description": name,
            "files": ["s.py"],
            "sideEffectClass": reach,
            "tools": [{"name": f"tool.{name}", "sideEffectClass": reach}],
        }
        for name, reach in (("look", "read"), ("build", "sandbox"), ("write", "shared-write"))
    ],
    "workflows": WORKFLOWS,
    "modelProfiles": [{"modelProfileId": PROFILE, "description": "No model."}],
    "evaluation": {
        "suite": "smoke",
        "version": "1.0.0",
        "entry": "e.py",
        "files": ["e.py"],
        "thresholds": {"found": 1.0},
    },
}


@cache
def _sound() -> bool:
    return check(MANIFEST) == []


def receipt(**changes: Any) -> dict[str, Any]:
    """A call of a priced tool."""
    usual = {"receiptId": str(uuid4()), "kind": "tool", "provider": "factory-tools", "name": "git-log"}
    usual |= {"quantities": {"calls": 1, "seconds": 2.5}, "occurredAt": datetime.now(UTC).isoformat()}
    return usual | {"details": {}} | changes


def costing(amount: str) -> dict[str, Any]:
    return receipt(cost={"amount": amount, "currency": "USD"}, quantities=None)


TOKENS = {"inputTokens": 12_400, "outputTokens": 850}


def thinking(name: str = "big-1", **changes: Any) -> dict[str, Any]:
    """A call of a model, with its tokens: of unknown cost until the model has a price."""
    usual = {"kind": "model", "provider": "gateway.example", "name": name, "quantities": TOKENS}
    return receipt(**usual | changes)


def price_models(house: "House", **costs: str) -> None:
    """Publish prices, besides those of the product's tools, by which `thinking` costs this much by model."""
    document = deepcopy(default_document())
    names = {
        name.replace("_", "-"): {
            "inputTokens": f"{round(Decimal(cost) / TOKENS['inputTokens'], 16):f}",
            "outputTokens": "0",
        }
        for name, cost in costs.items()
    }
    document["providers"]["gateway.example"] = {"prices": names}
    publish_pricing_revision(house.system, document=document)


def effect(approval_id: UUID | None, proposal: Any = DIFF, **details: Any) -> dict[str, Any]:
    return receipt(
        kind="effect",
        quantities=None,
        approvalId=str(approval_id) if approval_id else None,
        proposalHash=digest(proposal),
        details=details,
    )


@dataclass
class Hand:
    """A registered worker, as its HTTP calls would move it."""

    house: "House"
    name: str
    slots: int = 4
    capabilities: tuple[str, ...] = ("*/*",)
    subject: str = ""
    instance: UUID = field(init=False)

    def __post_init__(self) -> None:
        self.subject = self.subject or f"worker:{self.name}"
        self.register()

    @property
    def ctx(self) -> Context:
        scopes = frozenset({"factory.worker"})
        actor = Actor(self.subject, "worker", scopes=scopes, pool=self.house.pool)
        return Context("", None, actor, channel="worker")

    def scope(self, attempt_id: UUID) -> Context:
        return assignment_scope(self.ctx, attempt_id)

    def register(self) -> UUID:
        self.instance = register_worker(
            self.ctx,
            name=self.name,
            capabilities=self.capabilities,
            max_concurrency=self.slots,
            version="1",
        )
        return self.instance

    def poll(self) -> list[OfferedAttempt]:
        return poll_worker(self.ctx, name=self.name, instance_id=self.instance)

    def take(self) -> OfferedAttempt:
        """Poll for exactly one assignment, and acquire it."""
        [work] = self.poll()
        self.acquire(work)
        return work

    def acquire(self, work: OfferedAttempt, **other: Any) -> Any:
        return acquire_lease(self.scope(work.attempt_id), **self.fence(work), **other)

    def fence(self, work: OfferedAttempt) -> dict[str, Any]:
        return {
            "attempt_id": work.attempt_id,
            "lease_id": work.lease_id,
            "fencing_token": work.fencing_token,
        }

    def receipts(self, work: OfferedAttempt, *receipts: dict[str, Any]) -> Any:
        return record_receipts(self.scope(work.attempt_id), **self.fence(work), receipts=list(receipts))

    def report(
        self,
        work: OfferedAttempt,
        outcome: str = "Succeeded",
        failure_class: str | None = None,
        *,
        output: Any = None,
        reason: str | None = None,
        receipts: Any = (),
        **other: Any,
    ) -> Any:
        told = {
            "outcome": outcome,
            "failureClass": failure_class,
            "reason": reason,
            "output": output,
        }
        values = {
            "outcome": outcome,
            "failure_class": failure_class,
            "reason": reason,
            "output": output,
            "outcome_hash": digest(told),
            "receipts": receipts,
        }
        return report_outcome(self.scope(work.attempt_id), **self.fence(work), **{**values, **other})

    def fail(self, work: OfferedAttempt, failure_class: str = "transient", **other: Any) -> Any:
        return self.report(work, "Failed", failure_class, reason="it broke", **other)

    def ask(
        self, work: OfferedAttempt, proposal: Any = DIFF, *, park: bool | ParkRequest = False, **other: Any
    ) -> ApprovalResult:
        values = {
            "release_id": UUID(work.release["id"]),
            "snapshot_id": UUID(work.snapshot["snapshotId"]),
            "policy_revision": work.snapshot["policyRevision"],
            "action_class": "shared-write",
            "environment_id": None,
            "proposal": proposal,
            "proposal_hash": digest(proposal),
            "summary": "publish wants to commit report.md (+142)",
            "park": ParkRequest({"at": "proposal"}) if park is True else park or None,
        }
        return request_approval(self.scope(work.attempt_id), **self.fence(work), **{**values, **other})

    def authorize(self, work: OfferedAttempt, approval_id: UUID, proposal: Any = DIFF) -> Any:
        return take_authorization(
            self.scope(work.attempt_id),
            **self.fence(work),
            approval_id=approval_id,
            proposal_hash=digest(proposal),
        )


class House:
    """A tenant in which runs can be submitted, worked at and decided on."""

    def __init__(self, tenant_id: str, budget: str = "1000") -> None:
        self.world: World = world(tenant_id)
        self.tenant, self.pool = tenant_id, f"pool-{tenant_id}"
        self.system = self.world.system("test")
        adopt_platform_policy(self.system)
        establish_pricing(self.system)
        self.money = Funded(self.system, self.world.project, budget)
        serve_tenant(self.system, pool=self.pool, tenant_id=tenant_id)
        self.release = self.publish()

    def publish(self, definition: dict[str, Any] = MANIFEST, commit: str = "a" * 40, **files: bytes) -> UUID:
        """A release of this manifest, reviewed and Published; `latest` of its asset names it from now on."""
        made = self.candidate(definition, commit, **files)
        with reading(self.system):
            asked = release_view(made).approval_id
        assert asked is not None
        self.decide(asked)
        return made

    def candidate(
        self, definition: dict[str, Any] = MANIFEST, commit: str = "a" * 40, **files: bytes
    ) -> UUID:
        """The same before the decision: InReview. `files` are other contents, by name without the ending."""
        assert _sound() if definition is MANIFEST else check(definition) == []
        w = self.world
        with reading(self.system):
            dependencies = dependency_hashes(definition.get("dependencies", ()))
        made = UUID(
            submit_release(
                w.workspace_admin,
                asset=definition["asset"],
                version=definition["version"],
                repository="https://git.example.test/sample.git",
                commit=commit,
            )
        )
        contents = {"a.md": b"Look.\n", "s.py": b"def run(c): ...\n", "e.py": b"print()\n"}
        contents |= {name: files[name[0]] for name in contents if name[0] in files}
        found = close(
            commit=commit,
            definition=definition,
            manifest=canonical(definition),
            contents=contents,
            dependencies=dependencies,
        )
        resolve_closure(self.system, release_id=made, resolved=found)
        record_evaluation(
            w.workspace_admin,
            release_id=made,
            release_hash=found.hash,
            suite="smoke",
            suite_version="1.0.0",
            scores={"found": 1.0},
            evidence_hash=digest("evidence"),
        )
        request_review(w.workspace_admin, release_id=made)
        return made

    def payload(self, workflow_id: str = "single", **changes: Any) -> dict[str, Any]:
        usual = {
            "workflowId": workflow_id,
            "releaseAlias": "latest",
            "modelProfileId": PROFILE,
            "input": {"repository": "https://git.example.test/x.git"},
            "limits": {"maxCostUsd": 5, "maxMinutes": 30},
        }
        return usual | changes

    def accept(self, workflow_id: str = "single", **changes: Any) -> UUID:
        """An Accepted run whose handler has not run yet."""
        self.money.keep()
        body, _ = submit(self.world.requester, payload=self.payload(workflow_id, **changes), key=str(uuid4()))
        return UUID(body["runId"])

    def run(self, workflow_id: str = "single", **changes: Any) -> UUID:
        """A run whose money is set aside and whose first steps wait for a worker."""
        run_id = self.accept(workflow_id, **changes)
        start_run(self.system, run_id=run_id)
        return run_id

    def hand(self, name: str = "w1", slots: int = 4, **other: Any) -> Hand:
        return Hand(self, name, slots, **other)

    def decide(
        self, approval_id: UUID, decision: str = "approve", by: Context | None = None, reason: str = "as seen"
    ) -> Any:
        ctx = by or self.world.reviewer
        with reading(ctx):
            view = approval(approval_id)
        return decide_approval(
            ctx,
            approval_id=approval_id,
            decision=decision,
            version=view.version,
            proposal_hash=view.proposal_hash,
            reason=reason,
        )

    def row(self, run_id: UUID) -> Run:
        with reading(self.system):
            return Run.objects.select_related("snapshot").get(pk=run_id)

    def state(self, run_id: UUID) -> str:
        return str(self.row(run_id).state)

    def steps(self, run_id: UUID) -> dict[str, Step]:
        with reading(self.system):
            return {step.node_key: step for step in Step.objects.filter(run_id=run_id)}

    def step_states(self, run_id: UUID) -> dict[str, str]:
        return {key: str(step.state) for key, step in self.steps(run_id).items()}

    def attempts(self, run_id: UUID) -> list[Attempt]:
        with reading(self.system):
            return list(Attempt.objects.filter(run_id=run_id).order_by("dispatched_at", "id"))

    def attempt(self, attempt_id: UUID) -> Attempt:
        with reading(self.system):
            return Attempt.objects.get(pk=attempt_id)

    def leases(self, run_id: UUID) -> list[Lease]:
        with reading(self.system):
            return list(Lease.objects.filter(run_id=run_id).order_by("fencing_token"))

    def pending(self, run_id: UUID) -> list[Any]:
        with reading(self.system):
            return pending_of_run(run_id)

    def approvals(self, run_id: UUID) -> list[Any]:
        with reading(self.system):
            return approvals_of_run(run_id)

    def let_lapse(self, lease_id: UUID, seconds: float = 3600) -> None:
        """The lease's end was so many seconds ago: time that nobody has to sit through."""
        self._owner(
            "UPDATE runs_lease SET expires_at = clock_timestamp() - make_interval(secs => %s) WHERE id = %s",
            [seconds, lease_id],
        )

    def make_due(self, run_id: UUID) -> None:
        """Retries of this run wait no longer."""
        self._owner(
            "UPDATE runs_step SET next_dispatch_at = clock_timestamp() "
            "WHERE run_id = %s AND next_dispatch_at IS NOT NULL",
            [run_id],
        )

    def pass_deadline(self, run_id: UUID) -> None:
        self._owner(
            "UPDATE runs_run SET deadline_at = statement_timestamp() - interval '1 second', "
            "started_at = started_at - (deadline_at - statement_timestamp()) - interval '1 second' "
            "WHERE id = %s",
            [run_id],
        )

    def _owner(self, sql: str, params: list[Any], *, unpinned: bool = False) -> None:
        """As the tables' owner, who alone can make time pass; `unpinned` even for what is pinned."""
        table = sql.split()[1]
        with transaction.atomic(using="owner"), connections["owner"].cursor() as cursor:
            cursor.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
            if unpinned:
                cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER pinned_columns")
            cursor.execute(sql, params)
            if unpinned:
                cursor.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER pinned_columns")
            cursor.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
