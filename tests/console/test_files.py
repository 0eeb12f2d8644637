"""What every list's file holds: whole ids, whole words, and times that are as true tomorrow."""

import re
from uuid import uuid4

import pytest

from approvals.models import ApprovalRequest
from tests.console.test_lists import sheet
from tests.console.test_pages import PAGES, signed_in, url
from tests.support.furnished import furnished

pytestmark = pytest.mark.slow

PASSING = re.compile(r"\b\d+ (d|h|min|s)\b|its time is over|has expired")
"""What a page tells of a time at the moment that it is looked at."""
LIMITS = re.compile(r"\d+ USD, \d+ min")
LASTED = ("Took",)
"""How long something took that is over: that does not change."""
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")


def test_no_file_shortens_an_id_or_tells_a_time_by_what_is_left_of_it() -> None:
    house = furnished(f"t-{uuid4().hex[:16]}")
    client, filled = signed_in(house.world.tenant_admin), set()
    for model, _ in PAGES:
        if model._meta.model_name == "setting":
            continue
        asked = {"format": "csv"} | ({"whose": "all"} if model is ApprovalRequest else {})
        heads, *rows = sheet(client.get(url(model, "changelist"), asked))
        for row in rows:
            for head, cell in zip(heads, row, strict=True):
                where = f"{model._meta.label}, {head}: {cell}"
                assert "…" not in cell, where
                assert head in LASTED or not PASSING.search(LIMITS.sub("", cell)), where
        filled |= {model._meta.model_name} if rows else set()
    assert {"approvalrequest", "lease", "worker", "waiver", "delegation", "step", "usagerecord"} <= filled
    heads, *rows = sheet(client.get("/admin/approvals/approvalrequest/?format=csv&whose=pending"))
    for row in rows:
        told = dict(zip(heads, row, strict=True))
        assert MOMENT.match(told["Requested"])
        assert MOMENT.match(told["Expires"])
