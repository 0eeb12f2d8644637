"""Reading changes nothing: what follows links decides nothing."""

import pytest
from django.apps import apps
from django.db import connection

from approvals.selectors import approval
from factory.kernel.models.base import TenantModel
from factory.kernel.tenancy import reading
from tests.security.scene import Place, Scene, routes
from tests.security.test_tenant_matrix import browser
from tests.support.api import Api
from tests.support.evidence import counts


def asked(scene: Scene):
    home = scene.home
    with reading(home.system()):
        return approval(home.ids["approval_id"])


def contents(place: Place) -> dict[str, str]:
    """A hash of every row of the tenant, by table."""
    tables = [m._meta.db_table for m in apps.get_models() if issubclass(m, TenantModel) and m._meta.managed]
    found = {}
    with reading(place.system()), connection.cursor() as cursor:
        for table in tables:
            cursor.execute(
                f"SELECT md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')) FROM {table} t"
            )
            [(found[table],)] = cursor.fetchall()
    return found


@pytest.mark.requirement("API-19")
def test_following_a_link_changes_nothing(scene: Scene) -> None:
    home, view = scene.home, asked(scene)
    before = counts(home.system())
    api, page = Api.as_(home.everybody), browser(home.everybody)
    urls = [r.url(home.ids) for r in routes() if "approval" in r.path]
    reads = [r.url(home.ids) for r in routes() if "GET" in r.operations]
    pages = [f"/admin/approvals/approvalrequest/{view.id}/{tail}" for tail in ("", "change/", "decide/")]
    for verb in ("GET", "HEAD", "OPTIONS"):
        for url in urls:
            assert api.call(verb, f"{url}?decision=approve&version=1").status_code in (200, 400, 405)
        for url in pages:
            answer = page.generic(verb, f"{url}?decision=approve&version={view.version}")
            assert answer.status_code in (200, 302, 301, 404, 405), (verb, url)
    assert len(reads) > 30
    kept = contents(home)
    for url in reads:
        assert api.get(url).status_code < 500, url
    assert contents(home) == kept
    assert counts(home.system()) == before
    assert asked(scene) == view
