"""What each call of a worker does: one command, and its answer in the wire's words. Blocking."""

from typing import Any
from uuid import UUID

from factory.kernel.context import Context
from factory.kernel.permissions import authorize
from factory.kernel.tenancy import reading
from registry.selectors import file_content, load_release
from runs.commands import (
    ParkRequest,
    acquire_lease,
    record_receipts,
    register_worker,
    report,
    request_approval,
    take_authorization,
)
from runs.dispatch import drain_worker, poll_worker
from runs.watch.bodies import wire_form
from runs.watch.scopes import context_of_release

Told = tuple[Any, int]


def register(ctx: Context, name: str, values: dict[str, Any]) -> Any:
    return {"instanceId": register_worker(ctx, name=name, **values)}


def drain(ctx: Context, name: str, instance_id: UUID) -> Any:
    drain_worker(ctx, name=name, instance_id=instance_id)
    return {}


def poll(ctx: Context, name: str, instance_id: UUID) -> list[Any]:
    assignments: list[Any] = wire_form(poll_worker(ctx, name=name, instance_id=instance_id))
    return assignments


def lease(ctx: Context, attempt_id: UUID, instance_id: UUID | None, values: dict[str, Any]) -> Told:
    return wire_form(acquire_lease(ctx, attempt_id=attempt_id, instance_id=instance_id, **values)), 200


def receipts(ctx: Context, attempt_id: UUID, instance_id: UUID | None, values: dict[str, Any]) -> Told:
    """202 for what came under a lease that is over: paid for all the same, and marked so."""
    taken = record_receipts(ctx, attempt_id=attempt_id, **values)
    answers = [_without_nulls(answer) for answer in wire_form(taken.receipts)]
    body = {"recorded": taken.recorded, "receipts": answers}
    return (body | {"superseded": True}, 202) if taken.superseded else (body, 200)


def approval(ctx: Context, attempt_id: UUID, instance_id: UUID | None, values: dict[str, Any]) -> Told:
    park = values.pop("park")
    asked = request_approval(
        ctx, attempt_id=attempt_id, park=None if park is None else ParkRequest(park["checkpoint"]), **values
    )
    body = _without_nulls(wire_form(asked))
    body.pop("opened")
    body.pop("parked")
    return body, 201 if asked.opened else 200


def authorization(ctx: Context, attempt_id: UUID, instance_id: UUID | None, values: dict[str, Any]) -> Told:
    taken = take_authorization(ctx, attempt_id=attempt_id, **values)
    body = {"authorizationId": taken.id, "authorizedAt": taken.authorized_at}
    if taken.waiver_id is not None:
        body["waiverId"] = taken.waiver_id
    return wire_form(body), 200


def outcome(ctx: Context, attempt_id: UUID, instance_id: UUID | None, values: dict[str, Any]) -> Told:
    """Report the outcome, which counts, and name what was refused of its lists, where there is anything."""
    recorded = report(ctx, attempt_id=attempt_id, **values)
    body = {
        "attemptId": recorded.attempt_id,
        "outcome": recorded.outcome,
        "outcomeHash": recorded.outcome_hash,
        "refusedReceipts": [each.named() for each in recorded.refused_receipts],
        "refusedArtifacts": [each.named() for each in recorded.refused_artifacts],
    }
    return wire_form({name: value for name, value in body.items() if value != []}), 200


def manifest(ctx: Context, release_id: UUID) -> Any:
    authorize(ctx, "LoadReleaseForWork")
    scope = context_of_release(ctx, release_id)
    with reading(scope):
        return load_release(release_id)


def file(ctx: Context, release_id: UUID, sha256: str) -> bytes:
    authorize(ctx, "LoadReleaseForWork")
    scope = context_of_release(ctx, release_id)
    with reading(scope):
        return file_content(release_id, sha256)


def _without_nulls(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if value is not None}
