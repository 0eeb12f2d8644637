"""The skills on the sample, on this repository, and on what may be thrown at them."""

import importlib
import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rfc8785

from assessment.evaluation.bench import Bench, SkillRefused
from assessment.evaluation.sample_repository import PLANTED
from assessment.skills.compose import render
from tests.assessment.conftest import look

HOUSE = Path(__file__).parents[2]
LIMIT = 256 * 1024


def git(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(folder)}
    argv = ["git", "-c", "user.name=T", "-c", "user.email=t@t.test", *arguments]
    return subprocess.run(
        argv, cwd=folder, env=environment, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A repository with whatever may be in one."""
    folder = tmp_path / "odd"
    folder.mkdir()
    git(folder, "init", "--quiet", "-b", "main", ".")
    return folder


def commit(folder: Path, files: dict[str, str | bytes]) -> str:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "--quiet", "--no-verify", "-m", "c")
    return git(folder, "rev-parse", "HEAD").strip()


def run(name: str, folder: Path, repository: Path | str, **asked: str) -> Any:
    bench = Bench(folder, {"repository": str(repository), **asked}, {})
    return importlib.import_module(f"assessment.skills.{name}").run(bench)


def test_a_whole_report_of_real_code(odd: Path, tmp_path: Path) -> None:
    real = [file.relative_to(HOUSE) for file in (HOUSE / "registry").rglob("*.py")]
    commit(odd, {str(name): (HOUSE / name).read_bytes() for name in real})
    found = look(tmp_path, odd)
    assert found["inventory"]["languages"][0]["language"] == "Python"
    assert found["code"]["functions"] > 200
    assert found["history"]["commits"] == 1
    assert found["code"]["unanalysedFiles"] == 0
    report = render(found["compose"]["report"])
    assert report["report.md"].startswith("# Assessment of ")
    assert all(len(json.dumps(output).encode()) < LIMIT for output in found.values())


def test_no_value_of_a_secret_is_in_any_output(outputs: dict[str, Any]) -> None:
    whole = json.dumps(outputs) + "".join(render(outputs["compose"]["report"]).values())
    assert outputs["code"]["secretsFound"] == 1
    assert not any(value in whole for value in PLANTED.values())


@pytest.mark.parametrize("revision", ["main", "HEAD", "main~2", "v1", "light", "short"])
def test_a_revision_is_resolved_once(shop: Path, tmp_path: Path, revision: str) -> None:
    git(shop, "tag", "--force", "light", "main~1")
    git(shop, "tag", "--force", "-a", "-m", "x", "v1", "main~1")
    wanted = {"v1": "main~1", "light": "main~1", "short": "main~3"}.get(revision, revision)
    commit = git(shop, "rev-parse", wanted).strip()
    asked = commit[:10] if revision == "short" else revision
    assert run("inventory", tmp_path / "w", shop, revision=asked)["commit"] == commit


@pytest.mark.parametrize(
    ("repository", "revision", "said"),
    [
        ("/nowhere/at/all", "HEAD", "nothing at /nowhere"),
        ("relative/path", "HEAD", "absolute path or a URL"),
        ("ext::sh -c touch% /tmp/owned", "HEAD", "absolute path or a URL"),
        ("ssh://host/x.git", "HEAD", "absolute path or a URL"),
        ("--upload-pack=/bin/true", "HEAD", "absolute path or a URL"),
        ("SHOP", "no-such-branch", "no revision 'no-such-branch'"),
        ("SHOP", "0" * 40, "no commit 000000"),
    ],
)
def test_says_what_is_wrong_with_what_it_was_given(
    shop: Path, tmp_path: Path, repository: str, revision: str, said: str
) -> None:
    with pytest.raises(SkillRefused, match=said):
        run("inventory", tmp_path / "w", repository.replace("SHOP", str(shop)), revision=revision)


def test_an_operator_may_narrow_where_it_reads(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTORY_ASSESSMENT_SOURCES", "https://git.example.test/")
    with pytest.raises(SkillRefused, match="policy-denied"):
        run("inventory", tmp_path / "w", shop)


def test_nothing_of_the_repository_is_run_or_followed(odd: Path, tmp_path: Path) -> None:
    mark = tmp_path / "owned"
    commit(odd, {".gitattributes": "* filter=evil export-ignore\n", "a.py": "x = 1\n"})
    (odd / "out").symlink_to("/etc/passwd")
    git(odd, "add", "out")
    git(odd, "commit", "--quiet", "-m", "a link")
    hook = odd / ".git/hooks/post-upload-pack"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    git(odd, "config", "filter.evil.smudge", f"touch {mark}")
    git(odd, "config", "core.fsmonitor", f"touch {mark}")
    found = look(tmp_path / "w", odd)
    assert not mark.exists()
    assert {item["path"] for item in found["inventory"]["largestFiles"]} == {".gitattributes", "a.py"}


def test_odd_content_is_counted_and_does_not_break_it(odd: Path, tmp_path: Path) -> None:
    commit(
        odd,
        {
            "bad.py": b"def f(:\n\xff\xfe\n",
            "picture.png": b"\x89PNG\0\0",
            "empty.go": "",
            "näme with | and `.js": "function f() { return 1 }\n",
            "tool": "#!/usr/bin/env python3\nprint(1)\n",
            "pyproject.toml": "not = [toml",
            "package.json": '{"dependencies": ["a"]}',
            "pom.xml": '<!DOCTYPE x [<!ENTITY a "b">]><project/>',
            "long.js": "x" * 500_000,
            "web/composer.json": '{"require": {"a/\\u0000\\ud800b": "^1"}}',
            "late.py": "# " + "x" * 9000 + "\0\ndef f():\n    pass\n",
        },
    )
    found = look(tmp_path / "w", odd)
    assert found["inventory"]["binaryFiles"] == 1
    assert found["inventory"]["languages"][0]["language"] in ("Python", "JavaScript")
    errors = {item["path"]: item["error"] for item in found["dependencies"]["manifests"]}
    assert {path for path, error in errors.items() if error} == {"pyproject.toml", "package.json", "pom.xml"}
    assert "\\u0000" not in json.dumps(found)
    rfc8785.dumps(found)
    assert "¦" in render(found["compose"]["report"])["report.md"]


def test_words_from_the_repository_cannot_become_markup(odd: Path, tmp_path: Path) -> None:
    commit(odd, {"a.py": "x = 1\n"})
    git(odd, "-c", "user.name=<b>[x](http://evil)|", "commit", "--allow-empty", "-m", "# <script>\n")
    report = render(look(tmp_path / "w", odd)["compose"]["report"])["report.md"]
    assert "<script>" not in report
    assert "[x](http" not in report


def test_a_shallow_clone_is_said_to_be_one(shop: Path, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth", "1", shop.as_uri(), str(shallow))
    found = look(tmp_path / "w", shallow, until="history")
    assert found["history"]["shallow"] is True
    assert found["history"]["commits"] == 1


def composed(tmp_path: Path, outputs: dict[str, Any], model: Any) -> dict[str, Any]:
    bench = Bench(tmp_path, {}, outputs)
    bench.model = model
    found: dict[str, Any] = importlib.import_module("assessment.skills.compose").run(bench)
    return found


def test_a_models_summary_is_quoted_and_named(tmp_path: Path, outputs: dict[str, Any]) -> None:
    class Model:
        def complete(self, messages: list[dict[str, str]], **more: Any) -> Any:
            assert "experienced maintainer" in messages[0]["content"]
            return SimpleNamespace(text="It is\n<b>fine</b>.", model="big-1")

    found = composed(tmp_path, outputs, Model())
    report = render(found["report"])["report.md"]
    assert "Written by the model `big-1`" in report
    assert "> It is\n> \\<b\\>fine" in report


def test_there_is_no_summary_when_the_model_fails(tmp_path: Path, outputs: dict[str, Any]) -> None:
    class Broken:
        def complete(self, *_: Any, **more: Any) -> Any:
            raise RuntimeError("down")

    found = composed(tmp_path, outputs, Broken())
    assert found["report"]["summary"] is None
    assert "## Summary" not in render(found["report"])["report.md"]
