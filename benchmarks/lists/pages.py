"""Pages besides the lists that read the large tables: the first page, the search, a run of many steps."""

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.lists.growing import Large, kind_of
from benchmarks.lists.house import BenchmarkPerson
from benchmarks.lists.questions import NOBODY, AskedPage
from benchmarks.lists.shapes import BIG

SOUGHT = (
    "k777777", "person5@bench.test", "small-requester@bench.test", "single", "gated", "nobody at all",
    "wants to commit", "sample@1.0.0", "aaaaaaa", "abcdef0", "deadbeef", NOBODY,
)  # fmt: skip


def others(
    db: Any, everybody: Sequence[BenchmarkPerson], large: Large, word: str
) -> Iterator[tuple[str, BenchmarkPerson, AskedPage]]:
    run = _key(db, "runs_run", BIG)
    ended = _key(db, "runs_run", large.rows // 20)
    request = _key(db, "approvals_approvalrequest", 200)
    paths = {
        "first page": ["/admin/", "/admin/?span=days"],
        "search": [f"/admin/search/?q={text}" for text in (*SOUGHT, ended, ended[-8:], request)],
        "big run": [f"/admin/runs/run/{run}/change/{tab}" for tab in ("", *TABS)],
        "run": [f"/admin/runs/run/{ended}/change/{tab}" for tab in ("", *TABS)],
        "decision": [f"/admin/approvals/approvalrequest/{request}/change/"],
        "consumers": ["/admin/factory/outboxevent/consumers/"],
        "explorer": [f"/admin/usage/usagerecord/explorer/{asked}" for asked in EXPLORED],
        "budget page": [f"/admin/usage/budget/{_budget(db, large)}/change/"],
        "entry": [f"/admin/factory/journalentry/{_key(db, 'factory_journalentry', BIG + 9)}/change/"],
    }
    needs = {
        "big run": "/admin/runs/run/",
        "run": "/admin/runs/run/",
        "decision": "/admin/approvals/approvalrequest/",
        "consumers": "/admin/factory/outboxevent/",
        "entry": "/admin/factory/journalentry/",
        "explorer": "/admin/usage/usagerecord/",
        "budget page": "/admin/usage/budget/",
    }
    for name, addresses in paths.items():
        for path in addresses if word in name else ():
            for person in everybody:
                if needs.get(name, "/admin/runs/run/") not in person.offered:
                    continue
                yield name, person, AskedPage(path)


TABS = ("?tab=steps", "?tab=journal", "?tab=events", "?tab=usage", "?tab=audit")


EXPLORED = (
    "", "?by=day", "?by=workflow", "?by=release", "?period=30", "?period=30&by=project",
    "?period=own&from=2026-01-01&to=2026-12-31", "?period=30&format=csv",
)  # fmt: skip


def _budget(db: Any, large: Large) -> str:
    """This month's budget of the whole tenant, which everybody sees."""
    asked = (
        "SELECT id FROM usage_budget WHERE tenant_id = %s AND project_id IS NULL ORDER BY period_start DESC"
    )
    return str(db.execute(asked, [large.tenant]).fetchone()[0])


def _key(db: Any, table: str, number: int) -> str:
    return str(db.execute("SELECT bench_key(%s, %s)", [kind_of(table), number]).fetchone()[0])
