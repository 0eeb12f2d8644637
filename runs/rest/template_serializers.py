"""What goes over the wire about run templates, and what is accepted."""

from typing import Any

from rest_framework import serializers

from factory.api.serializers import (
    Identifier,
    JSONObject,
    StrictSerializer,
    TextField,
    TimeField,
    Whole,
    WordField,
)
from factory.kernel.reasons import MOST_REASON
from runs.rest.serializers import LimitsBody
from runs.states import TemplateState


class TemplateBody(StrictSerializer):
    """A run template. It never changes; `contentHash` is that of what it fixes, and runs pin it."""

    templateId = Identifier(source="id")
    projectId = Identifier(source="project_id")
    name = TextField()
    description = TextField(max_length=500, allow_blank=True)
    workflowId = TextField(source="workflow_id")
    modelProfileId = TextField(source="model_profile_id")
    limits = LimitsBody()
    inputSchema = JSONObject(source="input_schema", allow_null=True)
    contentHash = TextField(source="content_hash")
    state = WordField(choices=TemplateState.choices)
    createdBy = TextField(source="created_by")
    createdAt = TimeField(source="created_at")
    retiredBy = TextField(source="retired_by", allow_blank=True)
    retiredAt = TimeField(source="retired_at", allow_null=True)
    reason = TextField(source="retire_reason", max_length=MOST_REASON, allow_blank=True)
    version = Whole()


class RetireBody(StrictSerializer):
    """Give the reason why no run is to begin from it any more."""

    reason = TextField(max_length=MOST_REASON)


class NewWaiverBody(StrictSerializer):
    """Ask to approve in advance: shared writes with one release, in some environments, for a time."""

    releaseId = Identifier(source="release_id")
    environmentIds = serializers.ListField(source="environment_ids", child=Identifier(), max_length=20)
    expiresAt = TimeField(source="expires_at")
    reason = TextField(max_length=2000)


class AskedBody(StrictSerializer):
    """The waiver, and the request that decides about it."""

    waiverId = Identifier()
    approvalId = Identifier()
    state = TextField()


class TemplateFilter(StrictSerializer):
    state = WordField(choices=TemplateState.choices, required=False)
    workflowId = TextField(source="workflow_id", max_length=63, required=False)


def body_of(row: Any) -> dict[str, Any]:
    """One template on the wire."""
    return dict(TemplateBody(row).data)
