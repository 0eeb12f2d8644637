"""What every list's file holds: whole ids, whole words, and times that are as true tomorrow."""

import re
from typing import Any
from uuid import uuid4

import pytest

from approvals.models import ApprovalRequest, PolicyRevision, Waiver
from factory.kernel.models import RevokedToken
from projects.models import Delegation, Environment, Project, ServiceAccount
from registry.models import Alias, Asset, EvaluationRecord, Release
from tests.console.test_lists import sheet
from tests.console.test_pages import PAGES, signed_in, url
from tests.support.furnished import furnished
from tests.support.running import House
from usage.models import Budget, LedgerEntry, PricingRevision, Reservation, UsageRecord

pytestmark = pytest.mark.slow

PASSING = re.compile(r"\b\d+ (d|h|min|s)\b|its time is over|has expired")
"""What a page tells of a time at the moment that it is looked at."""
LIMITS = re.compile(r"\d+ USD, \d+ min")
LASTED = ("Took",)
"""How long something took that is over: that does not change."""
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")

ID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00"
HASH, MONEY, WHO = r"sha256:[0-9a-f]{64}", r"\d+\.\d\d USD", r"[a-z0-9-]+@[a-z0-9-]+\.test"
SHAPES = {
    ApprovalRequest: {
        "What": ".+", "Class": "shared-write", "State": "Pending", "Project and environment": ".+ .+",
        "Run": ID, "Asked by": ".+", "Requested": TIME, "Expires": TIME,
    },
    PolicyRevision: {
        "Revision": "r2", "Note": "Two people for production", "Published by": WHO, "Published": TIME,
        "Hash": HASH, "Standing": "in force",
    },
    Waiver: {
        "Template": "nightly-gated", "Release": "sample@1.0.0", "State": "Active", "Ends": TIME,
        "Writes": r"\d+", "Asked by": WHO, "Decided by": WHO, "Environments": "staging",
    },
    RevokedToken: {"Time": TIME, "What is refused": ID, "Reason": "The laptop was lost", "Revoked by": WHO},
    Delegation: {
        "Role": "Reviewer", "Delegator": WHO, "Delegate": WHO, "Project": "The main project",
        "State": "Active", "Ends": TIME, "Reason": "on leave",
    },
    Project: {"Name": ".+", "Slug": ".+", "State": "Active", "Since": TIME, "Suspended because": "–?"},
    Environment: {"Slug": "staging", "Name": ".+", "Project": "The main project"},
    ServiceAccount: {"Name": ".+", "Subject": "service:.+", "Owner": WHO, "State": "Active", "Since": TIME},
    Asset: {"Asset": "sample", "Latest names": ".+", "Which is": ".+", "Since": TIME},
    Release: {
        "Release": "sample@1.0.0", "State": ".+", "Hash": HASH, "Commit": "[0-9a-f]{40}", "Author": WHO,
        "Submitted": TIME, "What is wrong": ".*",
    },
    Alias: {"Asset": "base", "Name": "latest", "Leads to": "base@1.1.0", "Moves": "2 so far"},
    EvaluationRecord: {
        "Suite": "smoke", "Suite version": "1.0.0", "Verdict": "pass", "Scores": "found 1.0",
        "Release hash": HASH, "Producer": WHO, "Recorded": TIME, "Release": "base@1.1.0",
    },
    Budget: {
        "Month": r"[A-Z][a-z]+ \d{4}", "Of": "The main project", "In use": r"\d+ % in use", "Left": MONEY,
        "Of the amount": MONEY, "Spent": MONEY, "Reserved": MONEY, "Held": MONEY, "Month ends": TIME,
    },
    LedgerEntry: {
        "Time": TIME, "Budget": r"[A-Z][a-z]+ \d{4}, The main project", "Movement": "Reserved",
        "Account": "available", "Amount": r"-5\.000000", "Transaction": ID, "Run": ID,
    },
    PricingRevision: {
        "Number": "1", "Valid from": TIME, "Published by": "system:test", "Document hash": HASH,
    },
    Reservation: {
        "Run": ID, "State": "Reserved", "Amount": "5.00 USD", "Held": r"0\.00 USD", "Made": TIME,
        "Expires": TIME, "Reason": "",
    },
    UsageRecord: {
        "Time": TIME, "Run": ID, "Agent": "analyst", "Call of": "big-1 model of .+",
        "Quantities": "12400 inputTokens, 850 outputTokens", "Cost": r"0\.04875 USD", "State": "Estimated",
    },
}  # fmt: skip
"""The columns of files whose pages tell in words, or in one column, what programs read; and one row."""


@pytest.fixture(scope="module")
def house() -> House:
    return furnished(f"t-{uuid4().hex[:16]}")


@pytest.mark.parametrize("model", SHAPES, ids=lambda model: model._meta.model_name)
def test_a_file_has_the_columns_and_values_that_programs_read_whatever_the_page_says_in_words(
    house: House, model: Any
) -> None:
    asked = {"format": "csv"} | ({"whose": "all"} if model is ApprovalRequest else {})
    heads, *rows = sheet(signed_in(house.world.tenant_admin).get(url(model, "changelist"), asked))
    assert heads == [*SHAPES[model]]
    held = [*SHAPES[model].values()]
    assert any(all(map(re.fullmatch, held, row)) for row in rows), rows


def test_a_publication_has_no_environment_in_the_file_of_the_inbox(house: House) -> None:
    asked = {"format": "csv", "whose": "all"}
    heads, *rows = sheet(signed_in(house.world.tenant_admin).get(url(ApprovalRequest, "changelist"), asked))
    told = [dict(zip(heads, row, strict=True)) for row in rows]
    places = {one["Project and environment"] for one in told if one["Class"] == "publication"}
    assert places == {"The main project"}


def test_no_file_shortens_an_id_or_tells_a_time_by_what_is_left_of_it(house: House) -> None:
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
