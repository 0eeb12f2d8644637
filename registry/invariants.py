"""What the auditor checks here. What has to be recomputed is read row by row, the rest is one query."""

from collections.abc import Iterator
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.db.backends.utils import CursorWrapper

from factory.evidence.auditor import check, invariant, judged
from factory.evidence.readable import number_of, object_of
from factory.kernel.hashing import digest_bytes
from registry.manifest.closure import ClosureFile, release_hash

Found = Iterator[tuple[Any, Any, Any]]


@check("R1", "The hash of a release recomputes from its entries")
def hashes_recompute(cursor: CursorWrapper) -> Found:
    cursor.execute("""
        SELECT r.tenant_id, r.id, a.name, r.semver, r.commit, c.hash,
               e.kind, e.item_id, e.path, e.sha256, e.size, e.side_effect_class
        FROM registry_release r
        JOIN registry_asset a ON a.id = r.asset_id
        JOIN registry_closure c ON c.id = r.closure_id
        LEFT JOIN registry_closureentry e ON e.closure_id = c.id
        ORDER BY r.tenant_id, r.id
    """)
    for (tenant, release_id, asset, version, commit, stored), rows in groupby(
        cursor.fetchall(), key=itemgetter(0, 1, 2, 3, 4, 5)
    ):
        entries = [ClosureFile(*row[6:]) for row in rows if row[6] is not None]
        judge = partial(_unlike, stored, asset, version, commit, entries)
        yield from judged(tenant, f"release:{release_id}", judge)


def _unlike(stored: str, asset: str, version: str, commit: str, entries: list[ClosureFile]) -> str | None:
    computed = release_hash(asset, version, commit, entries)
    return None if computed == stored else f"the entries give {computed}, the release says {stored}"


@check("R2", "Every file of a release is kept, and has the hash that the release names")
def contents_match(cursor: CursorWrapper) -> Found:
    cursor.execute("SELECT tenant_id, sha256, content FROM registry_releaseblob")
    while rows := cursor.fetchmany(100):
        for tenant, sha256, content in rows:
            if digest_bytes(bytes(content)) != sha256:
                yield tenant, f"file:{sha256}", "the content has another hash"
    cursor.execute("""
        SELECT DISTINCT e.tenant_id, e.sha256, e.path FROM registry_closureentry e
        WHERE (e.path <> '' OR e.kind = 'manifest') AND NOT EXISTS (
            SELECT 1 FROM registry_releaseblob b WHERE b.tenant_id = e.tenant_id AND b.sha256 = e.sha256)
    """)
    for tenant, sha256, path in cursor.fetchall():
        yield tenant, f"file:{sha256}", f"the content of {path or 'the manifest'} is missing"


@invariant("R3", "What was published had a passing evaluation of exactly its hash")
def published_was_evaluated() -> str:
    return f"""
        SELECT r.tenant_id, 'release:' || r.id AS subject,
               coalesce('evaluation ' || e.id || ': ' || e.verdict, 'no evaluation') AS detail
        FROM registry_release r
        LEFT JOIN registry_closure c ON c.id = r.closure_id
        LEFT JOIN registry_evaluationrecord e ON e.id = r.evaluation_id
        WHERE r.published_at IS NOT NULL
          AND (e.id IS NULL OR e.verdict <> 'pass' OR e.release_hash <> c.hash OR e.closure_id <> c.id
               OR EXISTS (
                   SELECT 1 FROM jsonb_each_text({object_of("e.thresholds")}) AS t(name, least)
                   WHERE coalesce({number_of("e.scores ->> t.name")} < {number_of("t.least")}, true))
               OR jsonb_typeof(e.thresholds) <> 'object')
    """


@invariant("R4", "What was published was approved for it, by somebody other than its author")
def published_was_approved() -> str:
    return """
        SELECT r.tenant_id, 'release:' || r.id AS subject,
               coalesce('approval ' || a.state || ' by ' || a.decided_by, 'no approval') AS detail
        FROM registry_release r
        LEFT JOIN approvals_approvalrequest a ON a.id = r.approval_id AND a.tenant_id = r.tenant_id
        WHERE r.published_at IS NOT NULL
          AND (a.id IS NULL OR a.state <> 'Approved' OR a.subject_type <> 'publication'
               OR a.subject_id <> r.id OR a.decided_by = r.author OR a.decided_person = r.author_person)
    """


@invariant("R5", "An alias names what its newest move says, and its moves are numbered without a gap")
def aliases_match_history() -> str:
    return """
        SELECT l.tenant_id, 'alias:' || l.id AS subject,
               'version ' || l.version || ', moves ' || count(m.id) AS detail
        FROM registry_alias l
        LEFT JOIN registry_aliasmove m ON m.alias_id = l.id
        GROUP BY l.tenant_id, l.id, l.version, l.release_id
        HAVING count(m.id) <> l.version OR max(m.version) <> l.version OR min(m.version) <> 1
            OR (array_agg(m.release_id ORDER BY m.version DESC))[1] IS DISTINCT FROM l.release_id
            OR bool_or(m.moved_at IS NULL)
    """


@invariant("R6", "An alias names a release of its own asset that was published")
def aliases_name_published() -> str:
    return """
        SELECT m.tenant_id, 'alias:' || m.alias_id AS subject, r.semver || ' is ' || r.state AS detail
        FROM registry_aliasmove m
        JOIN registry_alias l ON l.id = m.alias_id
        JOIN registry_release r ON r.id = m.release_id
        WHERE r.asset_id <> l.asset_id OR r.published_at IS NULL OR m.moved_at < r.published_at
           OR (r.state = 'Deprecated' AND l.release_id = r.id)
    """


@invariant("R7", "A published workflow belongs to the asset of every release that holds it")
def workflows_have_one_asset() -> str:
    return """
        SELECT r.tenant_id, 'release:' || r.id AS subject, e.item_id || ' is of another asset' AS detail
        FROM registry_release r
        JOIN registry_closureentry e ON e.closure_id = r.closure_id AND e.kind = 'workflow'
        LEFT JOIN registry_assetworkflow w ON w.tenant_id = r.tenant_id AND w.workflow_id = e.item_id
        WHERE r.published_at IS NOT NULL AND w.asset_id IS DISTINCT FROM r.asset_id
    """
