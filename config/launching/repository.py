"""Git repositories on this machine: the one that we run from, and the one that is to be assessed."""

import subprocess
from pathlib import Path

from config.launching.options import LaunchOptions
from factory.embedded.system import EmbeddedError


def chosen(options: LaunchOptions) -> tuple[str, str]:
    """Return what a run is given, and how the terminal calls it. Raises EmbeddedError with a way out."""
    named = options.repository or str(options.root)
    if "://" in named:
        return named, f"{named} at {options.revision or 'HEAD'}"
    folder = Path(named).expanduser().resolve()
    if not folder.is_dir():
        raise EmbeddedError(f"There is no folder {folder}. REPO= takes a folder or an https:// address.")
    wanted = options.revision or "HEAD"
    try:
        git(folder, "rev-parse", "--git-dir")
    except EmbeddedError as error:
        raise EmbeddedError(f"{folder} is no Git repository. REPO= names one.") from error
    try:
        commit = git(folder, "rev-parse", "--verify", "--end-of-options", f"{wanted}^{{commit}}").strip()
    except EmbeddedError as error:
        raise EmbeddedError(f"{folder} has no revision {wanted}. REVISION= names another.") from error
    label = "this repository" if folder == options.root else str(folder)
    return str(folder), f"{label} at {commit[:12]}"


def current_commit(root: Path) -> str:
    try:
        return git(root, "rev-parse", "--verify", "HEAD^{commit}").strip()
    except EmbeddedError as error:
        raise EmbeddedError(
            f"{root} has no Git commit, and a release is published from one. Get the product with "
            f"`git clone`, or make a commit here. ({error})"
        ) from error


def git(root: Path, *arguments: str) -> str:
    """Run git in `root`, also when somebody else owns the folder: it is the one that was named to us."""
    done = subprocess.run(
        ["git", "-c", f"safe.directory={root}", "-C", str(root), *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise EmbeddedError((done.stderr.strip() or "git failed").splitlines()[-1])
    return done.stdout
