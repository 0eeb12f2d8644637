"""What a commit says: always the same hash, stored once, and the reason where it cannot be read."""

import uuid
from itertools import pairwise

import pytest
from django.db import connection

from factory.kernel.errors import FieldError
from factory.kernel.migration_operations import role
from factory.kernel.tenancy import bound, reading
from registry import selectors
from registry.commands import record_resolution_failure, resolve_closure, submit_release
from registry.errors import ReleaseAlreadySubmitted, ReleaseNotInState, SourceRefused, VersionTaken
from registry.manifest.closure import ClosureFile, release_hash
from registry.models import Closure, Release
from registry.publication import resolving
from registry.publication.resolving import closure_of, due_candidate, resolve
from registry.reconcilers import ClosureResolver
from tests.registry.support import Registry, manifest
from tests.support.evidence import counts, journal, violations

pytestmark = pytest.mark.slow


def hash_of(r, release_id):
    return r.view(release_id).hash


@pytest.mark.requirement("REG-03")
def test_the_same_commit_gives_the_same_hash_in_any_tenant_and_folder(r, tmp_path):
    first = r.resolved()
    other = Registry(f"{r.w.tenant}-b", tmp_path / "b")
    commit = r.row(first).commit
    copy = tmp_path / "copy"
    (tmp_path / "repository").rename(copy)
    again = uuid.UUID(
        submit_release(
            other.w.requester, asset="sample", version="1.0.0", repository=str(copy), commit=commit
        )
    )
    resolve(other.w.tenant, again)
    assert hash_of(other, again) == hash_of(r, first)


def test_every_piece_changes_the_hash():
    entry = ClosureFile("skill", "look", "skills/look.py", "sha256:" + "0" * 64, 3, "read")
    base = release_hash("sample", "1.0.0", "a" * 40, [entry])
    assert release_hash("sample", "1.0.0", "a" * 40, [entry]) == base
    others = [
        release_hash("sample", "1.0.1", "a" * 40, [entry]),
        release_hash("other", "1.0.0", "a" * 40, [entry]),
        release_hash("sample", "1.0.0", "b" * 40, [entry]),
        release_hash("sample", "1.0.0", "a" * 40, []),
        release_hash("sample", "1.0.0", "a" * 40, [entry, entry]),
        release_hash(
            "sample", "1.0.0", "a" * 40, [ClosureFile("skill", "look", "x", entry.sha256, 3, "read")]
        ),
        release_hash(
            "sample", "1.0.0", "a" * 40, [ClosureFile("skill", "look", entry.path, entry.sha256, 3, "")]
        ),
    ]
    assert len({base, *others}) == len(others) + 1


def test_the_order_of_the_entries_does_not_count():
    entries = [ClosureFile("skill", f"s{i}", "x", "sha256:" + "0" * 64, i) for i in range(9)]
    assert release_hash("a", "1.0.0", "c", entries) == release_hash("a", "1.0.0", "c", reversed(entries))


@pytest.mark.requirement("REG-05")
def test_resolving_twice_changes_nothing(r):
    release_id = r.submit()
    ctx = r.w.system("ClosureResolver")
    candidate = due_candidate(ctx, release_id)
    found = closure_of(ctx, candidate)
    assert resolve_closure(ctx, release_id=release_id, resolved=found) == found.hash
    before = journal(ctx, release_id)
    assert resolve_closure(ctx, release_id=release_id, resolved=found) == found.hash
    resolve(r.w.tenant, release_id)
    assert journal(ctx, release_id) == before
    other = closure_of(ctx, candidate)
    object.__setattr__(other, "hash", "sha256:" + "0" * 64)
    with pytest.raises(ReleaseNotInState):
        resolve_closure(ctx, release_id=release_id, resolved=other)


@pytest.mark.requirement("REG-05", "JOB-01", "JOB-14")
def test_a_failing_fetch_stays_visible_and_is_tried_five_times_more(r):
    commit = "a" * 40
    r.repository.commit()
    release_id = uuid.UUID(
        submit_release(
            r.w.requester, asset="sample", version="1.0.0", repository=r.repository.url, commit=commit
        )
    )
    ctx = r.w.system("ClosureResolver")
    delays = []
    for attempt in range(6):
        row = r.row(release_id)
        assert row.resolution_attempts == attempt
        delays.append(row.next_resolution_at)
        record_resolution_failure(
            ctx, release_id=release_id, attempt=attempt, error="It is away.", final=False
        )
        record_resolution_failure(ctx, release_id=release_id, attempt=attempt, error="Late.", final=False)
    gaps = [(b - a).total_seconds() for a, b in pairwise(delays[1:])]
    assert all(later > 1.5 * earlier for earlier, later in pairwise(gaps))
    row = r.row(release_id)
    assert (row.next_resolution_at, row.resolution_error, row.resolution_attempts) == (None, "It is away.", 6)
    resolve(r.w.tenant, release_id)
    assert r.row(release_id).resolution_attempts == 6
    again = submit_release(
        r.w.requester, asset="sample", version="1.0.0", repository=r.repository.url, commit=commit
    )
    assert again == str(release_id)
    assert r.row(release_id).resolution_attempts == 0
    resolve(r.w.tenant, release_id)
    assert "Git refused" in r.row(release_id).resolution_error


def test_a_faulty_manifest_is_final_and_says_where(r):
    commit = r.repository.commit(manifest(surprise=1))
    release_id = uuid.UUID(
        submit_release(
            r.w.requester, asset="sample", version="1.0.0", repository=r.repository.url, commit=commit
        )
    )
    resolve(r.w.tenant, release_id)
    row = r.row(release_id)
    assert row.next_resolution_at is None
    assert row.resolution_faults == [{"pointer": "/surprise", "detail": "This key is not known."}]
    assert journal(r.w.system(), release_id)[-1] == ("Draft", "Draft", "ClosureFailed")


@pytest.mark.parametrize("asked", [{"asset": "other"}, {"version": "2.0.0"}, {"manifest_path": "x.yaml"}])
def test_a_manifest_of_something_else_is_final(r, asked):
    commit = r.repository.commit()
    values = {"asset": "sample", "version": "1.0.0", **asked}
    release_id = uuid.UUID(
        submit_release(r.w.requester, repository=r.repository.url, commit=commit, **values)
    )
    resolve(r.w.tenant, release_id)
    assert r.row(release_id).next_resolution_at is None
    assert r.row(release_id).resolution_error


def test_a_missing_file_is_final_and_named(r):
    definition = manifest()
    definition["skills"][0]["files"].append("skills/other.py")
    commit = r.repository.commit(definition)
    release_id = uuid.UUID(
        submit_release(
            r.w.requester, asset="sample", version="1.0.0", repository=r.repository.url, commit=commit
        )
    )
    resolve(r.w.tenant, release_id)
    assert r.row(release_id).resolution_error == "The commit holds no file skills/other.py."


def test_the_reconciler_finds_what_the_hint_lost(r):
    release_id = r.submit()
    counted = ClosureResolver().run_once(r.w.tenant)
    assert (counted.found, counted.failed) == (1, 0)
    assert hash_of(r, release_id).startswith("sha256:")
    assert ClosureResolver().run_once(r.w.tenant).found == 0


def test_no_transaction_is_open_while_git_works(r, monkeypatch):
    real, seen = resolving.fetched, []

    def watching(*args):
        seen.append(connection.in_atomic_block)
        return real(*args)

    monkeypatch.setattr(resolving, "fetched", watching)
    r.resolved()
    assert seen == [False]


@pytest.mark.requirement("REG-04")
def test_a_dependency_is_a_published_release_and_part_of_the_hash(r):
    base = manifest(asset="base", workflows=[{**manifest()["workflows"][0], "workflowId": "base-survey"}])
    commit = r.repository.commit(base)
    base_id = uuid.UUID(
        submit_release(
            r.w.requester, asset="base", version="1.0.0", repository=r.repository.url, commit=commit
        )
    )
    resolve(r.w.tenant, base_id)
    waiting = r.resolved(dependencies=["base@1.0.0"])
    row = r.row(waiting)
    assert "base@1.0.0 is not a Published release" in row.resolution_error
    assert row.next_resolution_at is not None
    r.evaluate(base_id)
    from registry.commands import request_review

    request_review(r.w.requester, release_id=base_id)
    r.decide(base_id)
    resolve(r.w.tenant, waiting)
    with reading(r.w.system()):
        told = selectors.manifest(waiting)
    [entry] = [entry for entry in told["entries"] if entry["kind"] == "dependency"]
    assert (entry["id"], entry["sha256"]) == ("base@1.0.0", hash_of(r, base_id))
    assert violations(r.w.tenant) == []


def test_refuses_a_version_that_a_release_holds(r):
    r.published()
    with pytest.raises(VersionTaken):
        r.submit("1.0.0")


def test_refuses_the_same_candidate_twice(r):
    release_id = r.submit()
    before = counts(r.w.system())
    with pytest.raises(ReleaseAlreadySubmitted) as refused:
        submit_release(
            r.w.requester,
            asset="sample",
            version="1.0.0",
            repository=r.repository.url,
            commit=r.row(release_id).commit,
        )
    assert refused.value.extra["releaseId"] == str(release_id)
    assert counts(r.w.system()) == before


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"repository": "ext::sh -c x"}, "/repository"),
        ({"commit": "main"}, "/commit"),
        ({"manifest_path": "../x"}, "/manifestPath"),
    ],
)
def test_refuses_a_source_with_its_place(r, change, pointer):
    values = {"repository": r.repository.url, "commit": "a" * 40, **change}
    with pytest.raises(SourceRefused) as refused:
        submit_release(r.w.requester, asset="sample", version="1.0.0", **values)
    assert refused.value.errors == (FieldError(pointer, refused.value.detail),)


@pytest.mark.requirement("REG-12")
def test_the_database_refuses_to_change_what_a_release_says(r):
    release_id = r.published()
    ctx = r.w.system()
    with reading(ctx):
        closure_id = Release.objects.get(pk=release_id).closure_id
        assert Closure.objects.filter(pk=closure_id).exists()
    statements = [
        "UPDATE registry_closure SET hash = hash",
        "UPDATE registry_closureentry SET size = size",
        "UPDATE registry_releaseblob SET content = content",
        "UPDATE registry_evaluationrecord SET verdict = 'pass'",
        "UPDATE registry_aliasmove SET version = version",
        "UPDATE registry_assetworkflow SET workflow_id = workflow_id",
        "UPDATE registry_asset SET name = name",
        "UPDATE registry_release SET commit = commit",
        "UPDATE registry_release SET author = author",
        "DELETE FROM registry_release",
        "DELETE FROM registry_closureentry",
        "TRUNCATE registry_releaseblob",
    ]
    assert role("app")
    for statement in statements:
        with (
            pytest.raises(Exception, match=r"permission denied|is refused"),
            bound(ctx),
            connection.cursor() as c,
        ):
            c.execute(statement)


def test_the_database_refuses_a_state_without_its_journal(r):
    release_id = r.in_review()
    with (
        pytest.raises(Exception, match="without a journal entry"),
        bound(r.w.system()),
        connection.cursor() as cursor,
    ):
        cursor.execute(
            "UPDATE registry_release SET state = 'Published', published_at = now() WHERE id = %s",
            [release_id],
        )
