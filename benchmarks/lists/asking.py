"""How long a page takes for somebody, and what the database does for it."""

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from django.db import connection
from django.urls import reverse

import config.urls  # noqa: F401  it is what registers the pages
from benchmarks.lists.house import BenchmarkPerson
from benchmarks.lists.plans import Looking, Seen
from benchmarks.lists.questions import AskedPage, of_list, texts_of
from factory.console.lists.bounded_scan import BoundedScan
from factory.console.site import site

SEARCH = "/admin/search/"
"""What it finds by a whole id it opens at once."""
FEW, MORE = 2, 20
"""A page that is quick is opened few times; one that comes near the limit, until its p95 says something."""


@dataclass
class Measurement:
    """One question of one person: what the processor took for each opening, and the database once."""

    person: str
    asked: AskedPage
    seconds: list[float] = field(default_factory=list)
    seen: Seen = field(default_factory=Seen)
    fault: str = ""

    @property
    def p95(self) -> float:
        """Milliseconds of work: the page's own and the database's. On a machine that does nothing else they
        pass on the clock, too; a busy one lets everything wait, and says nothing about a page."""
        own = statistics.quantiles(self.seconds, n=20, method="inclusive")[-1]
        return 1000 * own + self.seen.ms


def ask(person: BenchmarkPerson, asked: AskedPage, most: float) -> Measurement:
    """Open a page: once while the database explains itself, which also warms it, and then to be timed."""
    found, looking = Measurement(person.name, asked), Looking()
    try:
        with connection.execute_wrapper(looking):
            _open(person, asked)
        found.seen = looking.seen
        while len(found.seconds) < (MORE if len(found.seconds) >= FEW and 2 * found.p95 > most else FEW):
            found.seconds.append(_open(person, asked))
    except Exception as fault:
        found.fault, found.seconds = f"{type(fault).__name__}: {fault}"[:300], [0.0, 0.0]
    return found


def _open(person: BenchmarkPerson, asked: AskedPage) -> float:
    began = time.thread_time()
    answer: Any = person.client.get(asked.path, follow=asked.path.startswith(SEARCH))
    if asked.file:
        list(islice(answer.streaming_content, 2))
    took = time.thread_time() - began
    if answer.status_code != 200:
        raise RuntimeError(f"{answer.status_code} {answer.get('Location', '')}")
    return took


def never_at_first() -> None:
    """Every narrowed list is looked through, as it would be by a database that is busy with others."""
    BoundedScan._at_first = lambda *_: None  # type: ignore[method-assign]


def lists(
    everybody: Sequence[BenchmarkPerson], word: str
) -> Iterator[tuple[str, BenchmarkPerson, AskedPage]]:
    """Every question of every list, for those whose sight of it differs."""
    for model, page in sorted(site._registry.items(), key=lambda each: each[0]._meta.label):
        path = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        if word not in path:
            continue
        for person in _whose(everybody, path):
            answer: Any = person.client.get(path)
            cl = (answer.context_data or {}).get("cl")
            if cl is None:
                continue  # a page that is no list, such as that of the settings
            old: Any = person.client.get(f"{path}?order=oldest")
            rows = [*cl.result_list[:1], *old.context_data["cl"].result_list[:1]]
            for asked in of_list(path, cl, texts_of(page, rows)):
                yield path, person, asked


def _whose(everybody: Sequence[BenchmarkPerson], path: str) -> list[BenchmarkPerson]:
    """Who sees the whole tenant, one in each of the projects, from large to small; in the inbox everybody."""
    able = [person for person in everybody if path in person.offered]
    if "approvalrequest" in path:
        return able
    wide = [one for one in able if one.name == "tenant-admin"]
    second, small = ([one for one in able if one.name.startswith(word)] for word in ("second", "small"))
    large = [one for one in able if one not in (*wide, *second, *small)]
    return [*wide, *large[:1], *second, *small[:1]]
