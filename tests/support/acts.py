"""What people do to the house as a whole: newer releases, ends of releases, and the news about it."""

from typing import Any
from uuid import UUID

from approvals.commands import publish_policy_revision
from approvals.policy.document import platform_default
from factory.messaging.relay.delivery import drain
from factory.messaging.relay.destinations import Handlers
from registry.commands import deprecate_release, revoke_release
from tests.support.running import House
from tests.support.workflows import MANIFEST, node, workflow


def deliver(house: House) -> int:
    """Bring the tenant's news to the handlers."""
    return drain(Handlers(), house.tenant)


def newer(house: House, version: str = "1.1.0", **changes: Any) -> UUID:
    """A newer release of the house's asset, which `latest` names from now on."""
    return house.publish(MANIFEST | {"version": version} | changes, commit="b" * 40)


def needed(house: House, version: str = "1.0.0") -> UUID:
    """A release of another asset, `base`, for others to need."""
    flows = [workflow("base-look", node("look"))]
    definition = MANIFEST | {"asset": "base", "version": version, "workflows": flows}
    return house.publish(definition, commit="c" * 40)


def revoke(house: House, in_flight: str, reason: str = "it leaks", release_id: UUID | None = None) -> None:
    by = house.world.operator
    revoke_release(by, release_id=release_id or house.release, in_flight=in_flight, reason=reason)


def deprecate(house: House, in_flight: str, reason: str = "slow") -> None:
    by = house.world.operator
    deprecate_release(by, release_id=house.release, in_flight=in_flight, reason=reason)


def ruled(house: House, **rule: Any) -> None:
    """A new revision of the tenant's policy, with this rule for shared writes."""
    rules = [{"actionClass": "shared-write", "effect": "require-approval", **rule}]
    publish_policy_revision(house.system, document={**platform_default(), "rules": rules})
