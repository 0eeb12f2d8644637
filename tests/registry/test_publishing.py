"""A commit all the way to Published by one command, and the suite that it is measured by."""

import json
import shutil
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from approvals.selectors import approvals_of_subject
from factory.kernel.tenancy import reading
from projects.commands import add_member
from projects.commands.inputs import NewMember
from registry import selectors
from registry.management.commands.publish_release import Command
from registry.publication.evaluation import run_suite
from tests.registry.support import FILES, manifest
from tests.support.evidence import audits, journal, violations

pytestmark = pytest.mark.slow


def publish(r, capsys, commit, **changes):
    options = {
        "tenant": r.w.tenant,
        "project": "main",
        "author": r.w.requester.actor.subject,
        "reviewer": r.w.reviewer.actor.subject,
        "json": True,
        **changes,
    }
    call_command(Command(), r.repository.url, commit, **options)
    return json.loads(capsys.readouterr().out)


def suite(text):
    return run_suite(
        manifest(), {**{k: v.encode() for k, v in FILES.items()}, "evaluation/suite.py": text.encode()}
    )


@pytest.mark.parametrize("who", ["author", "reviewer"])
def test_says_who_of_the_named_is_no_member(r, capsys, who):
    told = rf"stranger@nowhere.test, who is named by --{who}, has no role in the project main of the tenant"
    with pytest.raises(CommandError, match=told):
        publish(r, capsys, r.repository.commit(), **{who: "stranger@nowhere.test"})


def test_publishes_a_commit_and_then_leaves_it_alone(r, capsys):
    commit = r.repository.commit()
    done = publish(r, capsys, commit)
    assert done["fresh"]
    assert done["asset"] == "sample"
    entries = journal(r.w.system(), done["releaseId"])
    again = publish(r, capsys, commit)
    assert again == {**done, "fresh": False}
    assert journal(r.w.system(), done["releaseId"]) == entries
    with reading(r.w.requester):
        assert str(selectors.resolve("survey", alias="latest").id) == done["releaseId"]
    assert violations(r.w.tenant) == []


def test_goes_on_where_it_was_interrupted(r, capsys):
    release_id = r.in_review()
    done = publish(r, capsys, r.row(release_id).commit)
    assert (done["releaseId"], done["fresh"]) == (str(release_id), True)
    draft = r.resolved("1.1.0")
    assert publish(r, capsys, r.row(draft).commit)["releaseId"] == str(draft)


def test_a_suite_that_fails_stops_it_and_is_recorded(r, capsys):
    commit = r.repository.commit(
        files={**FILES, "evaluation/suite.py": "raise SystemExit('nothing found')\n"}
    )
    with pytest.raises(CommandError, match="nothing found"):
        publish(r, capsys, commit)
    with reading(r.w.system()):
        [row] = list(selectors.releases())
        [record] = selectors.evaluations(row)
    assert (row.state, record.verdict, record.scores) == ("Draft", "fail", {})


def test_the_author_does_not_review_their_own(r, capsys):
    with pytest.raises(CommandError, match="could not approve"):
        publish(r, capsys, r.repository.commit(), reviewer=r.w.requester.actor.subject)


def test_who_holds_every_role_does_not_publish_their_own_either(r, capsys):
    """The command line asks the same function: refused, one audit row, and the release stays in review."""
    house, me = r.w.system(), f"everybody@{r.w.tenant}.test"
    roles = ("Requester", "Reviewer", "WorkspaceAdmin")
    add_member(house, project_id=r.w.project, member=NewMember(me, roles))
    add_member(house, project_id=None, member=NewMember(me, ("PlatformAdmin",)))
    with pytest.raises(CommandError, match="second person"):
        publish(r, capsys, r.repository.commit(), author=me, reviewer=me)
    with reading(house):
        [row] = list(selectors.releases())
        [asked] = approvals_of_subject(row.id)
    assert (row.state, asked.state, asked.version) == ("InReview", "Pending", 1)
    [refused] = audits(house, "DecideApproval")
    assert (refused.outcome, refused.subject) == ("refused", f"approval:{asked.id}")
    assert violations(r.w.tenant) == []


def test_a_stranger_publishes_nothing(r, capsys):
    with pytest.raises(CommandError):
        publish(r, capsys, r.repository.commit(), author="stranger@example.test")


def test_a_faulty_manifest_is_told_with_its_places(r, capsys):
    with pytest.raises(CommandError, match="/surprise"):
        publish(r, capsys, r.repository.commit(manifest(surprise=1)))


def test_the_suite_sees_the_files_of_the_release_and_no_secrets(monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "top-secret")
    found = suite(
        "import json, os, pathlib\n"
        "files = sorted(str(p) for p in pathlib.Path('.').rglob('*') if p.is_file())\n"
        "assert files == ['agents/analyst.md', 'evaluation/suite.py', 'skills/look.py'], files\n"
        "assert 'SECRET_KEY' not in os.environ and 'DATABASE_URL' not in os.environ\n"
        "print(json.dumps({'scores': {'found': 1}}))\n"
    )
    assert (found.problem, found.scores) == ("", {"found": 1}), found.said


@pytest.mark.parametrize(
    "text",
    [
        "",
        "print('fine')",
        "print('{}')",
        'print(\'{"scores": {"found": "high"}}\')',
        'print(\'{"scores": {"found": NaN}}\')',
        'print(\'{"scores": {"found": 1}}\'); raise SystemExit(3)',
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    ],
)
def test_a_suite_without_scores_has_none(text):
    found = suite(text)
    assert found.scores == {}
    assert found.problem


def test_what_the_suite_leaves_running_is_ended(tmp_path):
    flag = tmp_path / "later"
    found = suite(
        "import json, subprocess\n"
        f"subprocess.Popen(['sh', '-c', 'sleep 2; touch {flag}'])\n"
        "print(json.dumps({'scores': {'found': 1}}))\n"
    )
    assert found.scores == {"found": 1}
    import time

    time.sleep(2.5)
    assert not flag.exists()


def test_the_same_run_has_the_same_evidence():
    assert (
        suite(FILES["evaluation/suite.py"]).evidence_hash == suite(FILES["evaluation/suite.py"]).evidence_hash
    )


@pytest.mark.slow
def test_the_bundled_release_passes_its_own_suite(r, capsys):
    """The folder as it is here, from a commit of another repository: nothing outside the folder counts."""
    bundled = Path(__file__).resolve().parents[2] / "assessment"
    skipped = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(bundled, r.repository.folder / "assessment", ignore=skipped)
    commit = r.repository.commit()
    done = publish(r, capsys, commit, manifest="assessment/factory.yaml")
    assert done["fresh"]
    with reading(r.w.requester):
        found = selectors.resolve("repository-assessment", alias="latest")
        [record] = selectors.evaluations(selectors.find_release(found.id))
    assert [node["key"] for node in found.workflow["nodes"]][-1] == "publish"
    assert record.verdict == "pass"
    assert set(record.scores) >= set(record.thresholds)
    assert violations(r.w.tenant) == []
