"""Git is told exactly one commit, and nothing in a repository or an address can make it do more."""

import socket
import threading
import zipfile

import pytest

from factory.kernel.egress import is_public
from registry.errors import FetchFailed, ManifestRefused, SourceRefused
from registry.source import git as fetching
from registry.source.git import SourceLimits, fetched
from registry.source.locations import (
    Source,
    check_commit,
    check_manifest_path,
    check_repository,
    vetted_address,
)
from tests.registry.support import Repository, git


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "work")


@pytest.fixture
def canary(tmp_path):
    """A file that appears if anything that a repository or an address names was executed."""
    return tmp_path / "canary"


def source(repository):
    return check_repository(repository.url, [str(repository.folder.parent)])


@pytest.mark.parametrize(
    "address",
    [
        "",
        "-upload-pack=touch canary",
        "--upload-pack=touch canary",
        "ext::sh -c touch% canary",
        "ext::https://example.com/x",
        "fd::3",
        "http://example.com/x.git",
        "git://example.com/x.git",
        "ssh://example.com/x.git",
        "git@example.com:x.git",
        "example.com:x.git",
        "HTTPS:/example.com",
        "https://user@example.com/x.git",
        "https://user:secret@example.com/x.git",
        "https://example.com\\@evil.test/x",
        "https://127.0.0.1/x",
        "https://0177.1/x",
        "https://2130706433/x",
        "https://0x7f000001/x",
        "https://[::1]/x",
        "https://[::ffff:169.254.169.254]/x",
        "https://localhost/x",
        "https://metadata/x",
        "https://example.com",
        "https://example.com/x?y",
        "https://example.com/x#y",
        "https://example.com:99999/x",
        "https://exämple.com/x",
        "https://example.com/x y",
        "https://example.com/\nx",
        "https://example.com/x\0",
        "https://-example.com/x",
        "file:///etc",
        "/etc/passwd",
        "file://host/srv/x",
        "../x",
        "x" * 600,
    ],
)
def test_refuses_an_address(address, tmp_path):
    with pytest.raises(SourceRefused):
        check_repository(address, [str(tmp_path)])


def test_local_repositories_need_a_root_that_the_operator_named(repository, tmp_path):
    with pytest.raises(SourceRefused, match="FACTORY_GIT_LOCAL_ROOTS"):
        check_repository(repository.url, [])
    with pytest.raises(SourceRefused):
        check_repository(f"{repository.url}/../../outside", [repository.url])
    (tmp_path / "link").symlink_to("/etc")
    with pytest.raises(SourceRefused):
        check_repository(str(tmp_path / "link"), [str(tmp_path)])
    assert check_repository(f"file://{repository.url}", [str(tmp_path)]).url == repository.url


@pytest.mark.parametrize(
    "commit", ["", "main", "HEAD", "-" * 40, "a" * 39, "A" * 40, "a" * 41, "refs/heads/main", "a" * 40 + "\n"]
)
def test_refuses_what_is_no_full_commit_id(commit):
    with pytest.raises(SourceRefused):
        check_commit(commit)


@pytest.mark.parametrize(
    "path", ["../factory.yaml", "/factory.yaml", "-x", "a/../b", "", "a\\b", "a\nb", "x" * 300]
)
def test_refuses_a_manifest_path(path):
    with pytest.raises(SourceRefused):
        check_manifest_path(path)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.0.0.192",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2001:0:4136:e378::1",
        "fd00:ec2::254",
        "nonsense",
    ],
)
def test_an_address_inside_is_not_public(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "140.82.121.4", "2606:4700:4700::1111"])
def test_an_address_outside_is_public(address):
    assert is_public(address)


def test_refuses_a_name_of_which_one_address_leads_inside(monkeypatch):
    answers = [(2, 1, 6, "", ("140.82.121.4", 443)), (2, 1, 6, "", ("169.254.169.254", 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers)
    with pytest.raises(SourceRefused):
        vetted_address(Source("https://example.com:443/x", "https", "example.com", 443))


def test_the_fetch_connects_to_the_address_that_was_vetted(monkeypatch):
    """The name leads outside when it is vetted; the connection goes nowhere else, whatever it says later."""
    reached = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def wait():
            server.settimeout(10)
            try:
                server.accept()[0].close()
                reached.set()
            except OSError:
                return

        waiting = threading.Thread(target=wait)
        waiting.start()
        monkeypatch.setattr(fetching, "vetted_address", lambda _: "127.0.0.1")
        with (
            pytest.raises(FetchFailed),
            fetched(Source(f"https://nowhere.invalid:{port}/x", "https", "nowhere.invalid", port), "a" * 40),
        ):
            pass
        waiting.join()
    assert reached.is_set()


def test_reads_the_files_of_exactly_that_commit(repository):
    first = repository.commit()
    repository.write("agents/analyst.md", "Changed.\n")
    git(repository.folder, "commit", "-qam", "later")
    with fetched(source(repository), first) as commit:
        assert commit.read(["agents/analyst.md"]) == {"agents/analyst.md": b"Look closely.\n"}


def test_reads_a_commit_that_no_branch_names(repository):
    commit = repository.commit()
    repository.commit(files={"skills/look.py": "x = 1\n"})
    git(repository.folder, "reset", "-q", "--hard", commit)
    with fetched(source(repository), commit) as found:
        assert b"def run" in found.read(["skills/look.py"])["skills/look.py"]


def test_a_commit_that_is_not_there_may_come_later(repository):
    repository.commit()
    with pytest.raises(FetchFailed), fetched(source(repository), "a" * 40):
        pass


def test_a_tree_is_no_commit(repository):
    repository.commit()
    tree = git(repository.folder, "rev-parse", "HEAD^{tree}")
    with pytest.raises(FetchFailed), fetched(source(repository), tree):
        pass


def test_nothing_of_the_repository_is_executed(repository, canary):
    """Hooks, filters, attributes, submodules, a pack hook, an alternate upload program: none of them runs."""
    touch = f"touch {canary}"
    repository.write(".gitattributes", "* filter=evil diff=evil merge=evil\n")
    inner = Repository(repository.folder.parent / "inner")
    inner.commit()
    git(repository.folder, "-c", "protocol.file.allow=always", "submodule", "add", "-q", inner.url, "module")
    commit = repository.commit()
    for hook in ("post-checkout", "post-merge", "pre-receive", "reference-transaction", "post-index-change"):
        target = repository.folder / ".git" / "hooks" / hook
        target.parent.mkdir(exist_ok=True)
        target.write_text(f"#!/bin/sh\n{touch}\n")
        target.chmod(0o755)
    for name in ("filter.evil.smudge", "filter.evil.clean", "core.fsmonitor", "uploadpack.packObjectsHook"):
        git(repository.folder, "config", name, touch)
    git(repository.folder, "config", "core.sshCommand", touch)
    git(repository.folder, "config", "alias.upload-pack", f"!{touch}")
    with fetched(source(repository), commit) as found:
        found.read(["factory.yaml", "agents/analyst.md"])
        assert not list(found.folder.rglob("analyst.md"))
        with pytest.raises(ManifestRefused):
            found.read(["module"])
        with pytest.raises(ManifestRefused):
            found.read(["module/factory.yaml"])
    assert not canary.exists()


def test_the_callers_git_settings_do_not_count(repository, canary, monkeypatch, tmp_path):
    config = tmp_path / "evil.config"
    config.write_text(
        f'[uploadpack]\n\tpackObjectsHook = "touch {canary}; "\n[core]\n\tpager = "touch {canary}"\n'
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_SSH_COMMAND", f"touch {canary}")
    monkeypatch.setenv("GIT_TEMPLATE_DIR", "/nowhere")
    commit = repository.commit()
    with fetched(source(repository), commit) as found:
        found.read(["factory.yaml"])
    assert not canary.exists()


def test_refuses_a_symbolic_link(repository):
    repository.write("real.md", "x")
    (repository.folder / "link.md").symlink_to("/etc/passwd")
    (repository.folder / "up").symlink_to("..")
    commit = repository.commit()
    with fetched(source(repository), commit) as found:
        for path in ("link.md", "up", "up/real.md"):
            with pytest.raises(ManifestRefused):
                found.read([path])


def test_refuses_what_is_too_large_or_too_many(repository):
    repository.write("large.bin", "x" * 2000)
    commit = repository.commit()
    with (
        fetched(source(repository), commit, SourceLimits(file_bytes=1000)) as found,
        pytest.raises(ManifestRefused),
    ):
        found.read(["large.bin"])
    with (
        fetched(source(repository), commit, SourceLimits(total_bytes=1000)) as found,
        pytest.raises(ManifestRefused),
    ):
        found.read(["large.bin"])
    with fetched(source(repository), commit, SourceLimits(files=1)) as found, pytest.raises(ManifestRefused):
        found.read(["factory.yaml", "large.bin"])


def test_a_pack_beyond_the_limit_is_given_up(repository):
    import random

    repository.write("noise.bin", random.Random(1).randbytes(400_000).hex())
    commit = repository.commit()
    with pytest.raises(FetchFailed), fetched(source(repository), commit, SourceLimits(pack_bytes=100_000)):
        pass


def test_a_pathspec_is_a_name_and_no_pattern(repository):
    commit = repository.commit()
    with fetched(source(repository), commit) as found:
        for path in ("*", ":(glob)**", ":/", "agents", "agents/*"):
            with pytest.raises(ManifestRefused):
                found.read([path])


def test_nothing_is_left_on_the_disk(repository):
    commit = repository.commit()
    with fetched(source(repository), commit) as found:
        folder = found.folder
        assert folder.exists()
    assert not folder.exists()


def test_a_repository_that_is_none_is_refused(tmp_path):
    archive = tmp_path / "x.zip"
    with zipfile.ZipFile(archive, "w") as written:
        written.writestr("../evil", "x")
    with pytest.raises(FetchFailed), fetched(check_repository(str(archive), [str(tmp_path)]), "a" * 40):
        pass
