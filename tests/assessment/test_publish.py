"""What is committed is what was approved, byte for byte."""

import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assessment.evaluation.bench import Bench, Decided, SkillRefused
from assessment.skills import publish
from assessment.skills.artifacts import AUTHOR, ArtifactRepository

Publisher = Callable[..., Any]


def git(repository: str | Path, *arguments: str) -> bytes:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    argv = ["git", f"--git-dir={repository}", *arguments]
    return subprocess.run(argv, env=environment, check=True, capture_output=True).stdout


def test_the_approved_diff_is_the_diff_of_the_commit(publisher: Publisher) -> None:
    bench = publisher()
    done = publish.run(bench)
    (proposal,) = bench.proposals
    assert (
        git(done["repository"], "diff", f"{proposal['baseCommit']}..{done['commit']}")
        == proposal["diff"].encode()
    )
    shown = git(done["repository"], "log", "-1", "--format=%P|%an|%ae|%aI|%cI|%B", done["commit"]).decode()
    author = proposal["author"]
    at = author["date"].replace("Z", "+00:00")
    head = f"{proposal['baseCommit']}|{author['name']}|{author['email']}|{at}|{at}|{proposal['message']}"
    assert shown.strip() == head.strip()
    assert (
        git(done["repository"], "rev-parse", f"refs/heads/{done['branch']}").decode().strip()
        == done["commit"]
    )


def test_a_proposal_leaves_nothing_behind(publisher: Publisher, tmp_path: Path) -> None:
    bench = publisher()
    bench.answers = [("reject", "")]
    with pytest.raises(SkillRefused, match="policy-denied"):
        publish.run(bench)
    repository = tmp_path / "artifacts.git"
    assert git(repository, "for-each-ref", "--format=%(refname)").split() == [b"refs/heads/main"]
    assert git(repository, "fsck", "--unreachable", "--no-reflogs").strip() == b""


def test_the_reviewers_words_come_back_as_a_quotation(publisher: Publisher) -> None:
    bench = publisher()
    bench.answers = [("request_changes", "name an `owner`\n# now"), ("approve", "")]
    done = publish.run(bench)
    report = git(done["repository"], "show", f"{done['commit']}:report.md").decode()
    assert "> Reviewer asked: “name an \\`owner\\` \\# now”" in report
    first, second = bench.proposals
    assert first["branch"] == second["branch"]
    assert first["diff"] != second["diff"]


def test_another_attempt_proposes_the_very_same(publisher: Publisher) -> None:
    hashes = []
    for _ in range(2):
        bench = publisher()
        bench.answers = [("reject", "")]
        with pytest.raises(SkillRefused):
            publish.run(bench)
        hashes += [bench.digest(proposal) for proposal in bench.proposals]
    assert hashes[0] == hashes[1]


def test_comes_back_from_parking_without_asking_again(publisher: Publisher) -> None:
    asking = publisher()
    asking.answers = [("reject", "")]
    with pytest.raises(SkillRefused):
        publish.run(asking)
    back = publisher()
    back.checkpoint = {"notes": [], "baseCommit": asking.proposals[0]["baseCommit"]}
    back.decision = Decided(asking.digest(asking.proposals[0]))
    done = publish.run(back)
    assert back.proposals == []
    assert done["proposalHash"] == back.decision.proposal_hash


def test_the_base_may_have_moved_while_a_person_thought(publisher: Publisher, tmp_path: Path) -> None:
    asking = publisher()
    asking.answers = [("reject", "")]
    with pytest.raises(SkillRefused):
        publish.run(asking)
    base = asking.proposals[0]["baseCommit"]
    other = ArtifactRepository(asking, tmp_path / "artifacts.git")
    moved = other.commit(
        other.draft(base, {"x": b"y"}, keep=True).tree, base, "x", {**AUTHOR, "date": "2026-01-02T00:00:00Z"}
    )
    git(tmp_path / "artifacts.git", "update-ref", "refs/heads/main", moved)
    back = publisher()
    back.checkpoint = {"notes": [], "baseCommit": base}
    back.decision = Decided(asking.digest(asking.proposals[0]))
    assert publish.run(back)["baseCommit"] == base


def test_doing_it_twice_makes_one_commit(publisher: Publisher) -> None:
    first, second = publish.run(publisher()), publish.run(again := publisher())
    assert first["commit"] == second["commit"]
    assert again.effects[0]["alreadyThere"] is True


def test_somebody_elses_branch_is_left_alone_and_nothing_is_authorized(
    publisher: Publisher, tmp_path: Path
) -> None:
    bench = publisher()
    repository = ArtifactRepository(bench, tmp_path / "artifacts.git")
    repository.ensure()
    head = repository.head()
    git(tmp_path / "artifacts.git", "update-ref", f"refs/heads/factory/assessment-{bench.run_id}", head)
    bench.authorize = lambda *_: pytest.fail("it was authorized")
    with pytest.raises(SkillRefused, match="holds something else"):
        publish.run(bench)


def test_an_approval_that_ran_out_is_asked_for_again(publisher: Publisher) -> None:
    bench = publisher()
    answers = [False, True]
    bench.authorize = lambda *_: answers.pop(0)
    publish.run(bench)
    assert len(bench.proposals) == 2


def test_says_that_there_is_no_artifact_repository(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = publisher()
    monkeypatch.delenv("FACTORY_ARTIFACT_REPOSITORY")
    with pytest.raises(SkillRefused, match="FACTORY_ARTIFACT_REPOSITORY"):
        publish.run(bench)


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=300)
CONTENT = st.one_of(
    TEXT, TEXT.map(lambda text: text + "\n"), TEXT.map(lambda text: text.replace("\n", "\r\n"))
)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ArtifactRepository]:
    folder = tmp_path_factory.mktemp("property")
    bench: Any = Bench(folder / "work", {}, {})
    repository = ArtifactRepository(bench, folder / "artifacts.git")
    repository.ensure()
    return bench, repository


@given(report=CONTENT, data=CONTENT, readme=CONTENT)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_content_the_proposed_diff_is_the_committed_one(
    before: tuple[Any, ArtifactRepository], report: str, data: str, readme: str
) -> None:
    _, repository = before
    files = {"report.md": report.encode(), "report.json": data.encode(), "README.md": readme.encode()}
    base = repository.head()
    proposed = repository.draft(base, files)
    kept = repository.draft(base, files, keep=True)
    commit = repository.commit(kept.tree, base, "m\n", {**AUTHOR, "date": "2026-01-02T03:04:05Z"})
    assert proposed.diff == kept.diff == git(repository.path, "diff", f"{base}..{commit}")
    assert git(repository.path, "show", f"{commit}:report.md") == report.encode()
    assert applied(repository.path, base, proposed.diff, files) == files


def applied(repository: Path, base: str, diff: bytes, files: dict[str, Any]) -> dict[str, bytes]:
    """What anybody gets who applies the approved diff to the base."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "README.md").write_bytes(git(repository, "show", f"{base}:README.md"))
        if diff:
            argv = ["git", "apply", "--whitespace=nowarn", "-"]
            subprocess.run(argv, cwd=folder, input=diff, check=True, capture_output=True)
        return {name: path.read_bytes() if (path := Path(folder) / name).exists() else b"" for name in files}


def test_says_that_nothing_was_done_when_the_tree_is_not_the_approved_one(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = publisher()
    true = ArtifactRepository.draft

    def changed(self: ArtifactRepository, base: str, files: Any, *, keep: bool = False) -> Any:
        return true(
            self, base, {**files, "more": b"x"} if keep and "report.md" in files else files, keep=keep
        )

    monkeypatch.setattr(ArtifactRepository, "draft", changed)
    with pytest.raises(SkillRefused, match="nothing was written"):
        publish.run(bench)
    assert [effect["tookPlace"] for effect in bench.effects] == [False]
