"""Lists: a walk through the pages sees each row once, whatever is inserted meanwhile."""

import pytest

from factory.kernel.commanding import command
from factory.kernel.models import AuditEntry
from factory.kernel.permissions import permit, register_permit
from factory.kernel.recording import audit
from factory.kernel.tenancy import reading
from tests.support.api import Api, problem
from tests.support.world import World, second_world, world

AUDIT = "/factory/test/audit"
register_permit(permit("TestNote", scope=None, roles=None))


@command("TestNote", audited=False)
def note(ctx, *, count: int = 1) -> None:
    """Only so that there are rows."""
    for n in range(count):
        audit(ctx, "TestNote", subject=f"s-{n}")


@pytest.fixture(autouse=True)
def _routes(settings):
    settings.ROOT_URLCONF = "tests.rest.urls"


@pytest.fixture
def home(tenant_id) -> World:
    return world(tenant_id)


@pytest.fixture
def reader(home) -> Api:
    return Api.as_(home.requester)


def walk(api: Api, *, limit: int, between=lambda: None, path: str = AUDIT) -> list[str]:
    seen, cursor = [], None
    while True:
        joint = "&" if "?" in path else "?"
        response = api.get(f"{path}{joint}limit={limit}" + (f"&cursor={cursor}" if cursor else ""))
        assert response.status_code == 200, response.content
        told = response.json()
        assert set(told) == {"items", "next", "asOf"}
        assert len(told["items"]) <= limit
        seen += [item["id"] for item in told["items"]]
        cursor = told["next"]
        if cursor is None:
            return seen
        between()


def rows_of(home: World) -> list[str]:
    with reading(home.requester):
        return [str(e.id) for e in AuditEntry.objects.order_by("-occurred_at", "-id")]


@pytest.mark.requirement("API-10")
def test_a_walk_sees_every_row_once_while_rows_are_inserted(home, reader):
    note(home.requester, count=60)
    before = rows_of(home)
    seen = walk(reader, limit=7, between=lambda: note(home.requester, count=5))
    assert seen == before
    assert len(set(seen)) == len(seen)


def test_a_full_last_page_has_no_next(home, reader):
    total = len(rows_of(home))
    note(home.requester, count=10 - total % 10)
    assert len(walk(reader, limit=10)) == len(rows_of(home))
    assert reader.get(f"{AUDIT}?limit=200").json()["next"] is None


def test_oldest_first_is_the_other_way_round(home, reader):
    note(home.requester, count=9)
    assert walk(reader, limit=4, path=f"{AUDIT}?order=oldest") == rows_of(home)[::-1]


@pytest.mark.parametrize("limit", ["0", "201", "-1", "x", "1.5", "", "٣", "9" * 50])
def test_refuses_a_limit_out_of_range(reader, limit):
    assert problem(reader.get(f"{AUDIT}?limit={limit}"))["errors"][0]["pointer"] == "/limit"


def test_a_cursor_is_good_for_its_own_list_alone(home, reader, tenant_id):
    note(home.requester, count=9)
    cursor = reader.get(f"{AUDIT}?limit=3").json()["next"]
    stranger = Api.as_(second_world(tenant_id).requester)
    for refused in (
        reader.get(f"{AUDIT}?limit=3&order=oldest&cursor={cursor}"),
        reader.get(f"{AUDIT}?limit=3&cursor={cursor}x"),
        reader.get(f"{AUDIT}?limit=3&cursor=WyIxIl0"),
        stranger.get(f"{AUDIT}?limit=3&cursor={cursor}"),
    ):
        assert problem(refused)["errors"][0]["pointer"] == "/cursor"
    assert reader.get(f"{AUDIT}?limit=5&cursor={cursor}").status_code == 200


@pytest.mark.parametrize(
    "query", ["tenantId=t", "_connector=OR", "order=oldest&order=oldest", "order=sideways"]
)
def test_refuses_parameters_that_it_does_not_know(reader, query):
    assert problem(reader.get(f"{AUDIT}?{query}"))["status"] == 400
