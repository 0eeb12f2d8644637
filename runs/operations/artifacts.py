"""Artifacts: what an attempt leaves in a store of its own. Kept here are where, its hash and its size."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.errors import FieldError
from factory.kernel.hashing import storable
from factory.kernel.recording import audit
from runs.models import Artifact
from runs.operations.holding import LockedAttempt
from runs.selectors.answers import RefusedItem

MOST_URI = 2048
MOST_SIZE = 2**53 - 1
HASH = re.compile(r"sha256:[0-9a-f]{64}")
URI = re.compile(r"[a-z][a-z0-9+.-]*:[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]+")
NO_STORE = frozenset({"javascript", "data", "vbscript", "file", "blob"})


def judge_artifacts(artifacts: Sequence[Any]) -> tuple[list[Mapping[str, Any]], tuple[RefusedItem, ...]]:
    """Return the artifacts that are sound, and those that are refused by name.

    A faulty one costs itself alone. Nobody looks whether the store has it.
    """
    sound: dict[str, Mapping[str, Any]] = {}
    refused = []
    for index, artifact in enumerate(artifacts):
        at = f"/artifacts/{index}"
        faults = _faults_of(artifact, at)
        if not faults and artifact["uri"] in sound:
            faults = [FieldError(f"{at}/uri", "Named twice.")]
        if faults:
            refused.append(_refused(artifact, at, faults))
        else:
            sound[artifact["uri"]] = artifact
    return list(sound.values()), tuple(refused)


def _refused(artifact: Any, at: str, faults: Sequence[FieldError]) -> RefusedItem:
    uri = artifact.get("uri") if isinstance(artifact, Mapping) else None
    named = storable(uri, MOST_URI) if isinstance(uri, str) else None
    detail = "; ".join(f"{fault.pointer}: {fault.detail}" for fault in faults)
    return RefusedItem(at, "invalid-artifact", detail, uri=named)


def _faults_of(artifact: Any, at: str) -> list[FieldError]:
    if not isinstance(artifact, Mapping) or set(artifact) != {"uri", "hash", "size"}:
        return [FieldError(at, "An object of exactly uri, hash and size.")]
    faults = []
    uri, size = artifact["uri"], artifact["size"]
    if not isinstance(uri, str) or len(uri) > MOST_URI or not URI.fullmatch(uri) or not _is_store(uri):
        faults.append(FieldError(f"{at}/uri", "Where a store keeps it, without anybody's password in it."))
    if not isinstance(artifact["hash"], str) or not HASH.fullmatch(artifact["hash"]):
        faults.append(FieldError(f"{at}/hash", "sha256: and 64 hexadecimal digits."))
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= MOST_SIZE:
        faults.append(FieldError(f"{at}/size", "Its size in bytes."))
    return faults


def _is_store(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
        return parts.scheme not in NO_STORE and parts.password is None
    except ValueError:
        return False


@operation
def keep_artifacts(
    ctx: Context,
    locked: LockedAttempt,
    artifacts: Sequence[Mapping[str, Any]],
    refused: Sequence[RefusedItem],
    at: datetime,
) -> None:
    """Store the artifacts that `judge_artifacts` found sound, and audit what it refused."""
    for each in refused:
        audit(
            ctx,
            "RefuseArtifact",
            subject=f"attempt:{locked.attempt.id}",
            outcome="refused",
            reason=each.detail,
            detail=each.named(),
            stream=locked.run.id,
        )
    Artifact.objects.bulk_create(
        Artifact(
            tenant_id=ctx.tenant_id,
            run_id=locked.run.id,
            step_id=locked.step.id,
            attempt_id=locked.attempt.id,
            recorded_at=at,
            **artifact,
        )
        for artifact in artifacts
    )
