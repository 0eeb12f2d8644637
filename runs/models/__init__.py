"""The tables of runs: the tenant's own, and the platform's of workers."""

from runs.models.attempt import Attempt
from runs.models.evidence import (
    Artifact,
    CancellationIntent,
    Freeze,
    Receipt,
    RefusedReceipt,
    Resolution,
    Snapshot,
)
from runs.models.lease import Lease
from runs.models.quota import TenantQuota
from runs.models.run import Run
from runs.models.step import Step
from runs.models.template import RunTemplate
from runs.models.worker import FencingEpoch, Worker, WorkerPool

__all__ = [
    "Artifact",
    "Attempt",
    "CancellationIntent",
    "FencingEpoch",
    "Freeze",
    "Lease",
    "Receipt",
    "RefusedReceipt",
    "Resolution",
    "Run",
    "RunTemplate",
    "Snapshot",
    "Step",
    "TenantQuota",
    "Worker",
    "WorkerPool",
]
