"""What it depends on: the manifests of the common ecosystems, pinned or not, locked or not."""

from typing import TYPE_CHECKING, Any

from .gitstore import is_binary, of_predecessor, plain, text_of
from .languages import is_test, is_vendored
from .manifests import Dependency, kind_of, lock_for

if TYPE_CHECKING:
    from runs.worker.context import SkillContext

MOST_SHOWN = 40


def run(context: "SkillContext") -> dict[str, Any]:
    """Parse each manifest of the tree. One that cannot be parsed is said to be so."""
    repository, commit = of_predecessor(context)
    repository.fetch_commit(commit)
    entries = repository.files(commit)
    known = {entry.path for entry in entries}
    wanted = [entry for entry in entries if kind_of(entry.path) and not is_vendored(entry.path)]
    found = []
    for entry, content in repository.read(wanted):
        context.check()
        if not is_binary(content):
            found.append(_manifest(entry.path, text_of(content), known))
    found.sort(key=lambda item: (item["test"], item["path"].count("/"), item["path"]))
    own = [item for item in found if not item["test"]]
    return {
        "manifests": found[:MOST_SHOWN],
        "manifestsFound": len(found),
        "ecosystems": sorted({item["ecosystem"] for item in own}),
        "dependencies": sum(item["dependencies"] for item in own),
        "pinned": sum(item["pinned"] for item in own),
        "unlockedManifests": sum(_is_loose(item) for item in own),
    }


def _manifest(path: str, text: str, known: set[str]) -> dict[str, Any]:
    kind = kind_of(path)
    assert kind is not None
    ecosystem, parser, locks = kind
    error = None
    listed: list[Dependency] = []
    try:
        listed = list(parser(text))
    except (ValueError, SyntaxError, KeyError, AttributeError, TypeError) as fault:
        error = type(fault).__name__
    unpinned = [item for item in listed if not item.pinned]
    return {
        "path": path[:200],
        "ecosystem": ecosystem,
        "dependencies": len(listed),
        "development": sum(item.dev for item in listed),
        "pinned": len(listed) - len(unpinned),
        "unpinned": [plain(f"{item.name} {item.wanted}".strip()[:80]) for item in unpinned[:8]],
        "lockFile": lock_for(path, locks, known),
        "error": error,
        "test": is_test(path),
    }


def _is_loose(item: dict[str, Any]) -> bool:
    """Two builds of it may get different versions."""
    return item["dependencies"] > item["pinned"] and item["lockFile"] is None
