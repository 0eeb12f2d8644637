"""Policy documents: their shape, and the mistakes that a shape cannot forbid."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, ValidationError

from approvals.errors import PolicyInvalid
from approvals.policy import floor
from approvals.policy.patterns import ANYWHERE, overlap
from approvals.states import ActionClass, Effect
from factory.kernel import strict_yaml
from factory.kernel.errors import FieldError, InvalidInput
from factory.kernel.hashing import canonical

HERE = Path(__file__).parent
MOST_BYTES = 256 * 1024
_ASKING_WORDS = ("roles", "quorum", "expiryHours", "validHours", "onExpiry")


@cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of a policy document."""
    loaded: dict[str, Any] = json.loads((HERE / "schema.json").read_text())
    return loaded


def platform_default() -> dict[str, Any]:
    """Return the document that a tenant starts with."""
    loaded: dict[str, Any] = yaml.safe_load((HERE / "default.yaml").read_text())
    return loaded


def read(text: str) -> Any:
    """Return the document that somebody wrote as YAML (or JSON), not yet checked.

    Raises `PolicyInvalid` with the line and column of what cannot be read, and for what could be read in
    two ways: double keys, aliases, dates.
    """
    try:
        if len(text.encode()) > MOST_BYTES:
            raise PolicyInvalid(f"The policy document is larger than {MOST_BYTES // 1024} KiB.")
        value = strict_yaml.load(text)
        canonical(value)
    except yaml.MarkedYAMLError as fault:
        raise PolicyInvalid(f"The policy document is not readable{strict_yaml.place(fault)}.") from fault
    except InvalidInput as fault:
        raise PolicyInvalid(f"The policy document is not readable: {fault}", errors=fault.errors) from fault
    except (yaml.YAMLError, RecursionError, ValueError) as fault:
        raise PolicyInvalid(f"The policy document is not readable: {fault}") from fault
    return value


def written(document: Mapping[str, Any]) -> str:
    """Return the document as the YAML that people read and edit."""
    return yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True, width=100)


def check(document: Any) -> None:
    """Refuse what is no policy document, or goes below the platform floor.

    Raises `PolicyInvalid` with a JSON Pointer for every fault.
    """
    faults = list(_shape_faults(document)) or list(_meaning_faults(document["rules"]))
    if faults:
        raise PolicyInvalid("The policy document is not valid.", errors=faults)


def clamped(document: Mapping[str, Any]) -> list[str]:
    """Return what is kept as written, yet not followed: an expiry longer than the platform's."""
    longest = int(floor.LONGEST_EXPIRY.total_seconds() // 3600)
    return [
        f"Rule {number} asks for an expiry of {rule['expiryHours']} h; requests expire after {longest} h."
        for number, rule in enumerate(document["rules"], start=1)
        if rule.get("expiryHours", 0) > longest
    ]


def _shape_faults(document: Any) -> Iterator[FieldError]:
    for fault in Draft202012Validator(schema()).iter_errors(document):
        for path in _places(fault):
            yield FieldError(_pointer(path), fault.message[:300])


def _places(fault: ValidationError) -> list[list[str | int]]:
    """Return where it is wrong: what is missing or unknown is named, not what it should stand in."""
    at, named = list(fault.absolute_path), fault.validator_value
    if fault.validator == "required" and isinstance(named, list):
        return [[*at, name] for name in named if fault.message.startswith(repr(name))]
    if fault.validator == "additionalProperties" and isinstance(fault.instance, Mapping):
        known = fault.schema.get("properties", {}) if isinstance(fault.schema, Mapping) else {}
        return [[*at, str(name)] for name in fault.instance if name not in known]
    return [at]


def _pointer(path: Sequence[str | int]) -> str:
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def _meaning_faults(rules: Sequence[Mapping[str, Any]]) -> Iterator[FieldError]:
    for index, rule in enumerate(rules):
        yield from _rule_faults(f"/rules/{index}", rule)
    yield from _quarrels(rules)


def _rule_faults(at: str, rule: Mapping[str, Any]) -> Iterator[FieldError]:
    action_class, effect = ActionClass(rule["actionClass"]), Effect(rule["effect"])
    if effect is Effect.ALLOW and action_class.gated:
        yield FieldError(f"{at}/effect", f"{action_class} always needs a decision: the platform floor.")
    if effect is Effect.REQUIRE_APPROVAL and not action_class.gated:
        yield FieldError(f"{at}/effect", f"{action_class} is autonomous: it can be allowed or denied.")
    if effect is not Effect.REQUIRE_APPROVAL:
        for word in _ASKING_WORDS:
            if word in rule:
                yield FieldError(f"{at}/{word}", f"It means nothing where the effect is {effect}.")
    for position, role in enumerate(rule.get("roles", ())):
        if role not in floor.roles(action_class):
            yield FieldError(f"{at}/roles/{position}", f"A {role} may not decide about {action_class}.")


def _quarrels(rules: Sequence[Mapping[str, Any]]) -> Iterator[FieldError]:
    """Two rules that hold at once and agree on no approver leave a gate that nobody can open."""
    requiring = [(i, rule) for i, rule in enumerate(rules) if rule["effect"] == Effect.REQUIRE_APPROVAL]
    for (index, first), (later_index, second) in combinations(requiring, 2):
        widest = floor.roles(ActionClass(first["actionClass"]))
        apart = set(first.get("roles", widest)).isdisjoint(second.get("roles", widest))
        if first["actionClass"] == second["actionClass"] and apart and _both_hold(first, second):
            detail = f"It and rule {index + 1} can hold at once, and name no role in common."
            yield FieldError(f"/rules/{later_index}/roles", detail)


def _both_hold(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    return overlap(first.get("environment", ANYWHERE), second.get("environment", ANYWHERE))
