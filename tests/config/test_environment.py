"""Settings refuse to start on what nobody meant, in a sentence that names the variable."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from config import environment, security, servers

ROOT = Path(__file__).resolve().parents[2]
APPS = ("approvals", "config", "factory", "notifications", "projects", "registry", "runs", "usage")


def started_with(**variables: str) -> str:
    """What `manage.py check` says on its way out."""
    done = subprocess.run(
        [sys.executable, "manage.py", "check"], cwd=ROOT, env=os.environ | variables,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    return done.stderr.strip()


@pytest.mark.requirement("CFG-07")
def test_a_value_out_of_bounds_stops_the_process_with_one_sentence() -> None:
    said = started_with(FACTORY_LEASES_DURATION_SECONDS="0")
    assert said == (
        "FACTORY_LEASES_DURATION_SECONDS must be a whole number from 1 to 3600. Correct it or unset it."
    )


def test_a_misspelt_variable_stops_the_process_and_names_the_right_one() -> None:
    said = started_with(FACTORY_LEASE_DURATION_SECONDS="60")
    assert said == (
        "FACTORY_LEASE_DURATION_SECONDS is not a setting of this product. "
        "Did you mean FACTORY_LEASES_DURATION_SECONDS?"
    )


def service_links(service: str, *ports: tuple[str, int]) -> dict[str, str]:
    """The variables that Kubernetes sets for a service in every pod of its namespace."""
    name, (_, first) = service.upper().replace("-", "_"), ports[0]
    made = {
        f"{name}_SERVICE_HOST": "10.96.0.7",
        f"{name}_SERVICE_PORT": str(first),
        f"{name}_PORT": f"tcp://10.96.0.7:{first}",
    }
    for label, port in ports:
        own = f"{name}_PORT_{port}_TCP"
        made |= {
            f"{name}_SERVICE_PORT_{label.upper().replace('-', '_')}": str(port),
            own: f"tcp://10.96.0.7:{port}",
            f"{own}_PROTO": "tcp",
            f"{own}_PORT": str(port),
            f"{own}_ADDR": "10.96.0.7",
        }
    return made


def docker_link(alias: str, port: int) -> dict[str, str]:
    """The variables that Docker sets for a linked container, those of its image among them."""
    name = alias.upper().replace("-", "_")
    own = f"{name}_PORT_{port}_TCP"
    return {
        f"{name}_NAME": f"/client/{alias}",
        f"{name}_PORT": f"tcp://172.17.0.5:{port}",
        own: f"tcp://172.17.0.5:{port}",
        f"{own}_PROTO": "tcp",
        f"{own}_PORT": str(port),
        f"{own}_ADDR": "172.17.0.5",
        f"{name}_ENV_PATH": "/usr/bin:/bin",
        f"{name}_ENV_GREETING": "two\nlines",
    }


LINKS = {
    "web": service_links("factory-web", ("http", 8000)),
    "stream": service_links("factory-stream", ("workers", 7402), ("more-of-it", 7403)),
    "the product": service_links("factory", ("http", 80)),
    "named like a setting": service_links("factory-metrics", ("http", 9464)),
    "named like another": service_links("factory-email", ("smtp", 587)),
    "named like a third": docker_link("factory-embedded-issuer", 80),
    "docker": docker_link("factory-web", 8000),
    "over IPv6": {
        name: value.replace("tcp://10.96.0.7", "tcp://[fd00::7]").replace("10.96.0.7", "fd00::7")
        for name, value in service_links("factory-web", ("http", 8000)).items()
    },
}


@pytest.mark.parametrize("links", LINKS.values(), ids=LINKS.keys())
def test_what_the_platform_sets_for_a_service_is_neither_a_setting_nor_a_misspelt_one(
    monkeypatch: pytest.MonkeyPatch, links: dict[str, str]
) -> None:
    for name, value in links.items():
        monkeypatch.setenv(name, value)
    environment.refuse_unknown()
    assert environment.integer("FACTORY_METRICS_PORT", 0, least=0, most=65535) == 0
    assert environment.integer("FACTORY_EMAIL_PORT", 587, least=1, most=65535) == 587
    assert environment.text("FACTORY_EMBEDDED_ISSUER_NAME", "urn:x") == "urn:x"
    monkeypatch.setenv("FACTORY_LEASE_DURATION_SECONDS", "60")
    with pytest.raises(ImproperlyConfigured, match="Did you mean FACTORY_LEASES_DURATION_SECONDS"):
        environment.refuse_unknown()


def test_a_process_starts_beside_services_of_its_own_names() -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "check"], cwd=ROOT, capture_output=True, text=True, check=False,
        env=os.environ | LINKS["web"] | LINKS["named like a setting"],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_setting_beside_a_service_of_its_name_is_still_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in LINKS["named like a setting"].items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("FACTORY_METRICS_PORT", "9464")
    assert environment.integer("FACTORY_METRICS_PORT", 0, least=0, most=65535) == 9464


@pytest.mark.parametrize(
    "variables",
    [
        {"FACTORY_WEB_SERVICE_HOST": "10.96.0.7"},
        {"FACTORY_WEB_PORT": "tcp://10.96.0.7:8000"},
        LINKS["web"] | {"FACTORY_WEB_PORT": "8000"},
        LINKS["web"] | {"FACTORY_WEB_SERVICE_TIMEOUT": "8"},
        LINKS["docker"] | {"FACTORY_WEB_NAME": "mine"},
    ],
)
def test_what_only_looks_like_a_name_of_the_platform_is_refused(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match="is not a setting of this product"):
        environment.refuse_unknown()


@pytest.mark.requirement("CFG-07")
def test_every_variable_that_anything_reads_by_itself_is_known() -> None:
    """A command that needs a variable which settings refuse could never be run."""
    reads = re.compile(r"""environ(?:\.get\(|\.pop\(|\[)\s*["'](FACTORY_[A-Z_]+)""")
    sources = [path for app in APPS for path in (ROOT / app).rglob("*.py")]
    found = {name for path in sources for name in reads.findall(path.read_text())}
    assert "FACTORY_ADMIN_DATABASE_URL" in found
    assert {name for name in found if not environment._is_known(name)} == set()


@pytest.mark.parametrize("value", ["text", "", "1.5", "-1"])
def test_refuses_what_is_no_number_within_bounds(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("FACTORY_SOMETHING", value)
    with pytest.raises(ImproperlyConfigured, match="FACTORY_SOMETHING must be a whole number from 1 to 9"):
        environment.integer("FACTORY_SOMETHING", 5, least=1, most=9)


@pytest.mark.parametrize("line", ["daily", "61 2 * * *", "1 2 * *", "1 2 * * * *"])
def test_refuses_what_is_no_cron_line(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.setenv("FACTORY_SOMETHING", line)
    with pytest.raises(ImproperlyConfigured, match="FACTORY_SOMETHING must be a cron line such as 1 2"):
        environment.cron("FACTORY_SOMETHING", "1 2 * * *")


def test_verifying_anchoring_and_purging_are_on_the_schedule() -> None:
    from config.celery import app

    for task in ("factory.verify", "factory.anchor", "factory.purge"):
        assert app.conf.beat_schedule[task]["task"] == task
        assert app.tasks[task].acks_late is False


def test_a_refusal_does_not_repeat_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FACTORY_SOMETHING", "hunter2")
    with pytest.raises(ImproperlyConfigured) as raised:
        environment.flag("FACTORY_SOMETHING", False)
    assert "hunter2" not in str(raised.value)


@pytest.mark.requirement("CFG-01", "CFG-02", "CFG-03", "CFG-04", "CFG-05")
def test_defaults_are_those_of_the_reference() -> None:
    assert (
        settings.FACTORY_LEASES_DURATION_SECONDS,
        settings.FACTORY_LEASES_RENEWAL_GRACE_SECONDS,
        settings.FACTORY_RETRIES_DEFAULT_MAX_ATTEMPTS,
        settings.FACTORY_APPROVALS_DEFAULT_EXPIRY_HOURS,
        settings.FACTORY_JOURNAL_RETENTION_DAYS,
    ) == (120, 30, 3, 72, 365)


def test_a_process_that_serves_needs_its_servers_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("DATABASE_URL", "REDIS_URL"):
        monkeypatch.delenv(name)
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL and REDIS_URL must be set for a web"):
        servers.urls(tmp_path, "web")
    assert "make-up" in servers.urls(tmp_path, "command")["DATABASE_URL"]


def test_other_databases_are_refused() -> None:
    urls = dict.fromkeys(servers.DATABASE_VARIABLES.values(), "mysql://x/y")
    with pytest.raises(ImproperlyConfigured, match="must be a postgresql:// URL"):
        servers.databases(urls, process="web", threads=8)


def test_the_web_has_a_connection_for_each_thread_and_never_waits_long() -> None:
    urls = dict.fromkeys(servers.DATABASE_VARIABLES.values(), "postgresql://x/y")
    made = servers.databases(urls, process="web", threads=8)["default"]
    assert made["OPTIONS"]["pool"] == {"min_size": 8, "max_size": 8, "timeout": 3}
    assert "options" not in made["OPTIONS"]


def test_jobs_may_take_longer_than_requests() -> None:
    urls = dict.fromkeys(servers.DATABASE_VARIABLES.values(), "postgresql://x/y")
    made = servers.databases(urls, process="job", threads=8)["default"]
    assert made["OPTIONS"]["options"] == "-c statement_timeout=30s"


def test_without_tls_only_this_machine_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FACTORY_PUBLIC_URL", "http://factory.example.org")
    with pytest.raises(ImproperlyConfigured, match="must be https"):
        security.browser_settings()


def test_with_tls_cookies_and_transport_are_strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FACTORY_PUBLIC_URL", "https://factory.example.org/")
    made = security.browser_settings()
    strict = ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_SSL_REDIRECT")
    assert all(made[name] is True for name in strict)
    assert made["SECURE_HSTS_SECONDS"] > 0
    assert made["ALLOWED_HOSTS"] == ["factory.example.org"]


def test_a_short_key_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SECRET_KEY", "short")
    with pytest.raises(ImproperlyConfigured, match="at least 32"):
        security.secret_key(tmp_path)
    monkeypatch.delenv("SECRET_KEY")
    assert security.secret_key(tmp_path) == security.secret_key(tmp_path)


def test_a_folder_for_metrics_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "as it was")
    (tmp_path / "file").write_text("")
    with pytest.raises(ImproperlyConfigured, match="FACTORY_METRICS_DIR"):
        environment.metrics_shared_in(str(tmp_path / "file" / "below"))
    environment.metrics_shared_in(str(tmp_path / "made"))
    assert (os.environ["PROMETHEUS_MULTIPROC_DIR"], (tmp_path / "made").is_dir()) == (
        str(tmp_path / "made"),
        True,
    )
