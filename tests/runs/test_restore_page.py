"""Each command of the how-to about backups is run as it is printed."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.db import connections

from tests.databases import PREFIX
from tests.runs.test_restore_drill import program
from tests.support.own_database import leading_to
from tests.support.running import House

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "restore.md"
WHERE, BACK_UP, SET_ASIDE, PROVISION, RECOVER, DROP = range(6)


def commands() -> list[str]:
    """The page's blocks of code, those inside its lists too."""
    found = re.findall(r"(?:^(?: {4}| {7}).*\n)+", PAGE.read_text(), re.M)
    return [textwrap.dedent(block) for block in found]


@pytest.fixture
def bash(own_database: str, tmp_path: Path) -> "Bash":
    return Bash(own_database, tmp_path)


class Bash:
    """A terminal, in which the page's placeholders are what they are here."""

    def __init__(self, database: str, folder: Path) -> None:
        self.database, self.folder = database, folder
        server = urlsplit(os.environ["FACTORY_TEST_ADMIN_URL"])._replace(path="").geturl()
        self.known = {
            "postgresql://postgres:…@db": server,
            "DBNAME=factory": f"DBNAME={database}",
            "/etc/factory": f"{os.environ['FACTORY_HOME']}/secrets",
            ".venv/bin/python manage.py": f"{sys.executable} {ROOT}/manage.py",
        }
        self.environment = os.environ | {
            "PATH": f"{Path(program('pg_dump')).parent}:{os.environ['PATH']}",
            "FACTORY_ROLE_PREFIX": PREFIX,
            "FACTORY_ANCHORS_DIR": str(folder / "anchors"),
            "FACTORY_ANCHOR_KEY_FILE": str(folder / "key.pem"),
        }

    def run(self, *blocks: str) -> "subprocess.CompletedProcess[str]":
        text = "\n".join(("set -euo pipefail", *blocks))
        for printed, here in self.known.items():
            text = text.replace(printed, here)
        connections.close_all()
        return subprocess.run(
            ["bash", "-c", text], cwd=self.folder, env=self.environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip

    @property
    def kept(self) -> bool:
        return (self.folder / "factory.dump").exists()


@pytest.mark.slow
@pytest.mark.requirement("FLR-03")
def test_what_is_printed_backs_up_and_puts_back(bash: Bash, tenant_id: str) -> None:
    house, where = House(tenant_id), commands()[WHERE]
    run_id = house.run("single")
    done = bash.run(where, commands()[BACK_UP])
    assert (done.returncode, bash.kept) == (0, True), done.stderr
    lost = house.run("single")
    done = bash.run(*(commands()[number] for number in (WHERE, SET_ASIDE, PROVISION, RECOVER)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 violations" in done.stdout
    with leading_to(bash.database):
        assert house.state(run_id) == "Accepted"
        with pytest.raises(Exception, match="does not exist"):
            house.state(lost)
    with leading_to(f"{bash.database}_before"):
        assert house.state(lost) == "Accepted"
    done = bash.run(where, commands()[DROP])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("leads_to", ["the administrator's database", "a database without a tenant"])
def test_an_empty_dump_is_no_backup(bash: Bash, leads_to: str) -> None:
    where = commands()[WHERE]
    if leads_to == "the administrator's database":
        where += 'export BACKUP_URL="$FACTORY_ADMIN_DATABASE_URL"\n'
    (bash.folder / "factory.dump").write_text("the backup of yesterday")
    done = bash.run(where, commands()[BACK_UP])
    assert done.returncode == 1
    assert "holds no tenant" in done.stderr
    assert (bash.folder / "factory.dump").read_text() == "the backup of yesterday"


@pytest.mark.parametrize("role", ["DATABASE_URL", "DATABASE_OWNER_URL", "DATABASE_AUDITOR_URL"])
def test_no_role_of_the_product_makes_a_backup(bash: Bash, tenant_id: str, role: str) -> None:
    House(tenant_id).run("single")
    user = urlsplit(os.environ[role]).netloc
    server = (
        urlsplit(os.environ["FACTORY_TEST_ADMIN_URL"])
        ._replace(netloc=user, path=f"/{bash.database}")
        .geturl()
    )
    done = bash.run(commands()[WHERE] + f'export BACKUP_URL="{server}"\n', commands()[BACK_UP])
    assert done.returncode != 0
    assert not bash.kept


def test_every_block_of_the_page_is_run_here() -> None:
    assert len(commands()) == DROP + 1, commands()
    words = ("DBNAME=", "pg_dump", "RENAME", "pg_restore", "recover", "DROP DATABASE")
    assert [word in block for word, block in zip(words, commands(), strict=True)] == [True] * 6
