"""The page of receipts that were not taken: who opens it, and what it shows."""

import pytest
from django.urls import reverse

from factory.kernel.tenancy import reading
from runs.models import RefusedReceipt
from tests.console.test_pages import signed_in
from tests.support.receipts import costing, receipt
from tests.support.running import House

LIST = "admin:runs_refusedreceipt_changelist"


@pytest.fixture
def house(tenant_id: str) -> House:
    made = House(tenant_id)
    made.run()
    worker = made.hand()
    paid = costing("0.01") | {"details": {"prompt": "secret words"}}
    other = paid | {"cost": {"amount": "4.900000", "currency": "USD"}}
    unkept = receipt(details={"text": "a\x00\ud800"}) | {"x\ud800": 1}
    worker.receipts(worker.take(), paid, other, receipt(occurredAt="yesterday"), unkept)
    return made


def pages(house: House) -> dict[str, str]:
    with reading(house.system):
        rows = RefusedReceipt.objects.order_by("refused_at", "pk").values_list("code", "pk")
        pages = [(code, reverse("admin:runs_refusedreceipt_change", args=[pk])) for code, pk in rows]
    return {(code if code not in dict(pages[:n]) else "unkept"): page for n, (code, page) in enumerate(pages)}


def test_operators_and_finance_see_what_was_refused_and_what_stands(house: House) -> None:
    own = pages(house)
    for who in (house.world.operator, house.world.finance, house.world.tenant_admin):
        browser = signed_in(who)
        listed = browser.get(reverse(LIST)).content.decode()
        assert "receipt-conflict" in listed
        assert "invalid-receipt" in listed
        page = browser.get(own["receipt-conflict"]).content.decode()
        assert "4.900000" in page
        assert "0.01" in page
        assert "/receipts/2/occurredAt" in browser.get(own["invalid-receipt"]).content.decode()
        assert browser.get(own["unkept"]).status_code == 200


def test_the_details_of_a_receipt_are_for_those_with_the_grant(house: House) -> None:
    own = pages(house)
    for who, sees in ((house.world.operator, True), (house.world.finance, False)):
        page = signed_in(who).get(own["receipt-conflict"]).content.decode()
        assert ("secret words" in page, "it takes the grant payloads" in page) == (sees, not sees)


def test_others_and_other_tenants_do_not_see_it(house: House) -> None:
    own = pages(house)["receipt-conflict"]
    observer = signed_in(house.world.observer)
    assert observer.get(reverse(LIST)).status_code == 403
    assert observer.get(own).status_code == 403
    foreign = signed_in(House(f"{house.tenant}-b").world.operator)
    assert foreign.get(own).status_code == 404
    assert "receipt-conflict</" not in foreign.get(reverse(LIST)).content.decode()
