"""Roles: every row and every act opens for whom the page offers it to, and for nobody else."""

import re
from uuid import uuid4

import pytest
from django.urls import reverse

from tests.browser.pages import ACTED_ON, OF_A_ROW, pages
from tests.console.test_pages import signed_in
from tests.support.furnished import furnished
from tests.support.running import House
from tests.support.world import PEOPLE, TENANT_WIDE

pytestmark = pytest.mark.slow

ASKS = re.compile(r'<form method="post"(?: data-[^>]*)?>')
ACT = re.compile(r'(?:href|action|formaction)="(/admin/[^"?#]+)')
PERSONS = [*(one for one in PEOPLE if one != "reviewer2"), *TENANT_WIDE]
ACTS = {reverse(f"admin:{act}", args=[uuid4()])[:-37] for acts in OF_A_ROW.values() for act in acts}


@pytest.fixture(scope="module")
def house() -> House:
    return furnished(f"t-{uuid4().hex[:16]}")


def acts_of(label: str, key: str) -> set[str]:
    return {reverse(f"admin:{act}", args=[key]) for act in OF_A_ROW.get(label, ())}


@pytest.mark.parametrize("member", PERSONS)
def test_a_row_opens_with_its_list_and_an_act_where_its_page_offers_it(house: House, member: str) -> None:
    client = signed_in(getattr(house.world, member))
    lists = {label: client.get(reverse(f"admin:{label.replace('.', '_')}_changelist")) for label in OF_A_ROW}
    assert {answer.status_code for answer in lists.values()} <= {200, 403, 404}
    wrong, walked = [], set()
    for name, address in pages(house.world.system()):
        label, _, word = name.partition(" ")
        if word != ACTED_ON.get(label, "") or label not in lists:
            continue
        walked.add(label)
        page = client.get(address)
        opened = {200} if lists[label].status_code == 200 else {403, 404}
        if page.status_code not in opened:
            wrong.append(f"{name}: {page.status_code}, the list {lists[label].status_code}")
        offered = {way for each in (page, lists[label]) for way in ACT.findall(each.content.decode())}
        for act in acts_of(label, address.rstrip("/").split("/")[-2]):
            answer = client.get(act)
            asks = answer.status_code == 200 and bool(ASKS.search(answer.content.decode()))
            known = answer.status_code in (200, 403, 404, 409)
            if not known or (act in offered and answer.status_code != 200) or (asks and act not in offered):
                wrong.append(f"{act}: {answer.status_code}, {'' if act in offered else 'not '}offered")
    assert walked == set(OF_A_ROW), "There is a row of each kind to act on"
    assert not wrong, "\n".join(wrong)


def test_there_are_acts_to_look_at() -> None:
    assert len(ACTS) == sum(map(len, OF_A_ROW.values()))
