"""A verification of everything that has consequences: it is recorded, and what it finds is acted upon."""

import time
from collections.abc import Sequence

import structlog

from factory.evidence.anchors import place
from factory.evidence.auditor import CheckListener, VerificationReport, Violation, reactions, verify
from factory.kernel.bulkhead import Bulkhead
from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import PLATFORM, Context, system
from factory.kernel.ids import uuid7
from factory.kernel.models import Finding, Verification
from factory.kernel.recording import save

log = structlog.get_logger("factory.evidence.verification")

MOST_KEPT = 500
"""Findings of one tenant that are kept of one verification."""


def verify_and_act(on_check: CheckListener | None = None) -> VerificationReport:
    """Evaluate every invariant, record what was found for the console, and let the apps react to it."""
    started, began = now(), time.monotonic()
    report = verify(None, on_check)
    by_tenant: dict[str, list[Violation]] = {}
    for violation in report.violations:
        by_tenant.setdefault(violation.tenant_id, []).append(violation)
    nobodys = [*by_tenant.pop("", []), *by_tenant.pop(PLATFORM, [])]
    walls = [[v.code, v.subject, v.detail] for v in nobodys]
    verification = Verification(
        id=uuid7(),
        started_at=started,
        seconds=round(time.monotonic() - began, 3),
        rules=report.rules,
        violations=len(report.violations),
        walls=walls[:MOST_KEPT],
        unchecked=[list(each) for each in report.unchecked],
        anchors=place.anchors_state(),
    )
    verification.save(force_insert=True)
    alone = Bulkhead("verify")
    for tenant, found in by_tenant.items():
        with alone.item(tenant, tenant):
            record_findings(system(tenant, "Auditor"), verification=verification, found=found[:MOST_KEPT])
    if not report.ok:
        log.error("verification_failed", violations=len(report.violations), unchecked=len(report.unchecked))
    for react in reactions():
        with alone.item(getattr(react, "__name__", "")):
            react(report)
    return report


@command("RecordFindings", audited=False)
def record_findings(ctx: Context, *, verification: Verification, found: Sequence[Violation]) -> None:
    """Keep what a verification found in this tenant."""
    for v in found:
        save(
            Finding(
                verification_id=verification.id,
                code=v.code,
                subject=v.subject[:255],
                detail=v.detail,
                found_at=verification.started_at,
            )
        )
