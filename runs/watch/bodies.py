"""What workers send, and what they are told: the wire's names and forms in one place."""

from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any

from rest_framework import serializers

from approvals.states import ActionClass
from factory.api.serializers import (
    Identifier,
    JSONObject,
    PatternField,
    StrictSerializer,
    TextField,
    Whole,
    WordField,
)
from factory.kernel.errors import FieldError, InvalidInput
from factory.kernel.events import camel, wire
from runs.commands.report_outcome import CLASSES

MAX_TOKEN = 2**63 - 1
HASH = r"^sha256:[0-9a-f]{64}\Z"


class Hash(PatternField):
    """`sha256:` and 64 hexadecimal digits."""

    def __init__(self, **options: Any) -> None:
        super().__init__(HASH, "sha256: and 64 hexadecimal digits.", max_length=71, **options)


class Registration(StrictSerializer):
    capabilities = serializers.ListField(child=TextField(max_length=130), min_length=1, max_length=200)
    maxConcurrency = Whole(source="max_concurrency", min_value=1, max_value=1000)
    version = TextField(max_length=64, allow_blank=True)


class Nothing(StrictSerializer):
    """An empty object."""


class UnderLease(StrictSerializer):
    """Every call of a holder shows its lease and its token."""

    leaseId = Identifier(source="lease_id")
    fencingToken = Whole(source="fencing_token", max_value=MAX_TOKEN)


MOST_RECEIPTS, MOST_ARTIFACTS = 1000, 100
REPORTED_CLASSES = sorted({word for words in CLASSES.values() for word in words if word is not None})
ITEM_BY_ITEM = frozenset({"receipts"})
"""The members of a body whose items are judged one by one, down to the texts and numbers in them."""


class AsItCame(serializers.Field[Any, Any, Any, Any]):
    """Any JSON value, untouched."""

    def to_internal_value(self, data: Any) -> Any:
        return data


class Items(serializers.ListField):
    """A list whose items are judged one by one where they are taken: a faulty one costs itself alone."""

    child = AsItCame(allow_null=True)


class Receipts(UnderLease):
    receipts = Items(max_length=MOST_RECEIPTS)


class ParkBody(StrictSerializer):
    checkpoint = serializers.JSONField(allow_null=True)


class ApprovalRequestBody(UnderLease):
    releaseId = Identifier(source="release_id")
    snapshotId = Identifier(source="snapshot_id")
    policyRevision = TextField(source="policy_revision", max_length=16)
    actionClass = WordField(ActionClass.values, source="action_class")
    environmentId = Identifier(source="environment_id", required=False, allow_null=True, default=None)
    proposal = JSONObject()
    proposalHash = Hash(source="proposal_hash")
    summary = TextField(max_length=2000)
    park = ParkBody(required=False, allow_null=True, default=None)


class AuthorizationRequest(UnderLease):
    approvalId = Identifier(source="approval_id")
    proposalHash = Hash(source="proposal_hash")


class AttemptOutcomeBody(UnderLease):
    outcome = WordField(tuple(CLASSES))
    outcomeHash = Hash(source="outcome_hash")
    failureClass = WordField(
        REPORTED_CLASSES, source="failure_class", required=False, allow_null=True, default=None
    )
    reason = TextField(max_length=4000, allow_blank=True, required=False, allow_null=True, default=None)
    output = serializers.JSONField(required=False, allow_null=True, default=None)
    receipts = Items(required=False, max_length=MOST_RECEIPTS, default=list)
    artifacts = Items(required=False, max_length=MOST_ARTIFACTS, default=list)


def wire_form(value: Any) -> Any:
    """An answer of a command, on the wire: camelCase members, times and ids as strings."""
    if is_dataclass(value) and not isinstance(value, type):
        return {camel(field.name): wire_form(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, list | tuple):
        return [wire_form(item) for item in value]
    if isinstance(value, dict):
        return {str(name): wire_form(item) for name, item in value.items()}
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return wire(value)


def waiting_time(given: list[str], most: int = 30) -> int:
    """The seconds of `?wait=`; without it, none."""
    if not given:
        return 0
    text = given[0]
    if len(given) > 1 or not (text.isascii() and text.isdecimal() and len(text) <= 2 and int(text) <= most):
        fault = FieldError("/wait", f"A whole number from 0 to {most}.")
        raise InvalidInput("The waiting time is out of range.", errors=[fault])
    return int(text)
