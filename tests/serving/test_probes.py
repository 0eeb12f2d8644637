"""Probes and scrapes are answered by address, and say what is away: in settings of production."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from factory.embedded.system import free_port
from tests.support.web import serving

PRODUCTION = {
    "FACTORY_PUBLIC_URL": "https://factory.example.org",
    "FACTORY_TLS_ENDS_BEFORE": "true",
    "FACTORY_TRUST_PROXY": "true",
    "DEBUG": "false",
}
PATHS = ("/healthz", "/readyz", "/metrics")
HOSTS = (
    "10.1.2.3",
    "10.1.2.3:8000",
    "[fd00::7]:8000",
    "factory-web.default.svc",
    "evil.example",
    "bad host",
    "",
)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("probes") / "said"


@pytest.fixture(scope="module")
def base(said: Path) -> Iterator[str]:
    with said.open("wb") as out, serving("web", said=out, **PRODUCTION) as url:
        yield url


@pytest.mark.parametrize("host", HOSTS)
def test_probes_and_scrapes_are_answered_whatever_the_host(base: str, host: str) -> None:
    for path in PATHS:
        answer = httpx.get(f"{base}{path}", headers={"Host": host}, timeout=30)
        assert answer.status_code == 200, (path, answer.text)
        assert not host or host not in answer.text + str(answer.headers)


def test_a_wrong_host_elsewhere_is_400_and_one_line_without_a_traceback(base: str, said: Path) -> None:
    before = len(said.read_text())
    for path in ("/factory/runs", "/admin/login/", "/.well-known/jwks.json"):
        assert httpx.get(f"{base}{path}", headers={"Host": "wrong.example"}).status_code == 400
    lines = [json.loads(line) for line in said.read_text()[before:].splitlines()]
    told = [line for line in lines if line["event"] != "request"]
    assert [(line["event"], line["host"], line["level"]) for line in told] == [
        ("host_refused", "wrong.example", "warning")
    ] * 3
    assert "Traceback" not in said.read_text()


def test_the_right_host_is_served(base: str) -> None:
    headers = {"Host": "factory.example.org", "X-Forwarded-Proto": "https"}
    assert httpx.get(f"{base}/admin/login/", headers=headers).status_code == 200
    assert httpx.get(f"{base}/factory/runs", headers=headers).status_code == 401


@pytest.mark.parametrize("kind", ["web", "stream"])
def test_without_the_broker_a_process_is_ready_and_says_that_it_is_away(kind: str) -> None:
    with serving(kind, REDIS_URL=f"redis://127.0.0.1:{free_port()}/0") as base:
        answer = httpx.get(f"{base}/readyz", timeout=30)
        assert answer.status_code == 200, answer.text
        told = answer.json()
        assert (told["status"], told["checks"]["broker"]) == ("ready", "unreachable")
        assert "No run stops" in told["notes"]["broker"]
        assert {state for name, state in told["checks"].items() if name != "broker"} == {"ok"}


@pytest.mark.requirement("OBS-06")
@pytest.mark.parametrize("kind", ["web", "stream"])
def test_without_the_database_a_process_lives_is_not_ready_and_is_measured(kind: str) -> None:
    nowhere = f"postgresql://factory_app:x@127.0.0.1:{free_port()}/factory"
    with serving(kind, DATABASE_URL=nowhere) as base:
        assert httpx.get(f"{base}/healthz", timeout=30).status_code == 200
        unready = httpx.get(f"{base}/readyz", timeout=60)
        assert (unready.status_code, unready.headers["Retry-After"]) == (503, "2")
        assert unready.json()["checks"]["database"] == "unreachable"
        assert "127.0.0.1" not in unready.text
        measured = httpx.get(f"{base}/metrics", timeout=60)
        assert measured.status_code == 200
        assert "connectsoft_factory_leases_expired" in measured.text
        assert "connectsoft_factory_runs_active{" not in measured.text
