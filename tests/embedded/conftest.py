"""A folder for servers of its own, and nothing of it left afterwards."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from factory.embedded import postgres, valkey

FAST = {"fsync": "off"}


def folder_for_servers() -> Iterator[Path]:
    """pytest's own folders are closed to other users, and as root the database runs as one."""
    folder = Path(tempfile.mkdtemp(prefix="factory-test-"))
    folder.chmod(0o755)
    yield folder
    valkey.stop(folder)
    postgres.stop(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def home() -> Iterator[Path]:
    yield from folder_for_servers()
