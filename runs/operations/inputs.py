"""Submissions, read strictly: every fault with its place."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from factory.kernel.errors import FieldError, InvalidInput
from factory.kernel.hashing import canonical, digest

MEMBERS = frozenset(
    {
        "workflowId",
        "releaseAlias",
        "releaseId",
        "modelProfileId",
        "environmentId",
        "input",
        "limits",
        "previousRunId",
        "templateId",
    }
)
MOST_COST = 1_000_000
MOST_MINUTES = 10_080


@dataclass(frozen=True, slots=True)
class Submission:
    """What somebody asks for. `input_hash` is over the payload as it was sent.

    With a template, what the template fixes may be left out (an empty text, or None).
    """

    workflow_id: str
    release_alias: str | None
    release_id: UUID | None
    model_profile_id: str
    environment_id: UUID | None
    input: Mapping[str, Any]
    max_cost_usd: float | int | None
    max_minutes: int | None
    previous_run_id: UUID | None
    template_id: UUID | None
    input_hash: str


def parse_submission(payload: Any) -> Submission:
    """A submission from JSON. Raises `InvalidInput` with a pointer to every fault."""
    if not isinstance(payload, Mapping):
        raise InvalidInput("A submission is a JSON object.")
    faults = [FieldError(f"/{_escaped(m)}", "There is no such member.") for m in payload if m not in MEMBERS]
    reader = _Reader(payload, faults)
    template_id = reader.uuid("templateId")
    fixed = template_id is not None
    submission = Submission(
        workflow_id=reader.text("workflowId", 63, required=not fixed),
        release_alias=reader.text("releaseAlias", 63, required=False) or None,
        release_id=reader.uuid("releaseId"),
        model_profile_id=reader.text("modelProfileId", 64, required=not fixed),
        environment_id=reader.uuid("environmentId"),
        input=reader.mapping("input", required=True),
        max_cost_usd=reader.limit("maxCostUsd", (int, float), MOST_COST),
        max_minutes=reader.limit("maxMinutes", (int,), MOST_MINUTES),
        previous_run_id=reader.uuid("previousRunId"),
        template_id=template_id,
        input_hash=digest(payload),
    )
    named = (submission.release_alias is not None) + (submission.release_id is not None)
    if (named > 1 or (named == 0 and not fixed)) and not reader.saw("releaseA"):
        faults.append(FieldError("/releaseAlias", "Name the release by releaseAlias or by releaseId."))
    if faults:
        raise InvalidInput("The submission is not valid.", errors=sorted(faults, key=lambda f: f.pointer))
    return submission


@dataclass(frozen=True, slots=True)
class NewTemplate:
    """What a run template is to fix."""

    name: str
    description: str
    workflow_id: str
    model_profile_id: str
    limits: Mapping[str, Any]
    input_schema: Mapping[str, Any] | None


TEMPLATE_MEMBERS = frozenset({"name", "description", "workflowId", "modelProfileId", "limits", "inputSchema"})
SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
MOST_SCHEMA = 64 * 1024


def parse_template(payload: Any) -> NewTemplate:
    """A template from JSON. Raises `InvalidInput` with a pointer to every fault.

    Both limits are needed: what a template leaves open would not be fixed.
    """
    if not isinstance(payload, Mapping):
        raise InvalidInput("A run template is a JSON object.")
    strange = [member for member in payload if member not in TEMPLATE_MEMBERS]
    faults = [FieldError(f"/{_escaped(member)}", "There is no such member.") for member in strange]
    reader = _Reader(payload, faults)
    limits = {
        "maxCostUsd": reader.limit("maxCostUsd", (int, float), MOST_COST, required=True),
        "maxMinutes": reader.limit("maxMinutes", (int,), MOST_MINUTES, required=True),
    }
    schema = reader.mapping("inputSchema", required=True) if payload.get("inputSchema") is not None else None
    made = NewTemplate(
        name=reader.text("name", 63),
        description=reader.text("description", 500, required=False, empty=True),
        workflow_id=reader.text("workflowId", 63),
        model_profile_id=reader.text("modelProfileId", 64),
        limits=limits,
        input_schema=schema,
    )
    if made.name and not SLUG.fullmatch(made.name):
        faults.append(FieldError("/name", "Small letters, digits and hyphens between them."))
    if schema is not None and len(canonical(schema, "/inputSchema")) > MOST_SCHEMA:
        faults.append(FieldError("/inputSchema", f"At most {MOST_SCHEMA} bytes."))
    if faults:
        raise InvalidInput("The run template is not valid.", errors=sorted(faults, key=lambda f: f.pointer))
    return made


def _escaped(member: object) -> str:
    return str(member).replace("~", "~0").replace("/", "~1")[:200]


def _fits(value: Any, most: int) -> bool:
    return 0 < value <= most and Decimal(str(value)) == round(Decimal(str(value)), 6)


class _Reader:
    """Takes members by type, and notes what is wrong with them."""

    def __init__(self, payload: Mapping[str, Any], faults: list[FieldError]) -> None:
        self._payload, self._faults = payload, faults
        limits = payload.get("limits")
        self._limits = limits if isinstance(limits, Mapping) else {}
        self.mapping("limits", required=False)
        for member in self._limits:
            if member not in ("maxCostUsd", "maxMinutes"):
                self._fault(f"/limits/{_escaped(member)}", "There is no such member.")

    def saw(self, start: str) -> bool:
        """Whether a fault of such a member is noted already."""
        return any(fault.pointer.startswith(f"/{start}") for fault in self._faults)

    def _fault(self, pointer: str, detail: str) -> None:
        self._faults.append(FieldError(pointer, detail))

    def text(self, name: str, longest: int, *, required: bool = True, empty: bool = False) -> str:
        """A text. Of one that may be `empty`, saying nothing and leaving it out are the same."""
        value = self._payload.get(name)
        if (value is None and not required) or (value == "" and empty):
            return ""
        if not isinstance(value, str) or not 1 <= len(value) <= longest or "\x00" in value:
            has = f" This has {len(value):,}." if isinstance(value, str) and len(value) > longest else ""
            self._fault(f"/{name}", f"A text of 1 to {longest} characters.{has}")
            return ""
        return value

    def uuid(self, name: str) -> UUID | None:
        value = self._payload.get(name)
        if value is None:
            return None
        try:
            return UUID(value)
        except (ValueError, TypeError, AttributeError):
            self._fault(f"/{name}", "A UUID.")
            return None

    def mapping(self, name: str, *, required: bool) -> Mapping[str, Any]:
        value = self._payload.get(name)
        if name not in self._payload and not required:
            return {}
        if not isinstance(value, Mapping):
            self._fault(f"/{name}", "An object.")
            return {}
        return value

    def limit(self, name: str, kinds: tuple[type, ...], most: int, *, required: bool = False) -> Any:
        value = self._limits.get(name)
        if value is None and not required:
            return None
        known = isinstance(value, kinds) and not isinstance(value, bool)
        if not known or not _fits(value, most):
            what = "A whole number" if kinds == (int,) else "A number with at most 6 decimals"
            self._fault(f"/limits/{name}", f"{what}, more than 0 and at most {most}.")
            return None
        return value
