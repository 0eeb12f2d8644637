"""The sample repository, built once, and a bench for each skill."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assessment.evaluation.bench import Bench
from assessment.evaluation.sample_repository import build

FIRST = ("inventory", "history", "code", "dependencies", "compose")


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sample") / "shop"
    build(path)
    return path


def look(folder: Path, repository: Path | str, until: str = "compose", **asked: str) -> dict[str, Any]:
    """The outputs of the skills, one after the other."""
    outputs: dict[str, Any] = {}
    for name in FIRST:
        bench = Bench(folder / name, {"repository": str(repository), **asked}, dict(outputs))
        outputs[name] = importlib.import_module(f"assessment.skills.{name}").run(bench)
        if name == until:
            break
    return outputs


@pytest.fixture(scope="session")
def outputs(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the skills say about the sample."""
    return look(tmp_path_factory.mktemp("looked"), shop)


@pytest.fixture
def publisher(
    tmp_path: Path, outputs: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Bench]:
    """A bench before the gate, with an artifact repository of the test's own."""
    monkeypatch.setenv("FACTORY_ARTIFACT_REPOSITORY", str(tmp_path / "artifacts.git"))
    made: list[Bench] = []

    def make(**more: Any) -> Bench:
        bench = Bench(tmp_path / f"publish-{len(made)}", {}, {**outputs, **more})
        made.append(bench)
        return bench

    return make
