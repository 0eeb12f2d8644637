"""What callers ask for, once an interface has read and checked it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

MOST_COST = 1_000_000
MOST_MINUTES = 10_080
MOST_SCHEMA = 64 * 1024


@dataclass(frozen=True, slots=True)
class Submission:
    """A run that is asked for. `input_hash` is over the payload as it was sent.

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


@dataclass(frozen=True, slots=True)
class NewTemplate:
    """A run template that is asked for, with what it is to fix."""

    name: str
    description: str
    workflow_id: str
    model_profile_id: str
    limits: Mapping[str, Any]
    input_schema: Mapping[str, Any] | None
