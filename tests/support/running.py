"""A house with a published release, money, and workers that poll: all that runs need, by real commands."""

from typing import Any
from uuid import UUID, uuid4

from django.db import connections, transaction

from approvals.commands import adopt_platform_policy, decide_approval
from approvals.selectors import approval, approvals_of_run, pending_of_run
from factory.kernel.context import Context
from factory.kernel.hashing import canonical, digest
from factory.kernel.tenancy import reading
from registry.commands import record_evaluation, request_review, resolve_closure, submit_release
from registry.manifest.closure import close
from registry.manifest.definitions import check
from registry.publication.resolving import dependency_hashes
from registry.selectors import release as release_view
from runs.commands import (
    serve_tenant,
    start_run,
)
from runs.models import Attempt, Lease, Run, Step
from runs.rest.submissions import submit
from tests.support.hands import Hand
from tests.support.months import Funded
from tests.support.workflows import MANIFEST, PROFILE, is_sound
from tests.support.world import World, world
from usage.commands import establish_pricing


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
        assert is_sound() if definition is MANIFEST else check(definition) == []
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
