"""Heads of chains outside the database show what no chain can show by itself."""

import json
import os
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from factory.evidence.anchors import files, place
from factory.evidence.anchors.taking import Contradicted, NotHandedOver, take
from factory.evidence.auditor import audit_all
from factory.kernel.chain import audit_stream
from factory.kernel.clock import now
from factory.kernel.context import Context

from .damage import corrupt
from .doors.acts import build_door, paint_door, shut_and_open_door, shut_door

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    """A folder and a key of the test's own."""
    settings.FACTORY_ANCHORS_DIR = str(tmp_path / "anchors")
    settings.FACTORY_ANCHOR_KEY_FILE = str(tmp_path / "key.pem")
    return tmp_path / "anchors"


@pytest.fixture
def door(ctx: Context, folder: Path) -> UUID:
    """A door with a past in two anchors, and a little more since."""
    door_id = UUID(build_door(ctx)["doorId"])
    shut_and_open_door(ctx, door_id=door_id)
    call_command("anchor", stdout=StringIO())
    paint_door(ctx, door_id=door_id, colour="blue")
    call_command("anchor", stdout=StringIO())
    shut_door(ctx, door_id=door_id)
    return door_id


def found(ctx: Context, *statements: str, **values: Any) -> str:
    told = [(sql, values if "%(" in sql else ()) for sql in statements]
    return "\n".join(f"{v.subject} {v.detail}" for v in corrupt("A7", told, tenant_id=ctx.tenant_id))


def test_what_grew_since_matches_its_anchors(door: UUID) -> None:
    assert audit_all(["A7"]) == []
    last = place.known().last
    assert last is not None
    assert (last.anchor.number, last.anchor.full) == (2, False)
    assert len(last.heads()) == 2  # the door's chain and its audit chain


TAIL = "DELETE FROM factory_journalentry WHERE stream_id = %(s)s AND sequence >= 4"
HEAD = (
    "UPDATE factory_chainhead SET sequence = 3, hash = (SELECT hash FROM factory_journalentry "
    "WHERE stream_id = %(s)s AND sequence = 3) WHERE stream_id = %(s)s"
)


def test_finds_a_tail_that_was_cut_with_its_head_put_back(ctx: Context, door: UUID) -> None:
    assert f"{door} cut: anchor 2 holds entry 4; the stream ends at 3" in found(ctx, TAIL, HEAD, s=door)


def test_finds_a_stream_that_vanished_with_head_and_entity(ctx: Context, door: UUID) -> None:
    erased = [
        "DELETE FROM factory_outboxevent WHERE stream_id = %(s)s",
        "DELETE FROM factory_journalentry WHERE stream_id = %(s)s",
        "DELETE FROM factory_auditentry WHERE stream_id = %(a)s",
        "DELETE FROM factory_chainhead WHERE stream_id IN (%(s)s, %(a)s)",
        "DELETE FROM doors_handle WHERE door_id = %(s)s",
        "DELETE FROM doors_door WHERE id = %(s)s",
    ]
    build_door(ctx)  # life went on elsewhere: it is no restore
    told = found(ctx, *erased, s=door, a=audit_stream(door))
    assert f"{door} gone: anchor 1 holds entry 3; the whole stream is gone" in told
    assert f"{audit_stream(door)} gone" in told


def test_finds_a_chain_that_was_written_anew_to_its_end(ctx: Context, door: UUID) -> None:
    zeros = "hash = 'sha256:' || repeat('0', 64) WHERE stream_id = %(s)s"
    anew = f"UPDATE factory_journalentry SET actor = 'eve', {zeros}"
    head = f"UPDATE factory_chainhead SET {zeros}"
    told = found(ctx, anew, head, s=door)
    assert "rechained: anchor 1 holds entry 3" in told
    assert "rechained: anchor 2 holds entry 4" in told


def test_finds_an_audit_tail_cut_with_its_head_put_back(ctx: Context, door: UUID) -> None:
    told = found(
        ctx,
        "DELETE FROM factory_auditentry WHERE stream_id = %(s)s AND sequence > 1",
        "UPDATE factory_chainhead SET sequence = 1, hash = (SELECT hash FROM factory_auditentry "
        "WHERE stream_id = %(s)s) WHERE stream_id = %(s)s",
        s=audit_stream(door),
    )
    assert f"{audit_stream(door)} cut" in told


def test_finds_events_that_vanished(ctx: Context, door: UUID) -> None:
    told = found(ctx, "DELETE FROM factory_outboxevent WHERE stream_id = %(s)s", s=door)
    assert "outbox counts: anchor 2 counted" in told


def put_back(at: Any) -> list[str]:
    """The whole database as it was at a time."""
    after = f"occurred_at > '{at.isoformat()}'"
    last = (
        "SELECT sequence, hash FROM factory_{}entry WHERE stream_id = h.stream_id "
        "ORDER BY sequence DESC LIMIT 1"
    )
    return [
        f"DELETE FROM factory_outboxevent WHERE {after}",
        f"DELETE FROM factory_journalentry WHERE {after}",
        f"DELETE FROM factory_auditentry WHERE {after}",
        "DELETE FROM factory_chainhead h WHERE NOT EXISTS (SELECT 1 FROM factory_journalentry j "
        "WHERE j.stream_id = h.stream_id) AND NOT EXISTS (SELECT 1 FROM factory_auditentry a "
        "WHERE a.stream_id = h.stream_id)",
        *(
            f"UPDATE factory_chainhead h SET (sequence, hash) = ({last.format(kind)}) WHERE EXISTS "
            f"(SELECT 1 FROM factory_{kind}entry e WHERE e.stream_id = h.stream_id)"
            for kind in ("journal", "audit")
        ),
    ]


def test_an_earlier_state_of_everything_is_told_as_a_restore(ctx: Context, folder: Path) -> None:
    door_id = UUID(build_door(ctx)["doorId"])
    at = now()
    shut_and_open_door(ctx, door_id=door_id)
    take()
    told = found(ctx, *put_back(at))
    assert "database restored: the database ends at" in told
    assert "cut" not in told.replace("its end was cut off", "")
    assert audit_all(["A7"]) == []


def test_a_stated_restore_explains_what_is_lost_and_nothing_else(ctx: Context, door: UUID) -> None:
    at = now()
    take(restored_to=at)
    assert found(ctx, *put_back(at)) == ""
    assert "cut" in found(ctx, TAIL, HEAD, s=door)  # what happened before the restore's time is no part of it


FORGERIES: dict[str, Callable[[Path], object]] = {
    "missing": lambda f: (f / "anchor-000001.json").unlink(),
    "unreadable": lambda f: spoil(f / "anchor-000001.json", "{"),
    "forged: its signature": lambda f: change(
        f / "anchor-000002.json", taken_at="2001-01-01T00:00:00.000000Z"
    ),
    "under another name": lambda f: (f / "anchor-000002.json").rename(f / "anchor-000003.json"),
}


def spoil(file: Path, text: str) -> None:
    file.chmod(0o600)
    file.write_text(text)


def change(file: Path, **values: Any) -> None:
    document = json.loads(file.read_text())
    document["anchor"] |= values
    spoil(file, json.dumps(document))


@pytest.mark.parametrize("kind", FORGERIES)
def test_missing_unreadable_and_forged_anchors_are_told_apart(door: UUID, folder: Path, kind: str) -> None:
    FORGERIES[kind](folder)
    told = [f"{v.subject} {v.detail}" for v in audit_all(["A7"])]
    assert any(kind in each for each in told), told


def test_an_anchor_signed_over_false_heads_is_found(door: UUID, folder: Path, tmp_path: Path) -> None:
    second = whole(files.read(folder, files.public_key(tmp_path / "key.pem")).kept[1])
    second.heads.pop()
    (folder / "anchor-000002.json").unlink()
    files.write(folder, second, files.signing_key(tmp_path / "key.pem"))
    assert "its root does not follow from its heads" in str(audit_all(["A7"]))


def whole(kept: files.KnownAnchor) -> files.Anchor:
    return replace(kept.anchor, heads=kept.heads())


def test_none_is_taken_of_a_database_that_contradicts_the_last(
    ctx: Context, door: UUID, folder: Path, tmp_path: Path
) -> None:
    key = files.signing_key(tmp_path / "key.pem")
    last = whole(files.read(folder, key.public_key()).kept[1])
    more = [replace(head, sequence=head.sequence + 5) for head in last.heads]
    made = replace(last, number=3, previous=last.hash, full=True, heads=more, root=files.merkle_root(more))
    files.write(folder, made, key)
    with pytest.raises(Contradicted):
        take()
    with pytest.raises(CommandError, match="contradicts its anchors"):
        call_command("anchor", stdout=StringIO(), stderr=StringIO())
    assert len(list(folder.glob("anchor-*"))) == 3


def test_a_command_gets_each_anchor_to_keep_it_elsewhere(
    ctx: Context, folder: Path, tmp_path: Path, settings: Any
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    settings.FACTORY_ANCHOR_COMMAND = ["cp", "-t", str(kept)]
    build_door(ctx)
    take()
    assert [file.name for file in kept.iterdir()] == ["anchor-000001.json"]
    out = StringIO()
    call_command("verify", "A7", "--anchors", str(kept), stdout=out)
    assert "0 violations" in out.getvalue()


def test_none_is_left_out_elsewhere_when_the_command_fails_for_a_while(
    ctx: Context, folder: Path, tmp_path: Path, settings: Any
) -> None:
    kept = tmp_path / "kept"
    settings.FACTORY_ANCHOR_COMMAND = ["cp", "-t", str(kept)]
    build_door(ctx)
    with pytest.raises(NotHandedOver):
        take()
    with pytest.raises(CommandError, match=r"anchor-000001\.json is taken, but cp failed"):
        call_command("anchor", stdout=StringIO())
    kept.mkdir()
    take()
    assert [file.name for file in sorted(kept.iterdir())] == [f"anchor-00000{n}.json" for n in (1, 2, 3)]


@pytest.mark.parametrize("call", ["write", "fsync", "chmod", "link"])
def test_stopped_while_a_key_or_an_anchor_is_written_the_next_one_is_whole(
    ctx: Context, folder: Path, monkeypatch: Any, call: str
) -> None:
    build_door(ctx)

    def killed(*args: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    for _ in ("the key", "the anchor"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, killed)
            patch.setattr(os, "unlink", killed)  # who is killed tidies nothing up
            with pytest.raises(KeyboardInterrupt):
                take()
        files.signing_key(place.key_file())
    take()
    assert (place.known().faults, audit_all(["A7"])) == ([], [])


@pytest.mark.parametrize("time", ["yesterday", "2026-11-29T10:00", "29.11.2026"])
def test_a_restore_is_to_a_time_with_its_zone_or_nothing_is_anchored(
    ctx: Context, door: UUID, folder: Path, time: str
) -> None:
    with pytest.raises(CommandError, match="restored-to"):
        call_command("recover", "--restored-to", time, stdout=StringIO())
    assert len(list(folder.glob("anchor-*"))) == 2


def test_no_more_than_one_anchor_is_in_memory_however_many_days_were_anchored(tmp_path: Path) -> None:
    key, streams = files.signing_key(tmp_path / "key.pem"), [UUID(int=n) for n in range(100)]
    peaks = []
    for days in (2, 10):
        folder, previous = tmp_path / str(days), ""
        for number in range(1, days + 1):
            heads = [files.Head(s, "t", number, f"{number}-{s}", "2026-11-29T00:00:00Z") for s in streams]
            made = files.Anchor(
                number=number, previous=previous, taken_at="", newest_at="", full=True, streams=100,
                root=files.merkle_root(heads), rows={}, purges=0, purge_hash="", facts={}, restored_to="",
                heads=heads,
            )  # fmt: skip
            files.write(folder, made, key)
            previous = made.hash
        tracemalloc.start()
        found = files.read(folder, key.public_key())
        assert (found.faults, sum(1 for _ in found.every_head())) == ([], days * 100)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] * 1.5


@pytest.mark.parametrize("count", range(9))
def test_the_root_is_that_of_the_whole_tree_though_it_is_taken_leaf_by_leaf(count: int) -> None:
    heads = [files.Head(UUID(int=n), "t", n, str(n), "") for n in range(count)]
    level = [sha256(f"\0{h.stream}\n{h.sequence}\n{h.hash}".encode()).digest() for h in heads]
    while len(level) > 1:
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        level = [sha256(b"\1" + b"".join(pair)).digest() if len(pair) == 2 else pair[0] for pair in pairs]
    assert files.merkle_root(reversed(heads)) == f"sha256:{(level or [sha256(b'').digest()])[0].hex()}"
