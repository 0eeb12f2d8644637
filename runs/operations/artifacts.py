"""Artifacts: what an attempt leaves in a store of its own. Kept here are where, its hash and its size."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from factory.commanding import operation
from factory.context import Context
from factory.errors import FieldError, InvalidInput
from runs.models import Artifact
from runs.operations.holding import Tried

MOST_ARTIFACTS = 100
MOST_URI = 2048
MOST_SIZE = 2**53 - 1
HASH = re.compile(r"sha256:[0-9a-f]{64}")
URI = re.compile(r"[a-z][a-z0-9+.-]*:[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]+")
NO_STORE = frozenset({"javascript", "data", "vbscript", "file", "blob"})


def check_artifacts(artifacts: Sequence[Mapping[str, Any]]) -> None:
    """Raises `InvalidInput` with a pointer to each fault. Nobody looks whether the store has it."""
    faults = []
    if len(artifacts) > MOST_ARTIFACTS:
        faults.append(FieldError("/artifacts", f"At most {MOST_ARTIFACTS}."))
    seen: set[str] = set()
    for index, artifact in enumerate(artifacts[:MOST_ARTIFACTS]):
        at = f"/artifacts/{index}"
        if set(artifact) != {"uri", "hash", "size"}:
            faults.append(FieldError(at, "Exactly uri, hash and size."))
            continue
        faults += _faults_of(artifact, at)
        if artifact["uri"] in seen:
            faults.append(FieldError(f"{at}/uri", "Named twice."))
        seen.add(str(artifact["uri"]))
    if faults:
        raise InvalidInput("An artifact is not valid.", errors=faults)


def _faults_of(artifact: Mapping[str, Any], at: str) -> list[FieldError]:
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
def keep_artifacts(ctx: Context, tried: Tried, artifacts: Sequence[Mapping[str, Any]], at: datetime) -> None:
    """Store what the outcome names; `check_artifacts` has looked at it."""
    Artifact.objects.bulk_create(
        Artifact(
            tenant_id=ctx.tenant_id,
            run_id=tried.run.id,
            step_id=tried.step.id,
            attempt_id=tried.attempt.id,
            recorded_at=at,
            **artifact,
        )
        for artifact in artifacts
    )
