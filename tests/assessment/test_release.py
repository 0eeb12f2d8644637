"""The release as it would be published."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from registry.manifest.closure import close, referred_files
from registry.manifest.definitions import validated
from registry.publication.evaluation import run_suite
from runs.worker.release import LoadedRelease

ROOT = Path(__file__).parents[2] / "assessment"


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    return validated((ROOT / "factory.yaml").read_bytes())


def contents(manifest: dict[str, Any]) -> dict[str, bytes]:
    return {path: (ROOT / path).read_bytes() for _, _, path, _ in referred_files(manifest)}


def test_every_file_of_the_folder_is_in_the_release(manifest: dict[str, Any]) -> None:
    own = {
        str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file() and path.suffix != ".pyc"
    }
    assert own - set(contents(manifest)) == {"__init__.py", "factory.yaml"}


def test_the_suite_gives_every_skill_full_marks(manifest: dict[str, Any]) -> None:
    found = run_suite(manifest, contents(manifest))
    assert found.problem == "", found.said
    assert found.scores == dict.fromkeys(
        ("inventory", "history", "code", "dependencies", "compose", "publish"), 1.0
    )
    assert set(manifest["evaluation"]["thresholds"]) == set(found.scores)


def test_the_suite_notices_a_skill_that_is_wrong(manifest: dict[str, Any]) -> None:
    files = contents(manifest)
    files["skills/licences.py"] = files["skills/licences.py"].replace(b'"MIT"', b'"Apache-2.0"')
    found = run_suite(manifest, files)
    assert found.scores["inventory"] < 1.0
    assert "licence" in json.loads(found.said.splitlines()[-1])["misses"][0]


def test_a_worker_can_import_each_skill_from_the_release_alone(manifest: dict[str, Any]) -> None:
    raw = (ROOT / "factory.yaml").read_bytes()
    closure = close(
        commit="c" * 40, definition=manifest, manifest=raw, contents=contents(manifest), dependencies={}
    )
    files = {
        entry.path: closure.files[entry.sha256]
        for entry in closure.entries
        if entry.kind in ("agent", "skill")
    }
    release = LoadedRelease(closure.hash, yaml.safe_load(raw), files)
    for skill in manifest["skills"]:
        assert callable(release.skill(skill["skillId"]))


def test_each_skill_names_every_file_that_it_imports(manifest: dict[str, Any]) -> None:
    for skill in manifest["skills"]:
        alone = SimpleNamespace(missing=set())
        for path in skill["files"]:
            for line in (ROOT / path).read_text().splitlines():
                if line.startswith("from .") and not line.startswith("from .."):
                    needed = f"skills/{line.split()[1].lstrip('.')}.py"
                    if needed not in skill["files"]:
                        alone.missing.add(needed)
        assert alone.missing == set(), skill["skillId"]
