"""What the API's description says of a submission and of a template is what the server takes."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator, FormatChecker

from factory.kernel.errors import InvalidInput
from runs.rest.submissions import read_submission, read_template

ID = "0199a1b2-0000-7000-8000-000000000001"
RUN = {
    "workflowId": "w", "releaseAlias": "latest", "modelProfileId": "m", "input": {},
    "limits": {"maxCostUsd": 12, "maxMinutes": 45},
}  # fmt: skip
TEMPLATE = {"name": "nightly", "workflowId": "w", "modelProfileId": "m", "limits": RUN["limits"]}
GOOD = [
    {},
    {"releaseAlias": None, "releaseId": ID},
    {"limits": {}},
    {"limits": {"maxCostUsd": 0.000001, "maxMinutes": None}},
    {"limits": {"maxCostUsd": 1_000_000, "maxMinutes": 10_080}},
    {"templateId": None, "environmentId": ID, "previousRunId": ID},
]
BAD = [
    {"releaseAlias": "", "releaseId": ID},
    *({"environmentId": spelled} for spelled in (f"{{{ID}}}", f"urn:uuid:{ID}", UUID(ID).hex, 7)),
    *({"limits": {"maxCostUsd": wrong}} for wrong in (0, -1, 1_000_000.5, True, "5")),
    *({"limits": {"maxMinutes": wrong}} for wrong in (0, 10_081, 2**53 - 1, 1.5)),
    {"limits": None},
    {"limits": {"maxHours": 1}},
    {"workflowId": "x" * 64},
    {"input": []},
    {"surprise": 1},
]
BAD_TEMPLATES = [
    {"limits": {"maxCostUsd": 1}},
    {"limits": {"maxCostUsd": None, "maxMinutes": 1}},
    {"limits": {"maxCostUsd": 1, "maxMinutes": 10_081}},
    {"name": "No Name"},
    {"name": "ends-"},
    {"inputSchema": []},
    {"releaseAlias": "latest"},
]


@pytest.fixture(scope="module")
def described() -> Callable[[str, Any], bool]:
    """Tell whether a value is what the API's description says of a body."""
    components = SchemaGenerator().get_schema(request=None, public=True)["components"]

    def fits(body: str, value: Any) -> bool:
        schema = {"$ref": f"#/components/schemas/{body}", "components": components}
        return Draft202012Validator(schema, format_checker=FormatChecker()).is_valid(value)

    return fits


def taken(read: Callable[[Any], Any], value: Any) -> bool:
    try:
        read(value)
    except InvalidInput:
        return False
    return True


@pytest.mark.parametrize(("change", "is_good"), [*((c, True) for c in GOOD), *((c, False) for c in BAD)])
def test_a_submission_is_taken_where_it_is_as_described(
    described: Callable[[str, Any], bool], change: dict[str, Any], is_good: bool
) -> None:
    body = RUN | change
    assert (described("SubmissionBodyRequest", body), taken(read_submission, body)) == (is_good, is_good)


@pytest.mark.parametrize("change", BAD_TEMPLATES)
def test_a_template_is_taken_where_it_is_as_described(
    described: Callable[[str, Any], bool], change: dict[str, Any]
) -> None:
    for body, is_good in ((TEMPLATE, True), (TEMPLATE | change, False)):
        assert (described("NewTemplateBodyRequest", body), taken(read_template, body)) == (is_good, is_good)


def test_every_fault_of_a_submission_is_told_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        read_submission({"surprise": 1, "limits": {"maxCostUsd": 0.0000001}, "input": {}, "releaseId": "x"})
    assert {fault.pointer for fault in refused.value.errors} == {
        "/surprise", "/limits/maxCostUsd", "/workflowId", "/modelProfileId", "/releaseId",
    }  # fmt: skip
    for both in ({}, {"releaseAlias": "latest", "releaseId": ID}):
        with pytest.raises(InvalidInput) as refused:
            read_submission({"workflowId": "w", "modelProfileId": "m", "input": {}} | both)
        assert [fault.pointer for fault in refused.value.errors] == ["/releaseAlias"]


def test_a_limit_is_kept_as_the_number_that_was_sent() -> None:
    for sent in (12, 12.5):
        kept = read_submission(RUN | {"limits": {"maxCostUsd": sent}}).max_cost_usd
        assert (kept, type(kept)) == (sent, type(sent))
