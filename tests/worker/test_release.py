"""What runs is exactly what was published."""

from pathlib import Path

import pytest

from runs.worker.client import WorkerClient
from runs.worker.errors import SkillFailed
from runs.worker.release import ReleaseStore, merkle_root
from runs.worker.wire import AssignedRelease
from tests.worker.surface import Surface

WORK = "from .other import WORD\n\n\ndef run(context):\n    return WORD\n"


@pytest.fixture
def release(surface: Surface) -> AssignedRelease:
    surface.publish({"skills/work.py": WORK, "skills/other.py": "WORD = 'tea'\n"})
    return AssignedRelease("r1", surface.release["hash"], "/factory/releases/r1/manifest")


def test_computes_the_hash_that_the_registry_computed(surface: Surface, release: AssignedRelease) -> None:
    assert merkle_root(surface.release) == release.hash


def test_runs_a_skill_with_its_neighbours(
    client: WorkerClient, release: AssignedRelease, tmp_path: Path
) -> None:
    loaded = ReleaseStore(client, tmp_path).load(release)
    assert loaded.skill("work")(None) == "tea"  # type: ignore[arg-type]


def test_two_releases_run_side_by_side(surface: Surface, client: WorkerClient, tmp_path: Path) -> None:
    store = ReleaseStore(client, tmp_path)
    words = []
    for word in ("tea", "cake"):
        surface.publish({"skills/work.py": WORK, "skills/other.py": f"WORD = {word!r}\n"})
        words.append(
            store.load(AssignedRelease("r1", surface.release["hash"], "/factory/releases/r1/manifest"))
        )
    assert [loaded.skill("work")(None) for loaded in words] == ["tea", "cake"]  # type: ignore[arg-type]


def test_refuses_a_file_that_is_not_the_published_one(
    surface: Surface, client: WorkerClient, release: AssignedRelease, tmp_path: Path
) -> None:
    surface.files = {name: content + b"#" for name, content in surface.files.items()}
    with pytest.raises(SkillFailed, match="published hash"):
        ReleaseStore(client, tmp_path).load(release)


def test_refuses_a_manifest_that_names_another_file(
    surface: Surface, client: WorkerClient, release: AssignedRelease, tmp_path: Path
) -> None:
    surface.release["entries"][0]["sha256"] = "sha256:" + "0" * 64
    with pytest.raises(SkillFailed, match="pinned release"):
        ReleaseStore(client, tmp_path).load(release)


def test_does_not_believe_its_own_cache(
    client: WorkerClient, release: AssignedRelease, tmp_path: Path
) -> None:
    ReleaseStore(client, tmp_path).load(release)
    for cached in tmp_path.iterdir():
        cached.write_bytes(b"raise SystemExit")
    assert ReleaseStore(client, tmp_path).load(release).skill("work")(None) == "tea"  # type: ignore[arg-type]


def test_says_that_there_is_no_such_skill(
    client: WorkerClient, release: AssignedRelease, tmp_path: Path
) -> None:
    with pytest.raises(SkillFailed, match="no skill 'other'"):
        ReleaseStore(client, tmp_path).load(release).skill("other")
