"""Money waits for a run that does not begin, but not for ever."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connections

from factory.kernel.errors import DomainError
from factory.kernel.ids import uuid7
from factory.kernel.reconciling import reconcilers
from factory.kernel.tenancy import scanning
from projects.commands import resume_project, suspend_project
from tests.support.clocks import INSTANT, watch
from tests.usage.money_world import Money, confirm_live
from usage.commands import expire_reservation
from usage.errors import ReservationNotLive
from usage.operations import reserving
from usage.selectors import ReservationView

pytestmark = pytest.mark.slow

worker = reconcilers()["ReservationExpiryWorker"]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reservations that have expired as soon as they are made."""
    monkeypatch.setattr(reserving, "LIFETIME", timedelta(0))


def expire(m: Money, reservation: ReservationView) -> bool:
    assert reservation.expires_at is not None
    return expire_reservation(m.ctx, reservation_id=reservation.id, expires_at=reservation.expires_at)


@pytest.mark.requirement("USG-10", "USG-11", "EVT-36", "JOB-03")
@pytest.mark.usefixtures("short")
def test_frees_the_money_of_a_run_that_never_dispatched_once(m: Money) -> None:
    own = m.budget("10")
    reservation = m.reserve("4")
    assert worker.run_once(m.world.tenant).repaired == 1
    assert m.figures(own) == ("10", "0", "0", "0")
    expired = m.reservation(reservation.run_id)
    assert expired is not None
    assert expired.state == "Expired"
    assert worker.run_once(m.world.tenant).found == 0
    assert expire(m, reservation) is False
    assert worker.every == "*/15 * * * *"


def test_what_lives_24_hours_is_not_due_before(m: Money) -> None:
    m.budget("10")
    reservation = m.reserve("4")
    assert reservation.expires_at == reservation.created_at + timedelta(hours=24)
    assert worker.run_once(m.world.tenant).found == 0
    assert expire(m, reservation) is False


@pytest.mark.requirement("USG-12")
def test_a_run_that_has_dispatched_keeps_its_money(m: Money, monkeypatch: pytest.MonkeyPatch) -> None:
    own = m.budget("10")
    reservation = m.reserve("4")
    confirm_live(m.ctx, run_id=reservation.run_id)
    assert reservation.expires_at is not None
    monkeypatch.setattr("factory.kernel.clock.now", lambda: reservation.expires_at + timedelta(days=1))
    assert expire(m, reservation) is False
    assert confirm_live(m.ctx, run_id=reservation.run_id).state == "Reserved"
    assert m.figures(own) == ("6", "4", "0", "0")


@pytest.mark.usefixtures("short")
def test_dispatch_refuses_money_that_has_expired(m: Money) -> None:
    m.budget("10")
    reservation = m.reserve("4")
    with pytest.raises(ReservationNotLive):
        confirm_live(m.ctx, run_id=reservation.run_id)
    expire(m, reservation)
    for run_id in (reservation.run_id, uuid7()):
        with pytest.raises(ReservationNotLive):
            confirm_live(m.ctx, run_id=run_id)


@pytest.mark.usefixtures("short")
def test_a_suspended_project_pauses_expiry(m: Money) -> None:
    m.budget("10")
    reservation = m.reserve("4")
    suspend_project(m.world.tenant_admin, project_id=m.project, reason="a pause")
    assert expire(m, reservation) is False
    resume_project(m.world.tenant_admin, project_id=m.project, reason="on we go")
    assert expire(m, reservation) is True


def test_what_was_left_of_the_time_is_left_after_two_suspensions_to_the_instant(
    m: Money, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one that was over before a suspension began is over after it."""
    own, late = m.budget("10"), m.reserve("4")
    assert late.expires_at is not None
    time_ = watch(monkeypatch, late.created_at)
    waiting = m.reserve("1")
    for hours_before, length in ((20, 30), (3.5, 100)):
        time_.pass_(hours=hours_before)
        suspend_project(m.world.tenant_admin, project_id=m.project, reason="a pause")
        time_.pass_(hours=length)
        resume_project(m.world.tenant_admin, project_id=m.project, reason="on we go")
    end = late.created_at + timedelta(hours=24 + 30 + 100)
    time_.at = end - INSTANT
    assert expire(m, late) is False
    assert confirm_live(m.ctx, run_id=late.run_id).state == "Reserved"
    time_.at = end
    with pytest.raises(ReservationNotLive):
        confirm_live(m.ctx, run_id=waiting.run_id)
    suspend_project(m.world.tenant_admin, project_id=m.project, reason="too late for it")
    time_.pass_(hours=50)
    resume_project(m.world.tenant_admin, project_id=m.project, reason="on we go")
    assert expire(m, waiting) is True
    assert m.figures(own)[1] == "4"


def test_expiry_and_dispatch_at_once_have_one_winner(m: Money, monkeypatch: pytest.MonkeyPatch) -> None:
    own, dispatched = m.budget("100"), 0
    for _ in range(15):
        monkeypatch.setattr(reserving, "LIFETIME", timedelta(milliseconds=25))
        reservation, barrier = m.reserve("1"), Barrier(2)

        def race(act, barrier=barrier):
            try:
                barrier.wait(10)
                return act()
            except DomainError:
                return False
            finally:
                connections.close_all()

        acts = [
            lambda r=reservation: expire(m, r),
            lambda r=reservation: confirm_live(m.ctx, run_id=r.run_id),
        ]
        with ThreadPoolExecutor(2) as pool:
            expired, confirmed = pool.map(race, acts)
        assert not (expired and confirmed)
        dispatched += bool(confirmed)
        assert expired or confirmed or expire(m, reservation) in (True, False)
    worker.run_once(m.world.tenant)
    assert m.figures(own)[1] == str(dispatched)


def test_the_scan_role_sees_due_times_and_no_money() -> None:
    with pytest.raises(Exception, match="permission denied"), scanning() as cursor:
        cursor.execute("SELECT amount FROM usage_reservation")
