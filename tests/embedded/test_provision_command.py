"""`manage.py provision`: roles and database on a server of one's own."""

import os
from io import StringIO
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from django.core.management import CommandError, call_command

from factory.embedded.provision import connect


def test_prints_the_urls_that_work_and_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    admin, name = os.environ["FACTORY_TEST_ADMIN_URL"], f"factory_test_p_{uuid4().hex[:8]}"
    secrets = Path(os.environ["FACTORY_HOME"]) / "secrets"
    monkeypatch.setenv("FACTORY_ADMIN_DATABASE_URL", admin)
    out = StringIO()
    try:
        call_command("provision", "--database", name, "--secrets", str(secrets), stdout=out)
        urls = dict(line.split("=", 1) for line in out.getvalue().splitlines())
        assert list(urls) == [
            "DATABASE_URL",
            "DATABASE_OWNER_URL",
            "DATABASE_AUDITOR_URL",
            "DATABASE_RETENTION_URL",
        ]
        users = set()
        for url in urls.values():
            with psycopg.connect(url) as connection:
                users.add(connection.execute("SELECT current_user, current_database()").fetchone())
        assert len(users) == 4
        assert {database for _, database in users} == {name}
    finally:
        with connect(admin) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def test_says_where_the_administrators_url_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FACTORY_ADMIN_DATABASE_URL", raising=False)
    with pytest.raises(CommandError, match="FACTORY_ADMIN_DATABASE_URL"):
        call_command("provision")
