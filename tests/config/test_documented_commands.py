"""Each command that the pages name is taken by the product as it is printed there."""

import json
import re
import shlex
import subprocess
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command, get_commands, load_command_class
from django.test import Client

from tests.support.running import House
from tests.support.world import subject_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs/how-to").glob("*.md"))]
STANDS_FOR = {
    r"\b(ID|RUN|TEMPLATE_ID|WAIVER_ID|STAGING_ID|RELEASE_ID)\b": str(UUID(int=7)),
    r"<commit>": "a" * 40,
}
"""What the pages write where their reader has an id."""


def code_of(page: Path) -> list[str]:
    """Return each line of code and each code span of a page; a line that is continued is one."""
    text = re.sub(r"\\\n\s*", " ", page.read_text())
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in fenced for line in block.splitlines()]
    text = re.sub(r"^```\w*\n(.*?)^```", "", text, flags=re.MULTILINE | re.DOTALL)
    lines += re.findall(r"^ {4,}(\S.*)$", text, re.MULTILINE)
    return lines + [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", text)]


def commands(start: str) -> list[tuple[str, list[str]]]:
    """Return the words of each command that begins so, without the remark behind it, with its page."""
    found = []
    for page in PAGES:
        for line in code_of(page):
            match = re.search(rf"(?:^|[ (=]){start} +(\S.*)$", line)
            if match:
                words = re.split(r" {3,}| [|>] |\)$", match[1])[0]
                for pattern, value in STANDS_FOR.items():
                    words = re.sub(pattern, value, words)
                found.append((page.name, shlex.split(words)))
    return found


MANAGE = [found for found in commands(r"manage\.py") if found[1][0][0].isalpha()]


@pytest.mark.parametrize(
    ("page", "words"), MANAGE, ids=lambda value: value if isinstance(value, str) else value[0]
)
def test_a_documented_management_command_takes_its_arguments(page: str, words: list[str]) -> None:
    name, *arguments = words
    assert name in get_commands(), f"{page} names a command that is not there"
    if not arguments:
        return
    parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
    parser.parse_args(arguments)


def test_the_pages_are_read_for_their_commands() -> None:
    names = {words[0] for _, words in MANAGE}
    assert names >= {"onboard", "verify", "issue_token", "policy", "identity", "setting", "recover", "web"}
    assert len(MANAGE) > 50


def test_a_documented_target_of_make_is_there() -> None:
    named = {words[0] for _, words in commands("make")}
    assert named >= {"up", "test", "check", "schema", "gallery"}
    done = subprocess.run(
        ["make", "-n", *sorted(named)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_documented_module_or_script_is_there() -> None:
    named = {words[0] for _, words in commands(r"\S*python -m")}
    assert named >= {"pytest", "runs.worker", "benchmarks.lists", "tests.gallery", "tests.plugin"}
    assert [name for name in sorted(named) if find_spec(name) is None] == []
    scripts = {words[0] for _, words in commands(r"\S*python") if words[0].endswith(".py")}
    assert "assessment/evaluation/suite.py" in scripts
    assert [name for name in sorted(scripts) if not (ROOT / name).is_file()] == []


def run(words: list[str], stands_for: dict[str, str], folder: Path) -> str:
    """Run a documented command with what its reader would put for the names in it; return what it prints."""
    name, *arguments = words
    for written, meant in stands_for.items():
        arguments = [re.sub(rf"(?<![\w.]){written}(?![\w-])", meant, argument) for argument in arguments]
    printed = StringIO()
    call_command(name, *arguments, stdout=printed, stderr=StringIO())
    if arguments[-1:] == ["show"]:
        (folder / "policy.yaml").write_text(printed.getvalue())
    return printed.getvalue()


def of_page(page: str, *names: str) -> list[list[str]]:
    return [words for found, words in MANAGE if found == page and words[0] in names and words[1:]]


def test_a_project_is_onboarded_by_the_commands_of_its_page(
    tenant_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("onboard", "sign_in_link", "register_service_account", "issue_token", "kill_project")
    page = of_page("onboard-a-project.md", *names)
    assert {words[0] for words in page} == set(names)
    for words in sorted(page, key=lambda words: names.index(words[0])):
        assert run(words, {"acme": tenant_id}, tmp_path), words


def demo(house: House) -> dict[str, str]:
    """Return what the demo's names are in the tenant of a test."""
    people = {
        "requester": "requester",
        "operator": "operator",
        "reviewer": "reviewer",
        "admin": "tenant_admin",
    }
    named = {f"{name}@demo.test": subject_of(house.tenant, member) for name, member in people.items()}
    return named | {"demo": house.tenant, "factory": "main"}


def test_the_commands_about_the_demo_run_as_they_are_printed(
    tenant_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stands_for = demo(House(tenant_id))
    page = [words for _, words in MANAGE if "demo" in words and words[0] in ("policy", "issue_token")]
    order = ["issue_token", "explain", "show", "publish", "compare"]
    assert {word for words in page for word in words} >= set(order)
    for words in sorted(page, key=lambda words: min(order.index(word) for word in words if word in order)):
        assert run(words, stands_for, tmp_path), words


def requests() -> list[tuple[str, str, str, Any]]:
    """Return the page, method, path and body of each documented call over HTTP."""
    call = r"curl -X (\w+) https?://[^/\s]+(\S+)((?:[^\n]|\n(?! *curl|\n))*?)-d '(\{[^']*\})'"
    return [
        (page.name, method, path, json.loads(body))
        for page in PAGES
        for method, path, _, body in re.findall(call, page.read_text())
    ]


READ = (201, 202, 207, 404, 422)
"""Answers to what is well-formed and allowed; a body that is not is a 400."""


def test_documented_calls_have_a_path_and_a_body_that_is_read(tenant_id: str) -> None:
    """The ids in them lead nowhere, so what is well-formed is answered with what is not there."""
    house, client, answers = House(tenant_id), Client(), []
    for page, method, path, body in requests():
        for pattern, value in STANDS_FOR.items():
            path, body = re.sub(pattern, value, path), json.loads(re.sub(pattern, value, json.dumps(body)))
        body = json.loads(json.dumps(body).replace("sha256:\\u2026", f"sha256:{'0' * 64}"))
        who = "reviewer" if "/approvals/" in path else "workspace_admin"
        headers = {"Authorization": f"Bearer {house.world.token(who)}", "Idempotency-Key": f"{page}{path}"}
        answer = client.generic(method, path, json.dumps(body), "application/json", headers=headers)
        answers.append((page, path, answer.status_code, answer.json().get("detail", "")))
    assert len(answers) > 7
    assert [answer for answer in answers if answer[2] not in READ or "path" in answer[3]] == []
