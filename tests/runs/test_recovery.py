"""After a restore: the journal leads, leases become doubts for people, and no old token is good any more."""

from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.core.management import CommandError, call_command

from approvals.commands import revoke_waiver
from approvals.models import Waiver
from approvals.reconcilers import WaiverExpiryReconciler
from factory.evidence import recovery
from factory.evidence.auditor import audit_all
from factory.evidence.journal_replay import STAGES, rows_behind
from factory.evidence.recovery import Recovery, StageOutOfOrder
from factory.kernel.clock import now
from factory.kernel.errors import DomainError
from runs import restore
from runs.models import Run
from tests.kernel.damage import admin_url
from tests.support.evidence import audits, journal, violations
from tests.support.hands import Hand
from tests.support.running import House
from tests.support.waivers import ask_waiver, end_now, shown, template, waiver

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def folder(own_database: str, tmp_path: Path, settings: Any) -> Path:
    settings.FACTORY_ANCHORS_DIR = str(tmp_path / "anchors")
    settings.FACTORY_ANCHOR_KEY_FILE = str(tmp_path / "key.pem")
    return tmp_path / "anchors"


def recover(**options: Any) -> list[str]:
    out = StringIO()
    call_command("recover", "--force", stdout=out, **options)
    return out.getvalue().splitlines()


@pytest.mark.requirement("JRN-04", "JRN-05", "FLR-03")
def test_open_leases_become_doubts_of_an_operator_whatever_their_class(house: House) -> None:
    read_only, gated, offered = house.run(), house.run("gated"), None
    hand = house.hand()
    held = {work.run_id: work for work in hand.poll()}
    hand.acquire(held[read_only])
    hand.acquire(held[gated])
    offered = house.run()
    [offer] = hand.poll()
    call_command("anchor", stdout=StringIO())
    lines = recover()
    order = [line.partition(":")[0] for line in lines if line.partition(":")[0] in STAGES]
    assert order == ["journal", "approvals", "releases", "outbox"]
    for run_id in (read_only, gated, offered):
        [attempt] = house.attempts(run_id)
        [step] = house.steps(run_id).values()
        assert (attempt.state, step.state, step.attention) == ("Uncertain", "Running", "uncertain")
    for work in (held[read_only], held[gated], offer):
        with pytest.raises(DomainError) as refused:
            hand.report(work, output={})
        assert refused.value.code in ("lease-expired", "stale-fencing-token")
    [fresh] = _work_again(house, hand, read_only)
    assert fresh.fencing_token >> 40 > offer.fencing_token >> 40
    assert violations(house.tenant) == []


def _work_again(house: House, hand: Hand, run_id: UUID) -> list[Any]:
    """An Operator says that nothing happened, and the step is tried once more."""
    from runs.commands import resolve_step

    [step] = house.steps(run_id).values()
    resolve_step(
        house.world.operator,
        run_id=run_id,
        step_id=step.id,
        resolution="effect-did-not-happen",
        evidence="looked",
        version=step.version,
    )
    return hand.poll()


def test_killed_half_way_it_goes_on_and_twice_is_once(house: House, monkeypatch: Any) -> None:
    runs = [house.run(), house.run()]
    hand = house.hand()
    for work in hand.poll():
        hand.acquire(work)
    real, calls = restore.recover_lease, []

    def dies(*args: Any, **options: Any) -> bool:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr(restore, "recover_lease", dies)
    with pytest.raises(KeyboardInterrupt):
        recover()
    monkeypatch.undo()
    recover()
    stories = [journal(house.system, house.attempts(run_id)[0].id) for run_id in runs]
    assert all(story[-1][2] == "Restored" for story in stories)
    recover()
    assert stories == [journal(house.system, house.attempts(run_id)[0].id) for run_id in runs]
    assert violations(house.tenant) == []


def test_one_lease_that_cannot_be_settled_is_told_by_name_and_keeps_no_other(house: House) -> None:
    house.run(), house.run()
    hand = house.hand()
    stuck, well = (work for work in hand.poll())
    with psycopg.connect(admin_url()) as db:
        db.execute(
            "ALTER TABLE runs_lease ADD CONSTRAINT stuck "
            f"CHECK (id <> '{stuck.lease_id}' OR state <> 'Expired') NOT VALID"
        )
    told = recovered_but_for()
    assert f"by hand: lease:{stuck.lease_id} of {house.tenant} is still open: stuck needs more" in told
    assert "open leases, made Uncertain for an operator: 1" in told
    assert "outbox: " in told
    assert [house.attempt(work.attempt_id).state for work in (stuck, well)] == ["Open", "Uncertain"]
    with psycopg.connect(admin_url()) as db:
        db.execute("ALTER TABLE runs_lease DROP CONSTRAINT stuck")
    recover()
    assert house.attempt(stuck.attempt_id).state == "Uncertain"
    assert violations(house.tenant) == []


def recovered_but_for() -> str:
    """What a recovery tells that had to leave something to a person."""
    out = StringIO()
    with pytest.raises(SystemExit) as left:
        call_command("recover", "--force", stdout=out)
    assert left.value.code == 1
    return out.getvalue()


def test_a_restore_excuses_no_more_than_was_lost(house: House, folder: Path) -> None:
    """Named too early, the time of the backup would cover up what vanished before it."""
    early = now()
    run_id = house.run()
    call_command("anchor", stdout=StringIO())
    with psycopg.connect(admin_url()) as db:
        db.execute("ALTER TABLE factory_journalentry DISABLE TRIGGER USER")
        db.execute(
            "DELETE FROM factory_journalentry WHERE stream_id = %s AND sequence = (SELECT sequence FROM "
            "factory_chainhead h WHERE h.stream_id = factory_journalentry.stream_id)",
            [run_id],
        )
        db.execute("ALTER TABLE factory_journalentry ENABLE ALWAYS TRIGGER append_only_rows")
    for to, why in (
        (early - timedelta(minutes=5), "it still holds an anchored entry of"),
        (early + timedelta(days=1), "is still to come"),
    ):
        with pytest.raises(CommandError, match=why):
            recover(restored_to=to)
    assert len(list(folder.glob("anchor-*"))) == 1


def enable_triggers(db: psycopg.Connection[Any], table: str) -> None:
    """Bind all triggers of a table again, for whoever writes."""
    named = "SELECT tgname FROM pg_trigger WHERE tgrelid = %s::regclass AND NOT tgisinternal"
    for (name,) in db.execute(named, [table]).fetchall():
        db.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}")


def lag(house: House, run_id: UUID, sql: str) -> None:
    """Rows as an older backup of their table would have them."""
    with psycopg.connect(admin_url()) as db:
        db.execute("ALTER TABLE runs_run DISABLE TRIGGER USER")
        db.execute(sql, [run_id])
        enable_triggers(db, "runs_run")


@pytest.mark.requirement("JRN-06")
def test_a_row_that_lags_is_brought_up_to_the_journal(house: House) -> None:
    run_id, other = house.run(), house.run()
    hand = house.hand()
    works = {work.run_id: work for work in hand.poll()}
    for work in works.values():
        hand.acquire(work)
        hand.report(work, output={"n": 1})
    kept = house.row(run_id)
    back = "state = 'Running', finished_at = NULL, output = NULL, output_hash = ''"
    lag(house, run_id, f"UPDATE runs_run SET {back} WHERE id = %s")
    lag(house, other, "UPDATE runs_run SET state = 'Accepted', started_at = NULL, deadline_at = NULL, "
        "clock_since = NULL, "
        "finished_at = NULL, output_hash = '' WHERE id = %s")  # fmt: skip
    assert len(rows_behind(Run)) == 2
    recover()
    assert rows_behind(Run) == []
    found = house.row(run_id)
    assert (found.state, found.output_hash) == ("Completed", kept.output_hash)
    assert abs(found.finished_at - kept.finished_at) < timedelta(seconds=5)
    assert [note.detail["from"] for note in audits(house.system, "BringUpToJournal")] == [
        "Running",
        "Accepted",
    ]
    assert violations(house.tenant) == []


@pytest.mark.requirement("JRN-06", "LTR-03")
def test_a_waiver_that_lags_by_more_than_a_step_knows_again_who_gave_it(house: House) -> None:
    """Asked for in the backup; given and ended in the journal: its yes is that of its request."""
    kind = template(house)
    ended, over, given, alone = (waiver(house, kind) for _ in range(4))
    withdrawn = ask_waiver(house, kind)["waiver"]
    revoke_waiver(house.world.operator, waiver_id=ended, reason="the report has changed")
    revoke_waiver(house.world.workspace_admin, waiver_id=withdrawn, reason="not needed")
    end_now(over)
    WaiverExpiryReconciler().run_once(house.tenant)
    kept = {one: shown(house, one) for one in (ended, over, given, alone, withdrawn)}
    back = "state = 'Requested', decided_at = NULL, decided_by = '', decided_person = '', deciders = '{}', "
    with psycopg.connect(admin_url()) as db:
        db.execute("ALTER TABLE approvals_waiver DISABLE TRIGGER USER")
        db.execute(f"UPDATE approvals_waiver SET {back} ended_at = NULL, ended_by = '', end_reason = ''")
        enable_triggers(db, "approvals_waiver")
    with psycopg.connect(admin_url()) as db:
        db.execute("ALTER TABLE approvals_approvalrequest DISABLE TRIGGER USER")
        db.execute(
            "UPDATE approvals_approvalrequest SET state = 'Pending', decision = '', decided_by = '', "
            "decided_person = '', decided_at = NULL, closed_at = NULL, valid_until = NULL, reason = '' "
            "WHERE subject_id = %s",
            [alone],
        )
        enable_triggers(db, "approvals_approvalrequest")
    assert "by hand" not in recovered_but_for()
    assert rows_behind(Waiver) == []
    for one, was in kept.items():
        found = shown(house, one)
        for name in ("state", "decided_by", "deciders", "ended_by", "end_reason"):
            assert getattr(found, name) == getattr(was, name), (was.state, name)
        assert found.decided_at == was.decided_at
    assert {found.code for found in violations(house.tenant)} == {"D10b"}, "the time of one was changed"


@pytest.mark.requirement("JRN-04")
def test_stages_are_refused_out_of_order() -> None:
    stages = Recovery(lambda line: None)
    with pytest.raises(StageOutOfOrder, match="The next stage is journal, not approvals"):
        stages.enter("approvals")
    stages.enter("journal")
    with pytest.raises(StageOutOfOrder, match="approvals, not outbox"):
        stages.enter("outbox")


def test_refuses_while_the_product_is_connected(house: House) -> None:
    with (
        psycopg.connect(admin_url(), application_name="factory-relay"),
        pytest.raises(CommandError, match="Stop the product first: factory-relay"),
    ):
        call_command("recover", stdout=StringIO())


def test_refuses_to_build_on_a_broken_journal(house: House, monkeypatch: Any) -> None:
    found = audit_all(["A3"])
    monkeypatch.setattr(recovery, "audit_all", lambda codes: [*found, *_broken()])
    with pytest.raises(CommandError, match="The journal itself is broken: A6"):
        call_command("recover", stdout=StringIO())


def _broken() -> list[Any]:
    from factory.evidence.auditor import Violation

    return [Violation("A6", "t", "s", "the hash does not follow from its content")]
