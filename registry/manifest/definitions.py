"""The manifest: read strictly, checked completely, every fault with its place. Pure: no database, no Git."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from factory.kernel import strict_yaml
from factory.kernel.errors import FieldError, InvalidInput
from factory.kernel.hashing import canonical
from registry.errors import ManifestRefused
from registry.manifest.faults import format_faults, repeated
from registry.manifest.workflows import rank, workflow_faults

MAX_MANIFEST_BYTES = 256 * 1024
MAX_FAULTS = 50


def parse(content: bytes) -> dict[str, Any]:
    """Return the manifest as JSON values. Raises ManifestRefused with the line of the fault."""
    if len(content) > MAX_MANIFEST_BYTES:
        raise ManifestRefused(f"The manifest is larger than {MAX_MANIFEST_BYTES // 1024} KiB.")
    try:
        value = strict_yaml.load(content.decode("utf-8"))
        canonical(value)
    except UnicodeDecodeError as fault:
        raise ManifestRefused("The manifest is not UTF-8 text.") from fault
    except yaml.MarkedYAMLError as fault:
        raise ManifestRefused(f"The manifest is not readable{strict_yaml.place(fault)}.") from fault
    except InvalidInput as fault:
        raise ManifestRefused(f"The manifest is not readable: {fault}", errors=fault.errors) from fault
    except (yaml.YAMLError, RecursionError, ValueError) as fault:
        raise ManifestRefused(f"The manifest is not readable: {fault}") from fault
    if not isinstance(value, dict):
        raise ManifestRefused("The manifest has to be a mapping.")
    return value


@cache
def _validator() -> Draft202012Validator:
    schema = json.loads((Path(__file__).parent / "manifest_schema.json").read_text("utf-8"))
    return Draft202012Validator(schema)


def check(manifest: Mapping[str, Any]) -> list[FieldError]:
    """Return every fault of a manifest. Where its schema refuses it, those alone: the rest would guess."""
    shape = [fault for error in _validator().iter_errors(manifest) for fault in format_faults(error)]
    if shape:
        return sorted(shape, key=lambda fault: fault.pointer)[:MAX_FAULTS]
    skills = {skill["skillId"]: skill for skill in manifest["skills"]}
    agents = {agent["agentId"]: agent for agent in manifest["agents"]}
    faults = [*_doubles(manifest), *_agent_faults(manifest, skills), *_skill_faults(manifest)]
    faults += _entry_fault("/evaluation", manifest["evaluation"])
    for index, workflow in enumerate(manifest["workflows"]):
        faults += workflow_faults(workflow, agents, skills, f"/workflows/{index}")
    return faults[:MAX_FAULTS]


def validated(content: bytes) -> dict[str, Any]:
    """Parse and check; raises ManifestRefused with all faults."""
    manifest = parse(content)
    faults = check(manifest)
    if faults:
        first = f"{faults[0].pointer or '/'}: {faults[0].detail}"
        raise ManifestRefused(f"The manifest has {len(faults)} fault(s), the first at {first}", errors=faults)
    return manifest


def _doubles(manifest: Mapping[str, Any]) -> Iterator[FieldError]:
    for group, key in (
        ("agents", "agentId"),
        ("skills", "skillId"),
        ("workflows", "workflowId"),
        ("modelProfiles", "modelProfileId"),
    ):
        yield from repeated(f"/{group}", [item[key] for item in manifest[group]], key)
    names = [dependency.partition("@")[0] for dependency in manifest.get("dependencies", [])]
    for index, name in enumerate(names):
        if name == manifest["asset"]:
            yield FieldError(f"/dependencies/{index}", "A release cannot depend on its own asset.")
        elif name in names[:index]:
            yield FieldError(f"/dependencies/{index}", f"{name} is depended on twice.")


def _entry_fault(base: str, item: Mapping[str, Any]) -> Iterator[FieldError]:
    if "entry" in item and item["entry"] not in item["files"]:
        yield FieldError(f"{base}/entry", f"{item['entry']} is not among the files.")


def _agent_faults(manifest: Mapping[str, Any], skills: Mapping[str, Any]) -> Iterator[FieldError]:
    for index, agent in enumerate(manifest["agents"]):
        for place, skill in enumerate(agent.get("skills", [])):
            if skill not in skills:
                yield FieldError(f"/agents/{index}/skills/{place}", f"There is no skill {skill}.")


def _skill_faults(manifest: Mapping[str, Any]) -> Iterator[FieldError]:
    for index, skill in enumerate(manifest["skills"]):
        base = f"/skills/{index}"
        tools = skill.get("tools", [])
        yield from _entry_fault(base, skill)
        yield from repeated(f"{base}/tools", [tool["name"] for tool in tools], "name")
        for place, tool in enumerate(tools):
            if rank(tool["sideEffectClass"]) > rank(skill["sideEffectClass"]):
                yield FieldError(
                    f"{base}/tools/{place}/sideEffectClass",
                    f"The tool is {tool['sideEffectClass']}, above its skill's {skill['sideEffectClass']}.",
                )
