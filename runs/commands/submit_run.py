"""SubmitRun: everything that a run will rest on is resolved and pinned, and nothing is executed."""

from typing import Any
from uuid import UUID

import registry.selectors as registry
from approvals.operations import PolicyDenied
from approvals.selectors import PolicyView, current_policy, evaluate
from approvals.states import ActionClass, Effect
from factory.kernel.clock import now
from factory.kernel.commanding import OTHER_REQUEST, IdempotencyKey, IdempotentReplay, command
from factory.kernel.context import Context
from factory.kernel.errors import AlreadyThere, FieldError, IdempotencyConflict, InvalidInput
from factory.kernel.events import wire
from factory.kernel.hashing import digest
from factory.kernel.recording import record, save
from factory.kernel.tenancy import reading
from projects.operations import lock_active_project
from projects.selectors import environment
from registry.operations import hold_published
from registry.selectors import ReleaseView
from runs.engine import HUMAN, Node, nodes
from runs.errors import EnvironmentUnknown, ModelProfileNotApproved, PreviousRunOpen, PreviousRunUnknown
from runs.events import RunAccepted
from runs.models import Run, RunTemplate, Snapshot
from runs.operations.inputs import Submission
from runs.operations.metering import count_accepted
from runs.operations.templating import find_template, hold_template, under
from runs.states import RUN_TERMINAL, RunState


def submit_under_key(ctx: Context, *, submission: Submission, key: str) -> tuple[dict[str, Any], bool]:
    """Submit a run once under an idempotency key; return the answer, and whether it is an earlier one's.

    The same key with another payload is `IdempotencyConflict`; with the same one it is the first answer,
    whatever has changed since.
    """
    once = IdempotencyKey(key, submission.input_hash)
    try:
        return submit_run.under(once)(ctx, submission=submission, key=key), False
    except IdempotentReplay as done:
        return done.result, True
    except AlreadyThere:
        earlier = _answered_by_its_run(ctx, submission, key)
        if earlier is None:
            raise
        return earlier, True


def _answered_by_its_run(ctx: Context, submission: Submission, key: str) -> dict[str, Any] | None:
    """Answer as at first from the run itself: the record under an old key may have been purged."""
    with reading(ctx):
        run = Run.objects.filter(project_id=ctx.project_id, idempotency_key=key).first()
        if run is None:
            return None
        if run.input_hash != submission.input_hash:
            raise IdempotencyConflict(OTHER_REQUEST)
        return answer(run) | {"state": str(RunState.ACCEPTED), "version": 1}


@command("SubmitRun")
def submit_run(ctx: Context, *, submission: Submission, key: str) -> dict[str, Any]:
    """Accept a run: pin release, policy, model profile, snapshot and limits. → Accepted, `RunAccepted`.

    Guards: the project is Active, the workflow's release Published, the model profile approved by the
    policy in force and known to the release, the environment and the previous run of this project, and
    the input as the workflow's schema says. Emits RunAccepted, whose handler starts the run. Raises
    `ProjectNotActive`, `UnknownWorkflow`, `UnknownAlias`, `ReleaseNotPublished`, `ModelProfileNotApproved`,
    `EnvironmentUnknown`, `PreviousRunUnknown`, `PreviousRunOpen` (all 422), `InvalidInput`; from a template
    `TemplateUnknown`, `TemplateRetired`, `TemplateFixesIt` (422); `PolicyDenied` (403) where the policy
    denies what a step does without asking.
    """
    template = find_template(ctx, submission.template_id) if submission.template_id else None
    if template is not None:
        submission = under(template, submission)
    release = registry.resolve(
        submission.workflow_id, alias=submission.release_alias, release_id=submission.release_id
    )
    hold_published(ctx, release.id)
    project = lock_active_project(ctx)
    if template is not None:
        hold_template(ctx, template)
    policy = current_policy(ctx)
    _check(submission, release, policy, project.id, template)
    snapshot = _snapshot(submission, release, policy, template)
    save(snapshot)
    run = _run(ctx, submission, release, policy, snapshot, key)
    run.project_id = project.id
    record(ctx, run, "Submitted", _accepted(run), detail={"snapshotId": snapshot.id, "key": digest(key)})
    count_accepted(ctx, run)
    return answer(run)


def answer(run: Run) -> dict[str, Any]:
    """The body that a submission is answered with."""
    body: dict[str, Any] = wire(
        {
            "runId": run.id,
            "state": str(run.state),
            "workflowId": run.workflow_id,
            "releaseId": run.release_id,
            "releaseHash": run.release_hash,
            "policyRevision": run.policy_revision,
            "modelProfileId": run.model_profile_id,
            "templateId": run.template_id,
            "snapshotId": run.snapshot_id,
            "inputHash": run.input_hash,
            "requestedBy": run.requested_by,
            "version": run.version,
            "createdAt": run.created_at,
            "links": {"self": f"/factory/runs/{run.id}", "watch": f"/factory/watch?runId={run.id}"},
        }
    )
    return body


def _check(
    submission: Submission,
    release: ReleaseView,
    policy: PolicyView,
    project_id: UUID,
    template: RunTemplate | None,
) -> None:
    _check_input(submission, release, template)
    _check_profile(submission.model_profile_id, release, policy)
    _check_classes(release, policy, _environment_slug(submission, project_id))
    if submission.previous_run_id:
        _check_previous(submission.previous_run_id, project_id)


def _environment_slug(submission: Submission, project_id: UUID) -> str | None:
    """Return the slug of the environment that is named; None where none is."""
    if not submission.environment_id:
        return None
    its_environment = environment(project_id, submission.environment_id)
    if its_environment is None:
        problem = "The project has no such environment."
        raise EnvironmentUnknown(problem, errors=[FieldError("/environmentId", problem)])
    return its_environment.slug


def _check_classes(release: ReleaseView, policy: PolicyView, place: str | None) -> None:
    """Refuse what the policy denies of what asks nobody: a step that is not gated is never stopped later."""
    free = [each for each in nodes(release.workflow) if each.kind != HUMAN and not _is_gated(each)]
    denied = {
        word: verdict
        for word in {node.side_effect_class for node in free}
        if (verdict := evaluate(policy, word, place)).effect is Effect.DENY
    }
    if denied:
        keys = ", ".join(node.key for node in free if node.side_effect_class in denied)
        rules = "; ".join(verdict.rule for verdict in denied.values())
        words = " and ".join(sorted(denied))
        raise PolicyDenied(f"Policy {policy.revision} denies {words} here ({rules}): the steps {keys}.")


def _is_gated(node: Node) -> bool:
    return ActionClass(node.side_effect_class).gated


def _check_input(submission: Submission, release: ReleaseView, template: RunTemplate | None) -> None:
    """Both schemas are asked; who is refused hears whose it is that says no."""
    by_workflow, by_template = registry.input_faults(release.workflow, submission.input), []
    if template is not None and template.input_schema is not None:
        own = {"inputSchema": template.input_schema}
        by_template = registry.input_faults(own, submission.input, whose="run template")
    asking = ["the workflow"] * bool(by_workflow)
    if template is not None and by_template:
        asking.append(f"the run template {template.name}")
    if asking:
        problem = f"The input is not what {' and '.join(asking)} asks for."
        raise InvalidInput(problem, errors=[*by_workflow, *by_template])


def _check_profile(profile: str, release: ReleaseView, policy: PolicyView) -> None:
    """The release has to know it and the policy to allow it; who is refused hears which of them does not."""
    known, allowed = registry.model_profiles(release.id), policy.document["modelProfiles"]
    if profile in known and profile in allowed:
        return
    lacking = "this release's manifest" if profile not in known else f"policy revision {policy.revision}"
    both = ", ".join(sorted(set(known) & set(allowed))) or "none"
    problem = (
        f"The model profile {profile} is not approved for this release and policy: "
        f"{lacking} does not name it. Both name: {both}."
    )
    raise ModelProfileNotApproved(problem, errors=[FieldError("/modelProfileId", problem)])


def _check_previous(previous: UUID, project_id: UUID) -> None:
    """A run is run again when it is over: until then its own retries and people see to it."""
    state = Run.objects.filter(pk=previous, project_id=project_id).values_list("state", flat=True).first()
    if state is None:
        problem = "The project has no such run."
        raise PreviousRunUnknown(problem, errors=[FieldError("/previousRunId", problem)])
    if state not in RUN_TERMINAL:
        problem = f"The run is {state}: wait for its end, or cancel it, before it is run again."
        raise PreviousRunOpen(problem, errors=[FieldError("/previousRunId", problem)])


def _limits(submission: Submission, policy: PolicyView) -> dict[str, Any]:
    defaults = policy.document["defaults"]
    return {
        "maxCostUsd": submission.max_cost_usd or defaults["maxCostUsd"],
        "maxMinutes": submission.max_minutes or defaults["maxMinutes"],
    }


def _snapshot(
    submission: Submission, release: ReleaseView, policy: PolicyView, template: RunTemplate | None
) -> Snapshot:
    content: dict[str, Any] = wire(
        {
            "input": submission.input,
            "workflow": release.workflow,
            "release": {
                "id": release.id,
                "hash": release.hash,
                "asset": release.asset,
                "version": release.version,
                "commit": release.commit,
            },
            "policy": {
                "policyId": policy.policy_id,
                "revision": policy.revision,
                "documentHash": policy.document_hash,
            },
            "modelProfileId": submission.model_profile_id,
            "environmentId": submission.environment_id,
            "limits": _limits(submission, policy),
        }
    )
    if template is not None:
        pinned = {"id": template.id, "name": template.name, "hash": template.content_hash}
        content["template"] = wire(pinned)
    return Snapshot(content=content, hash=digest(content), created_at=now())


def _run(
    ctx: Context,
    submission: Submission,
    release: ReleaseView,
    policy: PolicyView,
    snapshot: Snapshot,
    key: str,
) -> Run:
    at = now()
    return Run(
        environment_id=submission.environment_id,
        workflow_id=submission.workflow_id,
        release_id=release.id,
        release_hash=release.hash,
        policy_id=policy.id,
        policy_name=policy.policy_id,
        policy_revision=policy.revision,
        model_profile_id=submission.model_profile_id,
        snapshot=snapshot,
        input_hash=submission.input_hash,
        limits=snapshot.content["limits"],
        requested_by=ctx.actor.subject,
        requester_person=ctx.actor.person or ctx.actor.subject,
        idempotency_key=key,
        previous_run_id=submission.previous_run_id,
        template_id=submission.template_id,
        created_at=at,
        updated_at=at,
    )


def _accepted(run: Run) -> RunAccepted:
    return RunAccepted(
        run_id=run.id,
        tenant_id=run.snapshot.tenant_id,
        project_id=run.project_id,
        workflow_id=run.workflow_id,
        release_id=run.release_id,
        policy_revision=run.policy_revision,
        model_profile_id=run.model_profile_id,
        requested_by=run.requested_by,
    )
