"""Submissions and run templates as JSON: what is documented of a body is what checks it, whoever sends it."""

from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from factory.api.serializers import (
    Faults,
    Identifier,
    JSONObject,
    PatternField,
    StrictSerializer,
    TextField,
    Whole,
)
from factory.kernel.context import Context
from factory.kernel.hashing import canonical, digest
from runs.commands import submit_under_key
from runs.operations.inputs import MOST_COST, MOST_MINUTES, MOST_SCHEMA, NewTemplate, Submission

DECIMALS = 6
SLUG = r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z"
NO_RELEASE = "Name the release by releaseAlias or by releaseId."
TWO_RELEASES = "Name the release either by releaseAlias or by releaseId, not by both."
NO_TEMPLATE = "This is required where no templateId is given."


@extend_schema_field({"type": "number", "exclusiveMinimum": 0, "maximum": MOST_COST})
class CostField(serializers.FloatField):
    """US dollars, more than 0 and with at most 6 decimals; kept as the number that was sent."""

    default_error_messages = {
        "invalid": f"A number with at most {DECIMALS} decimals, more than 0 and at most {MOST_COST}."
    }

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, bool) or not isinstance(data, int | float) or not isfinite(data):
            self.fail("invalid")
        if not 0 < data <= MOST_COST or Decimal(str(data)) % Decimal(10) ** -DECIMALS:
            self.fail("invalid")
        return data


class RunLimitsBody(StrictSerializer):
    """The most that the run may cost, and the longest that it may take; the policy's where left out."""

    maxCostUsd = CostField(required=False, allow_null=True)
    maxMinutes = Whole(required=False, allow_null=True, min_value=1, max_value=MOST_MINUTES)


class SubmissionBody(StrictSerializer):
    """A run that is asked for, with its release named by `releaseAlias` or by `releaseId`.

    With a `templateId`, what the template fixes (workflow, model profile, limits) may be left out, or said
    the same; without a release, `latest` is meant.
    """

    workflowId = TextField(source="workflow_id", max_length=63, required=False, allow_null=True)
    releaseAlias = TextField(source="release_alias", max_length=63, required=False, allow_null=True)
    releaseId = Identifier(source="release_id", required=False, allow_null=True)
    modelProfileId = TextField(source="model_profile_id", max_length=64, required=False, allow_null=True)
    environmentId = Identifier(source="environment_id", required=False, allow_null=True)
    input = JSONObject()
    limits = RunLimitsBody(required=False)
    previousRunId = Identifier(source="previous_run_id", required=False, allow_null=True)
    templateId = Identifier(source="template_id", required=False, allow_null=True)

    def faults_between(self, data: Mapping[str, Any]) -> Faults:
        """Return the faults of what has to be there without a template, and of two names of one release."""
        faults = {}
        by_template = data.get("templateId") is not None
        named = [name for name in ("releaseAlias", "releaseId") if data.get(name) is not None]
        if not by_template:
            missing = [name for name in ("workflowId", "modelProfileId") if data.get(name) is None]
            faults = {name: [ErrorDetail(NO_TEMPLATE, "required")] for name in missing}
        if len(named) > 1:
            faults["releaseAlias"] = [ErrorDetail(TWO_RELEASES, "ambiguous")]
        elif not named and not by_template:
            faults["releaseAlias"] = [ErrorDetail(NO_RELEASE, "required")]
        return faults


def read_submission(payload: Any) -> Submission:
    """Return the submission that a JSON value is; raise `InvalidInput` with a pointer to every fault."""
    values = SubmissionBody.parse(payload)
    limits = values.get("limits", {})
    return Submission(
        workflow_id=values.get("workflow_id") or "",
        release_alias=values.get("release_alias"),
        release_id=values.get("release_id"),
        model_profile_id=values.get("model_profile_id") or "",
        environment_id=values.get("environment_id"),
        input=values["input"],
        max_cost_usd=limits.get("maxCostUsd"),
        max_minutes=limits.get("maxMinutes"),
        previous_run_id=values.get("previous_run_id"),
        template_id=values.get("template_id"),
        input_hash=digest(payload),
    )


def submit(ctx: Context, *, payload: Any, key: str) -> tuple[dict[str, Any], bool]:
    """Submit a run as JSON under an idempotency key; return the answer, and whether it is an earlier one's.

    Every interface comes through here: REST, the command line and the console.
    """
    return submit_under_key(ctx, submission=read_submission(payload), key=key)


class InputSchemaField(JSONObject):
    """A JSON Schema of at most 64 KiB in its canonical form."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        schema = super().to_internal_value(data)
        if len(canonical(schema, "/inputSchema")) > MOST_SCHEMA:
            raise serializers.ValidationError(f"At most {MOST_SCHEMA} bytes.", "max_length")
        return schema


class FixedLimitsBody(StrictSerializer):
    """The most that each run may cost, and the longest that it may take: what is left open is not fixed."""

    maxCostUsd = CostField()
    maxMinutes = Whole(min_value=1, max_value=MOST_MINUTES)


class NewTemplateBody(StrictSerializer):
    """A run template that is asked for."""

    name = PatternField(SLUG, "Small letters, digits and hyphens between them.", max_length=63)
    description = TextField(max_length=500, required=False, allow_null=True, allow_blank=True)
    workflowId = TextField(source="workflow_id", max_length=63)
    modelProfileId = TextField(source="model_profile_id", max_length=64)
    limits = FixedLimitsBody()
    inputSchema = InputSchemaField(source="input_schema", required=False, allow_null=True)


def read_template(payload: Any) -> NewTemplate:
    """Return the template that a JSON value is; raise `InvalidInput` with a pointer to every fault."""
    values = NewTemplateBody.parse(payload)
    values["description"] = values.get("description") or ""
    return NewTemplate(**{"input_schema": None} | values)
