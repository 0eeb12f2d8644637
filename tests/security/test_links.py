"""Reading changes nothing: what follows links decides nothing."""

import pytest

from approvals.selectors import approval
from factory.tenancy import reading
from tests.security.scene import Scene, routes
from tests.security.test_tenant_matrix import browser
from tests.support.api import Api
from tests.support.evidence import counts


def asked(scene: Scene):
    home = scene.home
    with reading(home.system()):
        return approval(home.ids["approval_id"])


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
