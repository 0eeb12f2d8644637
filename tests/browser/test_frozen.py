"""A run that the auditor doubts, as people meet it: told at the top of its page, and lifted by who may."""

import os
from pathlib import Path
from uuid import UUID

from factory.evidence.auditor import VerificationReport, Violation
from factory.evidence.verification import record_findings
from runs import restore
from tests.browser.conftest import Visit
from tests.support.running import House


def test_a_frozen_run_says_why_and_a_platform_admin_lifts_it(house: House, visit: Visit) -> None:
    from factory.kernel.clock import now
    from factory.kernel.models import Verification

    run_id: UUID = house.run()
    found = Violation("A1", house.tenant, f"run:{run_id}", "row says Running, journal says Accepted")
    restore.freeze_runs_of_violations(VerificationReport([found]))
    verification = Verification(started_at=now(), seconds=1.5, rules=60, violations=1)
    verification.save(force_insert=True)
    record_findings(house.system, verification=verification, found=[found])
    for width in (390, 1440):
        operator = visit(width=width).sign_in(house.world.operator)
        operator.open(f"/admin/runs/run/{run_id}/change/")
        operator.reads("Frozen since")
        operator.reads(f"A1 run:{run_id}")
        assert operator.part("#lift-reason").count() == 0
        _keep(operator, f"frozen-{width}")
        for page in ("verification", "finding"):
            operator.open(f"/admin/factory/{page}/")
            operator.reads("violated" if page == "verification" else "row says Running")
            _keep(operator, f"{page}-{width}")
    admin = visit(width=1440).sign_in(house.world.platform_admin)
    admin.open(f"/admin/runs/run/{run_id}/change/")
    admin.part("#lift-reason").fill("Compared with yesterday's backup: the row was right.")
    _keep(admin, "lift-1440")
    admin.press("Lift the freeze")
    admin.reads("The freeze is lifted")
    assert house.row(run_id).frozen_at is None


def _keep(visitor: object, name: str) -> None:
    folder = os.environ.get("FACTORY_TEST_PICTURES")
    if folder:
        visitor.page.screenshot(path=str(Path(folder) / f"{name}.png"))  # type: ignore[attr-defined]
