"""A refusal that is evidence is written down, whatever it says and whoever is in the way."""

import threading
from typing import Any

import pytest
from django.db import connection, connections

from factory.kernel.chain import audit_stream
from factory.kernel.context import Context
from factory.kernel.errors import Conflict, TooLarge
from factory.kernel.recording import audit
from factory.kernel.tenancy import bound
from tests.kernel.doors.acts import misbehave
from tests.kernel.doors.models import Door
from tests.support.evidence import audits, violations


class Stuck(Conflict):
    code = "stuck"
    audited = True


@pytest.mark.parametrize(
    ("detail", "extra"),
    [
        ("It holds a \x00 here.", {}),
        ("It holds a \ud83d here.", {}),
        ("Fine.", {"subject": "x" * 4000}),
        ("Fine.", {"evidence": {"said": "\x00", "\ud800": [1.5, "\ud800"]}}),
        ("Fine.", {"evidence": {"count": 2**70, "ratio": float("nan")}}),
        ("Fine.", {"evidence": {"bytes": b"\x00"}}),
        ("x" * 3_000_000, {"evidence": {"said": "y" * 3_000_000}}),
    ],
)
def test_no_content_keeps_a_refusal_out_of_the_audit_log(ctx: Context, detail: str, extra: Any) -> None:
    def act(ctx: Context) -> None:
        raise Stuck(detail, extra=extra)

    with pytest.raises(Stuck):
        misbehave(ctx, act=act)
    [entry] = audits(ctx, "Misbehave")
    assert entry.outcome == "refused"
    assert entry.detail["code"] == "stuck"
    assert len(entry.reason) <= 4000
    assert violations(ctx.tenant_id) == []


def test_a_refusal_waits_for_its_place_in_the_audit_log(ctx: Context) -> None:
    door_id = Door(colour="red").id
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with bound(ctx), connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO factory_chainhead (stream_id, tenant_id, sequence, hash) VALUES (%s, %s, 0, '')",
                [audit_stream(door_id), ctx.tenant_id],
            )
            held.set()
            done.wait(3)
            connection.needs_rollback = True
        connections.close_all()

    def act(ctx: Context) -> None:
        raise Stuck("No.", extra={"stream": door_id})

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(5)
    with pytest.raises(Stuck):
        misbehave(ctx, act=act)  # longer than the lock time-out of two seconds
    done.set()
    thread.join()
    assert len(audits(ctx, "Misbehave")) == 1


@pytest.mark.parametrize("where", ["detail", "reason"])
def test_the_evidence_of_an_act_is_bounded(ctx: Context, where: str) -> None:
    huge: Any = {"detail": {"x": "y" * 200_000}} if where == "detail" else {"reason": "y" * 200_000}

    def act(ctx: Context) -> None:
        audit(ctx, "Told", subject="x", **huge)

    with pytest.raises(TooLarge):
        misbehave(ctx, act=act)
    assert audits(ctx, "Told") == []
