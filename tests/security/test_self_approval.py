"""The requester who holds every role decides nothing of their own, on no path; reading changes nothing."""

import pytest

from approvals.selectors import approval
from factory.tenancy import reading
from tests.security.scene import Scene, routes
from tests.security.test_tenant_matrix import browser
from tests.support.api import Api, problem, token_of
from tests.support.evidence import audits, counts
from tests.support.world import ALL, context_of


def asked(scene: Scene):
    home = scene.home
    with reading(home.system()):
        return approval(home.ids["approval_id"])


@pytest.mark.requirement("APR-20")
def test_the_requester_with_every_role_is_refused_on_every_path(scene: Scene) -> None:
    home, view = scene.home, asked(scene)
    me = home.everybody.actor.subject
    url = f"/factory/approvals/{view.id}/decision"
    body = {"version": view.version, "proposalHash": view.proposal_hash, "reason": "mine"}
    before = len(audits(home.system(), "DecideApproval"))
    wide = context_of(me, home.tenant, home.project)
    tokens = [token_of(wide, scopes=ALL), token_of(wide, scopes=ALL, roles=["Reviewer"])]
    for token in tokens:
        for decision in ("approve", "reject", "request_changes"):
            answer = Api(token).post(url, body | {"decision": decision})
            assert answer.status_code == 403, answer.content
            assert problem(answer)["type"].endswith("/separation-of-duties")
    form = {"decision": "approve", "version": view.version, "proposal_hash": view.proposal_hash}
    page = browser(home.everybody).post(
        f"/admin/approvals/approvalrequest/{view.id}/decide/", form | {"reason": "mine"}
    )
    assert page.status_code == 403
    assert len(audits(home.system(), "DecideApproval")) == before + 7
    assert asked(scene) == view


@pytest.mark.requirement("APR-21")
def test_following_a_link_changes_nothing(scene: Scene) -> None:
    home, view = scene.home, asked(scene)
    before = counts(home.system())
    api, page = Api.as_(home.everybody), browser(home.everybody)
    urls = [r.url(home.ids) for r in routes() if "approval" in r.path]
    pages = [f"/admin/approvals/approvalrequest/{view.id}/{tail}" for tail in ("", "change/", "decide/")]
    for verb in ("GET", "HEAD", "OPTIONS"):
        for url in urls:
            assert api.call(verb, f"{url}?decision=approve&version=1").status_code in (200, 400, 405)
        for url in pages:
            answer = page.generic(verb, f"{url}?decision=approve&version={view.version}")
            assert answer.status_code in (200, 302, 301, 404, 405), (verb, url)
    assert counts(home.system()) == before
    assert asked(scene) == view
