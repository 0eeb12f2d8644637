"""Builds the sample repository: the same commits, with the same ids, on every machine."""

import json
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Put together here, so that the plain files hold nothing that looks like a credential.
PLANTED = {"@@AWS_ACCESS_KEY@@": "AKIA" + "Q3EGT7WZ" + "N5YD2MXK"}


def build(target: Path) -> str:
    """Make a repository at `target`; answers its last commit.

    Each commit of history.json writes the named files of sample/: the first n lines, or all for 0.
    """
    target.mkdir(parents=True)
    _git(target, "init", "--quiet", "--initial-branch=main", "--template=", ".")
    for commit in json.loads((HERE / "history.json").read_text()):
        for name, lines in commit["files"].items():
            _write(target / name, HERE / "sample" / name, lines)
        _git(target, "add", "--all", "--force")
        who = {"NAME": commit["author"], "EMAIL": commit["email"], "DATE": commit["at"]}
        extra = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
        _git(target, "commit", "--quiet", "--no-verify", "-m", commit["message"], **extra)
    return _git(target, "rev-parse", "HEAD").strip()


def _write(target: Path, source: Path, lines: int) -> None:
    text = source.read_text()
    for mark, value in PLANTED.items():
        text = text.replace(mark, value)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(text.splitlines(keepends=True)[: lines or None]))


def _git(target: Path, *arguments: str, **extra: str) -> str:
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(target),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **extra,
    }
    argv = ["git", "-c", "core.autocrlf=false", "-c", "core.fileMode=false", *arguments]
    done = subprocess.run(argv, cwd=target, env=environment, check=True, capture_output=True, text=True)
    return done.stdout
