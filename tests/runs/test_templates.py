"""Run templates: what is fixed stays fixed, for every run that begins from one."""

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from factory.kernel.context import system
from factory.kernel.errors import DomainError, InvalidInput
from factory.kernel.tenancy import reading
from registry.errors import UnknownWorkflow
from runs.commands import create_run_template, retire_run_template
from runs.errors import (
    ModelProfileNotApproved,
    TemplateEnded,
    TemplateFixesIt,
    TemplateNameTaken,
    TemplateRetired,
    TemplateUnknown,
)
from runs.rest.submissions import read_template, submit
from runs.selectors import newest_of_template
from runs.selectors.reruns import again
from tests.support.evidence import journal, outbox
from tests.support.running import House
from tests.support.waivers import LIMITS, run_from, template
from tests.support.workflows import PROFILE

GO = {
    "type": "object",
    "properties": {"go": {"const": True}, "repository": {"pattern": "^https://git[.]example[.]test/"}},
    "required": ["go"],
}
NEVER: list[dict[str, Any]] = [
    {"required": ["branch"]},
    {"required": ["go"], "properties": {"go": {"const": "yes"}}},
    {"properties": {"repository": {"type": "integer"}}},
    {"minProperties": 3},
    {"required": ["go"], "properties": {"go": {"allOf": [{"const": True}, {"const": False}]}}},
]
"""With a workflow that takes a repository, which is a text, perhaps a boolean `go`, and nothing else."""
INPUT = {"repository": "https://git.example.test/x.git", "go": True}


@pytest.fixture
def house(tenant_id: str) -> House:
    return House(tenant_id)


@pytest.mark.requirement("LTR-03")
def test_a_run_takes_from_its_template_what_that_fixes(house: House) -> None:
    w = house.world
    kind = template(house, "single", inputSchema=GO)
    run = house.row(run_from(house, kind, input=INPUT))
    assert (run.workflow_id, run.model_profile_id, run.limits) == ("single", PROFILE, LIMITS)
    assert (run.template_id, run.release_id) == (kind, house.release)
    pinned = run.snapshot.content["template"]
    assert (pinned["id"], pinned["name"]) == (str(kind), "nightly-single")
    assert pinned["hash"].startswith("sha256:")
    refused: dict[str, tuple[dict[str, Any], type[DomainError], str]] = {
        "another workflow": ({"workflowId": "gated"}, TemplateFixesIt, "/workflowId"),
        "another profile": ({"modelProfileId": "big"}, TemplateFixesIt, "/modelProfileId"),
        "more money": ({"limits": {"maxCostUsd": 6}}, TemplateFixesIt, "/limits/maxCostUsd"),
        "more time": ({"limits": {"maxMinutes": 31}}, TemplateFixesIt, "/limits/maxMinutes"),
        "the template's schema": ({"input": {**INPUT, "go": False}}, InvalidInput, "/input/go"),
        "the workflow's schema": ({"input": {**INPUT, "x": 1}}, InvalidInput, "/input/x"),
        "no such template": ({"templateId": str(uuid4())}, TemplateUnknown, "/templateId"),
        "two releases": ({"releaseAlias": "a", "releaseId": str(uuid4())}, InvalidInput, "/releaseAlias"),
    }
    for what, (changes, refusal, place) in refused.items():
        payload = {"templateId": str(kind), "input": INPUT} | changes
        with pytest.raises(refusal) as no:
            submit(w.requester, payload=payload, key=what)
        assert [fault.pointer for fault in no.value.errors] == [place], what
        assert ("the run template nightly-single" in no.value.detail) is (what == "the template's schema")
    same = {"workflowId": "single", "modelProfileId": PROFILE, "limits": LIMITS, "releaseAlias": "latest"}
    run_from(house, kind, input=INPUT, **same)


@pytest.mark.requirement("LTR-03")
def test_a_template_ends_and_its_runs_keep_what_they_pinned(house: House) -> None:
    w, kind = house.world, template(house)
    run_id = run_from(house, kind)
    with pytest.raises(TemplateNameTaken):
        template(house)
    with reading(house.system):
        assert again(house.row(run_id))["templateId"] == str(kind)
    retire_run_template(w.workspace_admin, template_id=kind, reason="it is done by hand again")
    with pytest.raises(TemplateEnded):
        retire_run_template(w.operator, template_id=kind, reason="twice")
    with pytest.raises(TemplateRetired, match="by hand"):
        run_from(house, kind)
    with reading(house.system):
        assert "templateId" not in again(house.row(run_id))
    assert house.row(run_id).template_id == kind
    assert template(house) != kind, "the name is free"
    assert [move[1] for move in journal(house.system, kind)] == ["Active", "Retired"]
    assert [data["state"] for _, data in outbox(house.system, kind)] == ["Active", "Retired"]


@pytest.mark.requirement("LTR-03")
def test_what_no_run_could_begin_from_is_no_template(house: House) -> None:
    by = house.world.operator
    whole = {"name": "x", "workflowId": "single", "modelProfileId": PROFILE, "limits": LIMITS}
    for changes, refusal, places in (
        ({"workflowId": "nothing"}, UnknownWorkflow, ["/workflowId"]),
        ({"modelProfileId": "big"}, ModelProfileNotApproved, ["/modelProfileId"]),
        ({"limits": {"maxCostUsd": 0}}, InvalidInput, ["/limits/maxCostUsd", "/limits/maxMinutes"]),
        ({"name": "No Name"}, InvalidInput, ["/name"]),
        ({"releaseAlias": "latest"}, InvalidInput, ["/releaseAlias"]),
        ({"inputSchema": {"type": "list"}}, InvalidInput, ["/inputSchema/type"]),
        (
            {"inputSchema": {"type": "object", "x": {"pattern": "(?=a)"}}},
            InvalidInput,
            ["/inputSchema/x/pattern"],
        ),
        *(({"inputSchema": {"type": "object", **never}}, InvalidInput, ["/inputSchema"]) for never in NEVER),
    ):
        with pytest.raises(refusal) as no:
            create_run_template(by, wanted=read_template(whole | changes))
        assert [fault.pointer for fault in no.value.errors] == places
    create_run_template(by, wanted=read_template(whole | {"description": "", "inputSchema": GO}))


@pytest.mark.requirement("LTR-03")
def test_the_newest_runs_of_a_template_are_read_from_an_index(own_database: str) -> None:
    """However many runs there are, none is sorted: the page of a template reads its twenty."""
    with reading(system("t", "Recovery")), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
        newest = newest_of_template(uuid4())[:20].explain()
    assert "run_newest_of_template" in newest
    assert "Sort" not in newest
