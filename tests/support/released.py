"""Releases of every sort, and a second policy: what the pages of the assets are looked at with."""

import copy
from typing import Any

from approvals.commands import publish_policy_revision
from approvals.selectors import current_policy
from factory.kernel.context import Context
from factory.kernel.tenancy import reading
from registry.commands import move_alias
from tests.support.acts import deprecate, needed, revoke
from tests.support.running import House
from tests.support.workflows import MANIFEST, WORKFLOWS, node, workflow


def released(house: House) -> None:
    """A newer release that differs in much, one in review, one that was revoked and that this needs."""
    by = house.world.operator
    needed(house)
    move_alias(by, asset="sample", alias="stable", release_id=house.release)
    newest = house.publish(newer_manifest(), commit="b" * 40, a=b"Look closely.\nThen say it.\n")
    move_alias(by, asset="sample", alias="stable", release_id=newest, version=1)
    deprecate(house, "drain")
    leaking = needed(house, "1.1.0")
    house.candidate(newer_manifest("1.2.0", dependencies=["base@1.1.0"]), commit="e" * 40)
    revoke(house, "drain", release_id=leaking)


def revised(house: House) -> None:
    """A second revision of the policy."""
    document = second_policy(house.system)
    publish_policy_revision(house.world.workspace_admin, document=document, note="Two people for production")


def second_policy(ctx: Context) -> dict[str, Any]:
    """The policy in force with two people for production, one thing refused, and two that are looser."""
    with reading(ctx):
        document = copy.deepcopy(current_policy(ctx).document)
    document["rules"] += [
        {"actionClass": "production", "environment": "prod*", "effect": "require-approval", "quorum": 2},
        {"actionClass": "sandbox", "environment": "staging", "effect": "deny"},
    ]
    return document | {"spend": {"thresholdUsd": 250, "onLimit": "ask"}}


def newer_manifest(version: str = "1.1.0", **changes: Any) -> dict[str, Any]:
    """The house's manifest with a further reach, another limit, one workflow more, one less, and a need."""
    skills = copy.deepcopy(MANIFEST["skills"])
    skills[1] |= {"description": "Builds, and now also deploys", "sideEffectClass": "shared-write"}
    skills[1]["tools"].append({"name": "tool.deploy", "sideEffectClass": "shared-write"})
    flows = [flow for flow in WORKFLOWS if flow["workflowId"] not in ("five", "brief")]
    flows += [workflow("brief", node("look", timeoutMinutes=10)), workflow("late", node("look"))]
    made = {"version": version, "skills": skills, "workflows": flows, "dependencies": ["base@1.0.0"]}
    return MANIFEST | made | changes
