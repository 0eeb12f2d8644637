"""Settings that change without a restart: a row overrides the variable, and the change is on record."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings

from factory.kernel import reloading
from factory.kernel.changing import change_setting
from factory.kernel.context import platform
from factory.kernel.errors import Forbidden, InvalidInput
from runs.commands import expire_lease
from tests.support.evidence import audits
from tests.support.running import House

pytestmark = pytest.mark.slow

LEASE, GRACE = "FACTORY_LEASES_DURATION_SECONDS", "FACTORY_LEASES_RENEWAL_GRACE_SECONDS"
TRIES, EXPIRY = "FACTORY_RETRIES_DEFAULT_MAX_ATTEMPTS", "FACTORY_APPROVALS_DEFAULT_EXPIRY_HOURS"


@pytest.fixture
def change(house: House) -> Iterator[object]:
    """Changes a setting; at the end the variables have their say again."""

    def set_to(name: str, value: int | None) -> None:
        change_setting(platform(), name=name, value=value, reason="a slow link")

    yield set_to
    for row in reloading.every():
        if row.row is not None:
            set_to(row.name, None)


@pytest.mark.requirement("CFG-01", "CFG-02", "CFG-03", "CFG-04", "CFG-06", "LSE-06")
def test_each_takes_effect_without_a_restart(house: House, change) -> None:
    worker = house.hand()
    house.run()
    work = worker.take()
    change(LEASE, 60)
    left = worker.acquire(work).expires_at - datetime.now(UTC)
    assert timedelta(seconds=55) < left < timedelta(seconds=61)

    house.let_lapse(work.lease_id, seconds=40)
    change(GRACE, 50)
    assert not expire_lease(house.system, lease_id=work.lease_id, fencing_token=work.fencing_token)
    change(GRACE, 5)
    assert expire_lease(house.system, lease_id=work.lease_id, fencing_token=work.fencing_token)

    change(TRIES, 7)
    assert house.steps(work.run_id)["look"].max_attempts == settings.FACTORY_RETRIES_DEFAULT_MAX_ATTEMPTS
    assert house.steps(house.run())["look"].max_attempts == 7

    change(EXPIRY, 1)
    run_id = house.run("gated")
    [gated] = [each for each in worker.poll() if each.run_id == run_id]
    worker.acquire(gated)
    worker.ask(gated)
    [asked] = house.pending(run_id)
    assert timedelta(minutes=59) < asked.expires_at - asked.requested_at <= timedelta(hours=1)
    assert audits(house.system, "ChangeSetting") == [], "It is no act of a tenant."
    told = [(each.subject, each.detail["after"]) for each in audits(platform(), "ChangeSetting")]
    assert told[-5:] == [(f"setting:{name}", after) for name, after in
                         ((LEASE, 60), (GRACE, 50), (GRACE, 5), (TRIES, 7), (EXPIRY, 1))]  # fmt: skip


@pytest.mark.requirement("CFG-05", "CFG-06")
def test_nothing_else_and_nobody_else(house: House) -> None:
    wrong = [
        ("FACTORY_JOURNAL_RETENTION_DAYS", 5, "x"),
        (LEASE, 0, "x"),
        (LEASE, 3601, "x"),
        (LEASE, 60, " "),
    ]
    for name, value, reason in wrong:
        with pytest.raises(InvalidInput):
            change_setting(platform(), name=name, value=value, reason=reason)
    assert set(reloading.ABOUT) == set(settings.FACTORY_RELOADABLE)
    assert reloading.value(LEASE) == settings.FACTORY_LEASES_DURATION_SECONDS


@pytest.mark.requirement("CFG-06")
@pytest.mark.parametrize("value", [1, None])
def test_nobody_of_a_tenant_changes_what_holds_for_all(house: House, change, value: int | None) -> None:
    change(LEASE, 90)
    world = house.world
    for who in (world.platform_admin, world.tenant_admin, world.operator, house.system):
        with pytest.raises(Forbidden):
            change_setting(who, name=LEASE, value=value, reason="mine")
    reloading.forget()
    assert reloading.value(LEASE) == 90


def test_another_process_looks_again_within_moments(house: House, change) -> None:
    change(LEASE, 90)
    reloading.value(LEASE)
    reloading.forget()
    assert reloading.value(LEASE) == 90
    assert reloading.SECONDS_REMEMBERED <= 5
