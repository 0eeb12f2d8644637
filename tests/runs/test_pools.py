"""Who a pool of workers works for is said by whoever runs the platform, and is on record with the tenant."""

from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from factory.kernel.errors import DomainError
from runs.dispatch import polling
from tests.support.evidence import audits
from tests.support.hands import Hand
from tests.support.running import House

pytestmark = pytest.mark.slow


def pool(*arguments: str) -> str:
    out = StringIO()
    call_command("pool", *arguments, stdout=out)
    return out.getvalue()


def test_a_pool_is_made_by_its_first_tenant_and_works_for_it(house: House) -> None:
    name = f"farm-{uuid4().hex[:8]}"
    assert pool(name, "--serve", house.tenant) == f"{name}: {house.tenant}\n"
    pool(name, "--serve", house.tenant)
    assert [note.subject for note in audits(house.system, "ServeTenant")].count(f"pool:{name}") == 1
    house.pool = name
    run_id = house.run()
    worker = Hand(house, "w1")
    assert worker.take().run_id == run_id
    assert f"{name}: {house.tenant}" in pool()


def test_a_pool_that_left_is_given_nothing_and_reports_nothing(house: House) -> None:
    house.run()
    worker = house.hand()
    work = worker.take()
    assert pool(house.pool, "--leave", house.tenant) == f"{house.pool}: serves nobody\n"
    house.run()
    assert worker.poll() == []
    with pytest.raises(DomainError) as refused:
        worker.report(work, output=1)
    assert refused.value.code == "not-found"
    assert [note.subject for note in audits(house.system, "LeaveTenant")] == [f"pool:{house.pool}"]


def test_what_it_was_offered_is_told_it_no_more(house: House) -> None:
    run_id = house.run()
    worker = house.hand()
    assert [work.run_id for work in worker.poll()] == [run_id]
    pool(house.pool, "--leave", house.tenant)
    assert worker.poll() == []


def test_a_poll_that_looked_before_dispatches_nothing_afterwards(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.run()
    worker = house.hand()
    looked = polling.look

    def and_left_meanwhile(*arguments: Any) -> Any:
        board = looked(*arguments)
        pool(house.pool, "--leave", house.tenant)
        return board

    monkeypatch.setattr(polling, "look", and_left_meanwhile)
    assert worker.poll() == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nowhere",), "There is no pool nowhere."),
        (("farm", "--serve", "nobody"), "There is no tenant nobody; manage.py onboard makes one."),
        (("--serve", "nobody"), "Name the pool"),
    ],
)
def test_what_is_not_there_is_said(arguments: tuple[str, ...], told: str) -> None:
    with pytest.raises(CommandError, match=told):
        pool(*arguments)


def test_a_name_that_no_pool_can_have_is_refused(house: House) -> None:
    with pytest.raises(CommandError, match="Small letters"):
        pool("Farm one", "--serve", house.tenant)
