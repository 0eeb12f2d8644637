"""How it came to be: activity, authors, and the files that change most."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from .gitstore import of_predecessor
from .languages import is_vendored

if TYPE_CHECKING:
    from runs.worker.context import SkillContext

MOST_COMMITS = 50_000
WINDOW = timedelta(days=365)
FEWEST_IN_WINDOW = 20
FORMAT = "%x01%aN%x02%aE%x02%ct%x02%P%x02"
# A commit that touches more than this moves or formats things; it says nothing about where work happens.
SWEEPING = 200


@dataclass(frozen=True)
class CommitRecord:
    """A commit as far as it matters here."""

    author: str
    email: str
    at: datetime
    is_merge: bool
    changes: tuple[tuple[str, int, int], ...]


def run(context: "SkillContext") -> dict[str, Any]:
    """Read the log with numstat once, and count."""
    repository, commit = of_predecessor(context)
    repository.fetch_history(commit)
    listed = {entry.path for entry in repository.files(commit)}
    log = repository.git(
        "git-log", "-c", f"mailmap.blob={commit}:.mailmap", "log", "-z", "--numstat", "--no-renames",
        "--use-mailmap",
        f"--max-count={MOST_COMMITS}", f"--format={FORMAT}", "--end-of-options", commit,
    )  # fmt: skip
    context.check()
    commits = list(_parse(log))
    shallow = repository.git("git-rev-parse", "rev-parse", "--is-shallow-repository").strip() == b"true"
    return {**_ages(commits), **_authors(commits), **_hotspots(commits, listed), "shallow": shallow}


def _parse(log: bytes) -> Iterator[CommitRecord]:
    for record in log.decode("utf-8", "replace").split("\x01")[1:]:
        author, email, at, parents, rest = record.split("\x02", 4)
        changes = []
        for line in rest.split("\0"):
            added, _, more = line.strip("\n").partition("\t")
            deleted, _, path = more.partition("\t")
            if path:
                changes.append((path, _number(added), _number(deleted)))
        when = datetime.fromtimestamp(int(at), UTC)
        yield CommitRecord(
            author.strip(), email.strip().lower(), when, " " in parents.strip(), tuple(changes)
        )


def _number(text: str) -> int:
    """`-` stands for a binary file."""
    return int(text) if text.isdigit() else 0


def _ages(commits: list[CommitRecord]) -> dict[str, Any]:
    times = sorted(commit.at for commit in commits)
    months = Counter(time.strftime("%Y-%m") for time in times)
    first, last = times[0], times[-1]
    return {
        "commits": len(commits),
        "merges": sum(commit.is_merge for commit in commits),
        "firstAt": _text(first),
        "lastAt": _text(last),
        "ageDays": (last - first).days,
        "activity": [{"month": month, "commits": months[month]} for month in _months_until(last, first)],
    }


def _months_until(last: datetime, first: datetime) -> list[str]:
    """Count the last 24 months, empty ones included, but none before the first commit."""
    found: list[str] = []
    year, month = last.year, last.month
    while len(found) < 24 and (year, month) >= (first.year, first.month):
        found.append(f"{year:04d}-{month:02d}")
        year, month = (year, month - 1) if month > 1 else (year - 1, 12)
    return found[::-1]


def _authors(commits: list[CommitRecord]) -> dict[str, Any]:
    counted = Counter(commit.email or commit.author for commit in commits)
    names = {commit.email or commit.author: commit.author for commit in reversed(commits)}
    top = counted.most_common()
    half, needed, factor = len(commits) / 2, 0, 0
    for _, number in top:
        needed += number
        factor += 1
        if needed >= half:
            break
    return {
        "authors": len(counted),
        "busFactor": factor,
        "topAuthors": [
            {"name": names[who][:100], "commits": number, "share": round(number / len(commits), 3)}
            for who, number in top[:10]
        ],
    }


def _hotspots(commits: list[CommitRecord], listed: set[str]) -> dict[str, Any]:
    since = max(commit.at for commit in commits) - WINDOW
    recent = [commit for commit in commits if commit.at >= since]
    window = recent if len(recent) >= FEWEST_IN_WINDOW else commits
    touched: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    who: dict[str, set[str]] = defaultdict(set)
    for commit in window:
        if len(commit.changes) > SWEEPING:
            continue
        for path, added, deleted in commit.changes:
            if path in listed and not is_vendored(path):
                touched[path] += 1
                lines[path] += added + deleted
                who[path].add(commit.email or commit.author)
    ranked = sorted(touched, key=lambda path: (-touched[path], -lines[path], path))
    hot = [
        {"path": path[:200], "commits": touched[path], "lines": lines[path], "authors": len(who[path])}
        for path in ranked[:20]
    ]
    since_at = min(commit.at for commit in window)
    return {"window": {"since": _text(since_at), "commits": len(window)}, "hotspots": hot}


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
