"""Which runs a violation is about: the auditor speaks of entities, entries and events."""

import re
from collections.abc import Iterable
from uuid import UUID

from approvals.selectors import runs_of_approvals
from factory.kernel.ids import IN_WORDS
from factory.kernel.models import AuditEntry, OutboxEvent
from runs.models import Attempt, Lease, Run, Step

_UUID = re.compile(IN_WORDS)


def runs_of_subjects(subjects: Iterable[str]) -> dict[str, UUID]:
    """By subject, the run that it is about; subjects that are about no run are left out."""
    ids = {subject: UUID(found[0]) for subject in subjects if (found := _UUID.findall(subject))}
    runs = _runs_of(set(ids.values()))
    return {subject: runs[key] for subject, key in ids.items() if key in runs}


def _runs_of(ids: set[UUID]) -> dict[UUID, UUID]:
    run_ids = {key: key for key in Run.objects.filter(pk__in=ids).values_list("pk", flat=True)}
    for model in (Step, Attempt, Lease):
        run_ids |= dict(model.objects.filter(pk__in=ids).values_list("pk", "run_id"))
    run_ids |= runs_of_approvals(ids)
    run_ids |= dict(OutboxEvent.objects.filter(pk__in=ids, run_id__isnull=False).values_list("pk", "run_id"))
    for stream, subject in AuditEntry.objects.filter(stream_id__in=ids).values_list("stream_id", "subject"):
        if subject.startswith("run:") and _UUID.fullmatch(subject.removeprefix("run:")):
            run_ids.setdefault(stream, UUID(subject.removeprefix("run:")))
    return run_ids
