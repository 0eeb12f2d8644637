"""Credentials that are refused at once, although their signatures are good."""

import pytest
from django.core.management import call_command
from django.urls import reverse

from factory.identity.principals import admit
from factory.identity.tokens import TokenRefused, verifier
from factory.kernel.errors import InsufficientRole, InvalidInput, NotFound
from factory.kernel.models import RevokedToken
from factory.kernel.tenancy import reading
from projects.commands import revoke_credential, revoke_service_account, revoke_token
from projects.errors import RoleOutOfReach
from projects.models import ServiceAccount
from runs.commands import revoke_worker, serve_tenant
from runs.errors import PoolShared
from runs.models import Worker
from runs.reconcilers import LeaseExpiryReconciler
from tests.console.test_pages import signed_in
from tests.support.api import Api, token_of, worker_token
from tests.support.evidence import audits, journal, violations
from tests.support.running import House
from tests.support.world import second_world

pytestmark = pytest.mark.slow

RUNS = "/factory/runs"


def status(token: str) -> int:
    return int(Api(token).get(RUNS).status_code)


@pytest.fixture
def house(tenant_id: str) -> House:
    return House(tenant_id)


def test_one_token_or_all_of_a_subject_and_nobody_elses(house: House) -> None:
    w = house.world
    first, second, other = token_of(w.operator), token_of(w.operator), token_of(w.reviewer)
    jti = verifier().verify(first).jti
    revoke_token(w.workspace_admin, jti=jti, reason="lost")
    revoke_token(w.workspace_admin, jti=jti, reason="again")
    assert (status(first), status(second), status(other)) == (401, 200, 200)
    assert RevokedToken.objects.get(scope=house.tenant, jti=jti).reason == "lost"
    everything = {"subject": w.operator.actor.subject, "reason": "a laptop was lost"}
    with pytest.raises(RoleOutOfReach):
        revoke_credential(w.workspace_admin, **everything)
    answer = Api.as_(w.workspace_admin).post("/factory/revocations", everything)
    assert (answer.status_code, status(second)) == (403, 200)
    revoke_credential(w.tenant_admin, **everything)
    assert (status(second), status(other)) == (401, 200)
    assert [a.subject for a in audits(house.system, "RevokeToken")] == [f"token:{jti}"] * 2
    told = [note.outcome for note in audits(house.system, "RevokeCredential")]
    assert told == ["refused", "refused", "done"]
    neighbour = second_world(house.tenant)
    theirs = token_of(neighbour.operator)
    revoke_token(w.workspace_admin, jti=verifier().verify(theirs).jti, reason="not mine")
    assert status(theirs) == 200, "An admin reaches their own tenant's tokens only."
    for who in ("operator", "requester", "observer"):
        with pytest.raises(InsufficientRole):
            revoke_token(w.ctx(who), jti="x", reason="no")
    with pytest.raises(InvalidInput):
        revoke_token(w.workspace_admin, jti="a b", reason=" ")
    assert violations(house.tenant) == []


def test_over_the_api_and_the_console_and_the_command_line(house: House) -> None:
    w = house.world
    api = Api.as_(w.workspace_admin)
    lost, other, third = (token_of(w.observer) for _ in range(3))
    body = {"jti": verifier().verify(lost).jti, "reason": "lost"}
    assert api.post("/factory/revocations", body).status_code == 201
    assert api.post("/factory/revocations", {"reason": "x"}).status_code == 400
    [row] = api.get("/factory/revocations").json()["items"]
    assert (row["jti"], row["revokedBy"]) == (body["jti"], w.workspace_admin.actor.subject)
    client = signed_in(w.workspace_admin)
    url = reverse("admin:projects_revoke_token")
    assert "Go back, and do nothing" in client.get(url).content.decode()
    empty = client.post(url, {"kind": "jti", "value": "keep-me", "reason": " "})
    assert (empty.status_code, "keep-me" in empty.content.decode()) == (400, True)
    client.post(url, {"kind": "jti", "value": verifier().verify(other).jti, "reason": "lost"})
    call_command("revoke", tenant=house.tenant, jti=verifier().verify(third).jti, reason="lost")
    assert [status(token) for token in (lost, other, third)] == [401, 401, 401]
    listed = client.get(reverse("admin:factory_revokedtoken_changelist")).content.decode()
    assert verifier().verify(third).jti in listed
    with reading(house.system):
        row = RevokedToken.objects.get(scope=house.tenant, jti=verifier().verify(third).jti)
    shown = client.get(reverse("admin:factory_revokedtoken_change", args=[row.pk])).content.decode()
    assert f"<dd>the token with the id (jti) <code>{row.jti}</code></dd>" in shown
    assert "<dt>Jti</dt>" not in shown
    assert signed_in(w.operator).get(url).status_code == 403


def test_a_service_account_loses_its_standing(house: House) -> None:
    w = house.world
    token = token_of(w.service)
    assert status(token) == 200
    with reading(house.system):
        account = ServiceAccount.objects.get(subject=w.service.actor.subject)
    with pytest.raises(NotFound):
        revoke_service_account(second_world(house.tenant).workspace_admin, account_id=account.id, reason="x")
    path = f"/factory/service-accounts/{account.id}/revoke"
    answer = Api.as_(w.workspace_admin).post(path, {"reason": "the key leaked"})
    assert (answer.status_code, answer.json()["state"]) == (200, "Revoked")
    assert status(token) == 403
    assert journal(house.system, account.id)[-1] == ("Active", "Revoked", "RevocationRequested")
    [audit] = audits(house.system, "RevokeServiceAccount")
    assert audit.reason == "the key leaked"
    wide = Api.as_(w.tenant_admin, project_id=None)
    assert wide.post(path, {"reason": "again"}).status_code == 409


def test_a_worker_is_refused_at_once_and_its_attempts_settle_when_the_grace_is_over(house: House) -> None:
    run_id = house.run()
    worker = house.hand()
    work = worker.take()
    row = Worker.objects.get(pool_id=house.pool, name="w1")
    token = worker_token(row.subject, pool=house.pool)
    revoke_worker(house.world.operator, worker_id=row.id, reason="the host was taken over")
    with pytest.raises(TokenRefused):
        admit(verifier().verify(token))
    admit(verifier().verify(worker_token("worker:other", pool=house.pool)))
    LeaseExpiryReconciler().run_once(house.tenant)
    assert house.attempt(work.attempt_id).state == "Open", "Nothing is taken by force."
    house.let_lapse(work.lease_id)
    LeaseExpiryReconciler().run_once(house.tenant)
    assert house.attempt(work.attempt_id).state == "TimedOut"
    assert house.state(run_id) == "Running"
    [audit] = audits(house.system, "RevokeWorker")
    assert (audit.subject, audit.reason) == (f"worker:{house.pool}/w1", "the host was taken over")
    serve_tenant(house.system, pool=house.pool, tenant_id=f"{house.tenant}-b")
    with pytest.raises(PoolShared):
        revoke_worker(house.world.operator, worker_id=row.id, reason="again")
    with pytest.raises(NotFound):
        revoke_worker(second_world(f"{house.tenant}-c").operator, worker_id=row.id, reason="mine")
    call_command("revoke_worker", house.pool, "w1", reason="by the platform")
