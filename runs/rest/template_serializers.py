"""What goes over the wire about run templates, and what is accepted."""

from typing import Any

from rest_framework import serializers

from factory.api.serializers import Choice, Identifier, JSONObject, Moment, StrictSerializer, Text, Whole
from factory.kernel.reasons import MOST_REASON
from runs.rest.serializers import Limits
from runs.states import TemplateState


class FixedLimits(StrictSerializer):
    """What each run may cost, and how long it may take."""

    maxCostUsd = serializers.FloatField()
    maxMinutes = Whole(min_value=1)


class NewTemplateBody(StrictSerializer):
    """A run template. Its members are checked by the command itself, with a pointer to each fault."""

    name = Text(max_length=63)
    description = Text(max_length=500, required=False, allow_blank=True)
    workflowId = Text(max_length=63)
    modelProfileId = Text(max_length=64)
    limits = FixedLimits()
    inputSchema = JSONObject(required=False, allow_null=True)


class TemplateBody(StrictSerializer):
    """A run template. It never changes; `contentHash` is that of what it fixes, and runs pin it."""

    templateId = Identifier(source="id")
    projectId = Identifier(source="project_id")
    name = Text()
    description = Text(max_length=500, allow_blank=True)
    workflowId = Text(source="workflow_id")
    modelProfileId = Text(source="model_profile_id")
    limits = Limits()
    inputSchema = JSONObject(source="input_schema", allow_null=True)
    contentHash = Text(source="content_hash")
    state = Choice(choices=TemplateState.choices)
    createdBy = Text(source="created_by")
    createdAt = Moment(source="created_at")
    retiredBy = Text(source="retired_by", allow_blank=True)
    retiredAt = Moment(source="retired_at", allow_null=True)
    reason = Text(source="retire_reason", max_length=MOST_REASON, allow_blank=True)
    version = Whole()


class RetireBody(StrictSerializer):
    """Why no run is to begin from it any more."""

    reason = Text(max_length=MOST_REASON)


class NewWaiverBody(StrictSerializer):
    """What is to be approved in advance: shared writes with one release, in some environments, for a time."""

    releaseId = Identifier(source="release_id")
    environmentIds = serializers.ListField(source="environment_ids", child=Identifier(), max_length=20)
    expiresAt = Moment(source="expires_at")
    reason = Text(max_length=2000)


class AskedBody(StrictSerializer):
    """The waiver, and the request that decides about it."""

    waiverId = Identifier()
    approvalId = Identifier()
    state = Text()


class TemplateFilter(StrictSerializer):
    state = Choice(choices=TemplateState.choices, required=False)
    workflowId = Text(source="workflow_id", max_length=63, required=False)


def body_of(row: Any) -> dict[str, Any]:
    """One template on the wire."""
    return dict(TemplateBody(row).data)
