"""Money over HTTP, as callers see it."""

from typing import Any
from uuid import uuid4

import pytest

from tests.support.api import Api, problem
from tests.support.evidence import audits, violations
from tests.support.world import World, context_of, second_world, subject_of
from tests.usage.money_world import Money, costing, receipt, this_month
from usage.pricing.periods import label

pytestmark = pytest.mark.slow

TEN = {"amount": "10.000000", "currency": "USD"}


def new() -> dict[str, Any]:
    """A budget of the project, for the month in which it is asked for."""
    return {"scope": "project", "period": label(this_month()), "amount": TEN}


@pytest.fixture
def finance(m: Money) -> Api:
    return Api.as_(m.world.finance)


def wide(w: World, who: str = "platform_admin") -> Api:
    """A token of the tenant as a whole."""
    return Api.as_(context_of(subject_of(w.tenant, who), w.tenant, None))


def usd(amount: str) -> dict[str, str]:
    return {"amount": amount, "currency": "USD"}


def test_creates_a_budget_and_shows_it(m: Money, finance: Api) -> None:
    answer = finance.post("/factory/budgets", new())
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert (made["projectId"], made["period"], made["version"]) == (str(m.project), label(this_month()), 1)
    assert made["amount"] == made["available"] == TEN
    assert made["committed"] == made["spent"] == made["held"] == usd("0.000000")
    read = finance.get(answer["Location"])
    assert read.json() == made
    assert finance.get(answer["Location"], If_None_Match=read["ETag"]).status_code == 304
    assert finance.get("/factory/budgets").json()["items"] == [made]
    assert violations(m.world.tenant) == []


def test_creates_once_under_a_key(finance: Api) -> None:
    first = finance.post("/factory/budgets", new(), Idempotency_Key="k1")
    again = finance.post("/factory/budgets", new(), Idempotency_Key="k1")
    assert first.json() == again.json()
    assert again["Idempotent-Replayed"] == "true"
    assert problem(finance.post("/factory/budgets", new()))["type"].endswith("/budget-exists")


def test_raises_a_budget_by_its_version(m: Money, finance: Api) -> None:
    path = finance.post("/factory/budgets", new())["Location"]
    m.reserve("4")
    stale = finance.post(f"{path}/amount", {"amount": usd("20"), "version": 7})
    assert problem(stale)["type"].endswith("/version-mismatch")
    below = finance.post(f"{path}/amount", {"amount": usd("3"), "version": 1})
    assert (below.status_code, problem(below)["type"].rpartition("/")[2]) == (
        422,
        "budget-below-commitments",
    )
    raised = finance.post(f"{path}/amount", {"amount": usd("20"), "version": 1}).json()
    assert (raised["available"], raised["committed"], raised["version"]) == (
        usd("16.000000"),
        usd("4.000000"),
        2,
    )


def test_pages_through_the_ledger(m: Money, finance: Api) -> None:
    path = finance.post("/factory/budgets", new())["Location"]
    m.reserve("4")
    first = finance.get(f"{path}/ledger?limit=3").json()
    rest = finance.get(f"{path}/ledger?limit=3&cursor={first['next']}").json()
    entries = first["items"] + rest["items"]
    assert [entry["sequence"] for entry in entries] == [4, 3, 2, 1]
    assert rest["next"] is None
    assert (entries[0]["account"], entries[0]["amount"], entries[0]["movement"]) == (
        "committed",
        usd("4.000000"),
        "Reserved",
    )


def test_shows_reservations(m: Money, finance: Api) -> None:
    finance.post("/factory/budgets", new())
    made, denied = m.reserve("4"), m.reserve("40")
    listed = finance.get("/factory/reservations").json()["items"]
    assert [one["reservationId"] for one in listed] == [str(denied.id), str(made.id)]
    assert listed[1]["amount"] == usd("4.000000")
    only = finance.get("/factory/reservations?state=Denied").json()["items"]
    assert [one["reason"] for one in only] == [denied.reason]
    assert finance.get("/factory/reservations?state=Nowhere").status_code == 400


def test_groups_usage(m: Money, finance: Api) -> None:
    finance.post("/factory/budgets", new())
    first, second = m.dispatched("1"), m.dispatched("1")
    m.receive(first, [receipt(), receipt(quantities=None)])
    m.receive(second, [costing("0.5", kind="model", name="big-1")])

    def grouped(by: str) -> dict[str | None, tuple[str, int, int]]:
        answer = finance.get(f"/factory/usage?groupBy={by}").json()
        assert answer["next"] is None
        return {i["key"]: (i["cost"]["amount"], i["records"], i["uncertain"]) for i in answer["items"]}

    everything = ("0.500150", 3, 1)
    assert grouped("project") == {str(m.project): everything}
    assert grouped("agent") == {"assessor": everything}
    assert list(grouped("day").values()) == [everything]
    assert grouped("run") == {str(first): ("0.000150", 2, 1), str(second): ("0.500000", 1, 0)}
    assert grouped("model") == {None: ("0.000150", 2, 1), "factory-tools/big-1": ("0.500000", 1, 0)}


def test_pages_through_groups(m: Money, finance: Api) -> None:
    finance.post("/factory/budgets", new())
    runs = [m.dispatched("1") for _ in range(3)]
    for run_id in runs:
        m.receive(run_id, [receipt()])
    first = finance.get("/factory/usage?groupBy=run&limit=2").json()
    rest = finance.get(f"/factory/usage?groupBy=run&limit=2&cursor={first['next']}").json()
    assert [item["key"] for item in first["items"] + rest["items"]] == sorted(map(str, runs))
    assert rest["next"] is None
    assert finance.get(f"/factory/usage?groupBy=day&cursor={first['next']}").status_code == 400


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("from=2026-01-01&to=2026-02-01", 200),
        ("from=2026-01-01T00:00:00Z&to=2026-01-01T00:00:01%2B00:00", 200),
        ("from=2026-02-01&to=2026-02-01", 400),
        ("from=2026-02-30", 400),
        ("groupBy=colour", 400),
        ("surprise=1", 400),
        ("limit=0", 400),
    ],
)
def test_usage_takes_a_half_open_period(finance: Api, query: str, status: int) -> None:
    assert finance.get(f"/factory/usage?{query}").status_code == status


def test_publishes_prices_in_numbered_revisions(m: Money) -> None:
    admin = wide(m.world)
    units = {"inputTokens": "0.000003"}
    document = {"currency": "USD", "providers": {"gateway": {"prices": {"big-1": units}}}}
    answer = admin.post("/factory/pricing-revisions", {"document": document})
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert (made["revision"], made["publishedBy"]) == ("p2", subject_of(m.world.tenant, "platform_admin"))
    listed = admin.get("/factory/pricing-revisions").json()["items"]
    assert [one["revision"] for one in listed] == ["p2", "p1"]
    past = {"document": document, "validFrom": "2020-01-01T00:00:00Z"}
    assert problem(admin.post("/factory/pricing-revisions", past))["type"].endswith("/price-in-the-past")
    units["inputTokens"] = "-1"
    faulty = problem(admin.post("/factory/pricing-revisions", {"document": document}))
    assert [fault["pointer"] for fault in faulty["errors"]] == [
        "/document/providers/gateway/prices/big-1/inputTokens"
    ]


BAD = [
    ({"amount": "NaN", "currency": "USD"}, "/amount/amount"),
    ({"amount": "1e400", "currency": "USD"}, "/amount/amount"),
    ({"amount": "-1", "currency": "USD"}, "/amount/amount"),
    ({"amount": "9" * 30, "currency": "USD"}, "/amount/amount"),
    ({"amount": 5, "currency": "USD"}, "/amount/amount"),
    ({"amount": "5", "currency": "EUR"}, "/amount/currency"),
    ({"amount": "5"}, "/amount"),
    ("5", "/amount"),
]


@pytest.mark.parametrize(("amount", "pointer"), BAD, ids=str)
def test_refuses_what_is_no_money_and_points_at_it(finance: Api, amount: object, pointer: str) -> None:
    told = problem(finance.post("/factory/budgets", new() | {"amount": amount}))
    assert told["status"] == 400
    assert [fault["pointer"] for fault in told["errors"]] == [pointer]


@pytest.mark.parametrize("period", ["2026-13", "2026-1", "november", 202611, None, "2026-11-01"])
def test_refuses_what_is_no_month(finance: Api, period: object) -> None:
    told = problem(finance.post("/factory/budgets", new() | {"period": period}))
    assert told["errors"][0]["pointer"] == "/period"


@pytest.mark.parametrize("who", ["requester", "reviewer", "operator", "observer"])
def test_only_who_decides_over_money_creates_budgets_and_refusals_are_audited(m: Money, who: str) -> None:
    api = Api.as_(getattr(m.world, who))
    assert problem(api.post("/factory/budgets", new()))["status"] == 403
    assert api.get("/factory/budgets").status_code == 200
    assert [entry.outcome for entry in audits(m.ctx, "CreateBudget")] == ["refused"]


def test_money_of_the_whole_tenant_needs_a_standing_in_the_whole_tenant(m: Money, finance: Api) -> None:
    wanted = new() | {"scope": "tenant"}
    assert problem(finance.post("/factory/budgets", wanted))["status"] == 403
    assert problem(Api.as_(m.world.workspace_admin).post("/factory/budgets", wanted))["status"] == 403
    assert wide(m.world, "tenant_admin").post("/factory/budgets", wanted).status_code == 201
    assert problem(wide(m.world).post("/factory/budgets", new()))["status"] == 422


def test_a_scope_is_needed(m: Money) -> None:
    readers = Api.as_(m.world.finance, scopes=["factory.usage.read"])
    assert problem(readers.post("/factory/budgets", new()))["type"].endswith("/insufficient-scope")
    nobody = Api.as_(m.world.finance, scopes=[])
    for path in ("budgets", "usage", "reservations", "pricing-revisions"):
        assert problem(nobody.get(f"/factory/{path}"))["type"].endswith("/insufficient-scope")


def test_another_tenants_money_is_not_there(m: Money, finance: Api) -> None:
    path = finance.post("/factory/budgets", new())["Location"]
    m.reserve("4")
    stranger = Api.as_(second_world(m.world.tenant).finance)
    for place in (path, f"{path}/ledger", f"/factory/budgets/{uuid4()}/ledger"):
        assert stranger.get(place).status_code == 404
    assert stranger.post(f"{path}/amount", {"amount": TEN, "version": 1}).status_code == 404
    for place in ("budgets", "reservations", "usage"):
        assert stranger.get(f"/factory/{place}").json()["items"] == []
