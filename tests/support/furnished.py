"""A house in which everything has happened once: what the pages of the console are looked at with."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

from projects.commands import add_member, change_member, remove_member, revoke_token
from projects.commands.inputs import NewMember
from registry.commands import submit_release
from runs.commands import cancel_run, start_run
from runs.selectors.answers import OfferedAttempt
from tests.support.acts import deliver
from tests.support.delegations import lend
from tests.support.hands import Hand
from tests.support.proposals import DIFF, change, said
from tests.support.receipts import costing, effect, price_models, receipt, thinking
from tests.support.released import released, revised
from tests.support.running import House
from tests.support.waivers import ask_waiver, run_from, template, waiver
from usage.commands import change_budget_amount, create_budget
from usage.pricing.periods import month_of, next_month


def furnished(tenant_id: str) -> House:
    """Runs, approvals, releases, money and members in each of their states, all by commands."""
    house = House(tenant_id)
    _funded(house)
    price_models(house, big_1="0.048750")
    worker = house.hand("a-worker-with-a-long-name-in-eu-central-1", slots=12)
    house.hand("spare", slots=1)
    _through(house, worker)
    _asked(house, worker)
    _standing(house)
    house.run("diamond")
    house.accept("single")
    deliver(house)
    return house


def _funded(house: House) -> None:
    """Next month's money, and a tight budget of the whole tenant that was raised once."""
    month = month_of(datetime.now(UTC))
    create_budget(house.system, project_id=None, month=next_month(month), amount=Decimal(800))
    made = create_budget(house.system, project_id=None, month=month, amount=Decimal(40))
    admin = house.world.tenant_admin
    change_budget_amount(
        replace(admin, project_id=None), budget_id=UUID(made), amount=Decimal("85.5"), version=1
    )


def _through(house: House, worker: Hand) -> None:
    """A run that is through, one that failed, one cancelled, one being cancelled, one nobody is sure of."""
    house.run("single")
    work = worker.take()
    calls = [receipt(), receipt(name="never-heard-of"), costing("1.25"), thinking()]
    calls += [calls[0] | {"quantities": None}, receipt(occurredAt="yesterday")]  # refused, and kept
    worker.report(work, output={"found": 1}, receipts=calls)
    house.run("stubborn")
    worker.fail(worker.take(), "permanent")
    cancel_run(house.world.requester, run_id=house.run("single"), reason="The wrong branch")
    stopping = house.run("single")
    worker.take()
    cancel_run(house.world.operator, run_id=stopping, reason="It took too long")
    house.run("gated")
    work = worker.take()
    worker.receipts(work, effect(None))
    worker.report(work, "Uncertain", "uncertain", reason="The line was cut")


def _asked(house: House, worker: Hand) -> None:
    """A request in each state that people bring about."""
    for decision in ("approve", "reject", "request_changes"):
        asked = worker.ask(_work(worker, house.run("gated")), DIFF, park=True)
        house.decide(asked.approval_id, decision, reason="As we agreed in the review")
    withdrawn = house.run("gated")
    worker.ask(_work(worker, withdrawn), said("Send the digest to 14 subscribers"), park=True)
    cancel_run(house.world.operator, run_id=withdrawn, reason="Not this month")
    worker.ask(_work(worker, house.run("gated")), change(), park=True)


def _work(worker: Hand, run_id: UUID) -> OfferedAttempt:
    """The work of a run, held; what is offered besides stays offered."""
    found = next(work for work in worker.poll() if work.run_id == run_id)
    worker.acquire(found)
    return found


def _standing(house: House) -> None:
    """What stands around the runs: releases, templates, waivers, loans, refused tokens."""
    world = house.world
    made = template(house)
    waiver(house, made)
    ask_waiver(house, made, hours=48)
    start_run(house.system, run_id=run_from(house, made))
    released(house)
    revised(house)
    submit_release(
        world.workspace_admin,
        asset="sample",
        version="2.0.0",
        repository="https://git.example.test/sample.git",
        commit="d" * 40,
    )
    lend(world.reviewer, world.requester)
    _left(house)
    revoke_token(world.tenant_admin, jti=str(UUID(int=7)), reason="The laptop was lost")


def _left(house: House) -> None:
    """Somebody who became a member, was given more, and left again."""
    admin = house.world.workspace_admin
    guest = NewMember("guest@elsewhere.example", ("Requester",), display_name="A guest from elsewhere")
    member = UUID(add_member(admin, project_id=house.world.project, member=guest))
    change_member(
        admin, membership_id=member, version=1, roles=("Requester", "Operator"), grants=("payloads",)
    )
    remove_member(admin, membership_id=member, reason="Their work here is done")
