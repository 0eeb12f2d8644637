"""Alive, ready, measured, and described."""

import json

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command

from factory.api import system
from factory.api.problems import catalogue
from factory.identity.issuer import jwks
from factory.kernel.permissions import SCOPES
from tests.support.client import Client
from tests.support.world import world


@pytest.fixture
def browser() -> Client:
    return Client(raise_request_exception=False)


def test_is_alive_without_anything_else(browser):
    assert browser.get("/healthz").json() == {"status": "ok"}


def test_is_ready_with_database_migrations_and_broker(browser):
    response = browser.get("/readyz")
    assert (response.status_code, response.json()["checks"]) == (
        200,
        {"database": "ok", "migrations": "ok", "schema": "ok", "broker": "ok"},
    )


def test_says_that_no_mail_is_sent_and_is_ready_all_the_same(browser, settings):
    settings.FACTORY_EMAIL_ON = False
    silent = browser.get("/readyz")
    assert (silent.status_code, "names no mail server" in silent.json()["notes"]["email"]) == (200, True)
    assert "notifications.W001" in [one.id for one in run_checks(include_deployment_checks=True)]
    settings.FACTORY_EMAIL_ON = True
    assert browser.get("/readyz").json()["notes"] == {}
    assert "notifications.W001" not in [one.id for one in run_checks(include_deployment_checks=True)]


def test_says_what_it_lacks(browser, monkeypatch):
    def away() -> str:
        raise OSError("no route to 10.0.0.7")

    monkeypatch.setitem(system.CHECKS, "migrations", away)
    response = browser.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["migrations"] == "unreachable"
    assert b"10.0.0.7" not in response.content


def test_is_ready_without_what_stops_no_run(browser, monkeypatch, settings):
    def away() -> str:
        raise OSError("no route to 10.0.0.7")

    settings.FACTORY_EMAIL_ON = True
    monkeypatch.setitem(system.CHECKS, "broker", away)
    response = browser.get("/readyz")
    assert (response.status_code, response.json()["checks"]["broker"]) == (200, "unreachable")
    assert response.json()["notes"] == {"broker": system.NO_BROKER}


def test_shows_its_public_keys_and_no_private_one(browser):
    keys = browser.get("/.well-known/jwks.json").json()
    assert keys == jwks()
    assert set(keys["keys"][0]) == {"kty", "crv", "x", "use", "alg", "kid"}


def test_measures_in_openmetrics(browser):
    from factory.kernel.telemetry import meters

    meters.run_accepted("t", "p", "repository-assessment")
    response = browser.get("/metrics")
    assert response["Content-Type"].startswith("application/openmetrics-text")
    assert response.content.endswith(b"# EOF\n")


def test_explains_every_problem(browser):
    assert {"not-found", "insufficient-scope", "idempotency-conflict", "invalid-token"} <= set(catalogue())
    for slug, (status, title, meaning) in catalogue().items():
        page = browser.get(f"/factory/problems/{slug}")
        assert page.status_code == 200
        assert title
        assert meaning, slug
        assert 400 <= status < 600
    assert browser.get("/factory/problems/no-such-thing").status_code == 404


def test_describes_itself_in_openapi(browser):
    schema = browser.get("/factory/schema").json()
    assert schema["openapi"].startswith("3.1")
    assert schema["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    for path, methods in schema["paths"].items():
        assert path.startswith("/factory/")
        for operation in methods.values():
            assert operation["responses"]["401"] == {"$ref": "#/components/responses/Problem"}
    assert browser.get("/factory/docs").status_code == 200


def test_an_operator_can_have_a_token(capsys, tenant_id):
    from factory.identity.tokens import verifier

    home = world(tenant_id)
    subject = home.requester.actor.subject
    options = [
        "--subject",
        subject,
        "--tenant",
        tenant_id,
        "--project",
        "main",
        "--scope",
        "runs.read",
        "--roles",
        "Observer",
        "--ttl",
        "60",
    ]
    call_command("issue_token", *options)
    token = verifier().verify(capsys.readouterr().out.strip())
    assert (token.subject, token.tenant_id, token.roles) == (subject, tenant_id, frozenset({"Observer"}))
    assert token.project_id == home.project
    call_command("issue_token", "--subject", subject, "--tenant", tenant_id)
    whole = verifier().verify(capsys.readouterr().out.strip())
    assert whole.scopes == SCOPES - {"factory.worker"}
    call_command("issue_token", "--subject", "w", "--worker-pool", f"pool-{tenant_id}")
    told = capsys.readouterr()
    assert verifier().verify(told.out.strip()).pool == f"pool-{tenant_id}"
    assert f"There is no pool pool-{tenant_id} yet" in told.err
    for wrong in (
        ["--tenant", tenant_id, "--scope", "nothing"],
        [],
        ["--worker-pool", "p", "--tenant", tenant_id],
        ["--tenant", tenant_id, "--project", "elsewhere"],
        ["--tenant", f"{tenant_id}-x"],
    ):
        with pytest.raises(CommandError, match=r"scope|tenant|no member|member of nothing"):
            call_command("issue_token", "--subject", subject, *wrong)


def test_the_schema_is_json_that_anybody_can_read(browser):
    assert json.loads(browser.get("/factory/schema").content)["info"]["title"] == "Factory Control Plane"
