"""The command line says what is wrong in a sentence, and never with a stack trace."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("command", [["verify"], ["migrate"], ["reconcile"], ["onboard", "--help"]])
def test_says_that_the_database_is_away(tmp_path: Path, command: list[str]) -> None:
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("DATABASE_", "REDIS_", "PYTEST_"))
    }
    told = subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=ROOT,
        env=environment
        | {
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "FACTORY_HOME": str(tmp_path),
            "SECRET_KEY": "x" * 40,
            "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
            "DATABASE_OWNER_URL": "postgresql://nobody@127.0.0.1:1/nothing",
            "DATABASE_AUDITOR_URL": "postgresql://nobody@127.0.0.1:1/nothing",
            "REDIS_URL": "redis://127.0.0.1:1/0",
        },
        capture_output=True,
        text=True,
        timeout=120,  # for a machine with much else to do
        check=False,
    )
    assert "Traceback" not in told.stderr, told.stderr[-2000:]
    if "--help" in command:
        assert told.returncode == 0
    else:
        assert told.returncode == 1
        assert "The database cannot be reached" in told.stderr
