"""What can be done: decide, expire, publish a policy."""

from approvals.commands.bulk import MOST_AT_ONCE, Item, Outcome, decide_each
from approvals.commands.decide import decide_approval
from approvals.commands.expire import expire_approval
from approvals.commands.policy import adopt_platform_policy, publish_policy_revision

__all__ = [
    "MOST_AT_ONCE",
    "Item",
    "Outcome",
    "adopt_platform_policy",
    "decide_approval",
    "decide_each",
    "expire_approval",
    "publish_policy_revision",
]
