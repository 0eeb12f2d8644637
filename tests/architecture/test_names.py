"""Where a module may stand, what a class may be called, and how a docstring begins."""

import ast
import re
from collections import defaultdict
from pathlib import Path

from tests.architecture.source import APPS, ROOT, sources

ROOMS = {
    *(
        "states",
        "events",
        "errors",
        "permissions",
        "models",
        "migrations",
        "selectors",
        "operations",
        "commands",
    ),
    *("handlers", "reconcilers", "invariants", "restore", "rest", "admin", "management", "apps", "subjects"),
    *("templatetags", "tasks"),
}
SUBJECTS = {
    "approvals": {"policy"},
    "notifications": {"channels", "retention"},
    "projects": set[str](),
    "registry": {"manifest", "source", "publication"},
    "runs": {"engine", "dispatch", "watch", "worker"},
    "usage": {"pricing"},
}
"""Sub-packages where an app has a subject of its own, each named for it."""
FACTORY = {
    *("kernel", "evidence", "messaging", "identity", "api", "console", "embedded"),
    *("apps", "management", "migrations", "models", "permissions"),
}


def names_in(folder: Path) -> set[str]:
    """Return the modules and packages of a folder; what holds no module, such as templates, is none."""
    places = (path for path in folder.iterdir() if not path.name.startswith(("_", ".")))
    return {path.stem for path in places if path.suffix == ".py" or any(path.rglob("*.py"))}


def test_an_app_has_its_rooms_and_its_subjects_and_nothing_else() -> None:
    assert {app: names_in(ROOT / app) - ROOMS - SUBJECTS[app] for app in APPS} == {app: set() for app in APPS}


def test_factory_has_its_packages_and_nothing_else() -> None:
    assert names_in(ROOT / "factory") - FACTORY == set()


NAMED_BY_DJANGO = {"Command", "Media", "Meta"}


def test_a_class_name_stands_once_in_the_product() -> None:
    places = defaultdict(set)
    for source in sources():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef) and node.name not in NAMED_BY_DJANGO:
                places[node.name].add(source.name)
    twice = {name: sorted(found) for name, found in places.items() if len(found) > 1}
    assert twice == {}


NO_VERB = re.compile(r"(What|Whether|The same|How|Why|Who)\b")


def test_a_docstring_begins_with_what_is_done() -> None:
    found = [
        source.at(node)
        for source in sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and NO_VERB.match(ast.get_docstring(node) or "")
    ]
    assert found == []
