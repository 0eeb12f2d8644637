"""What can be done: decide, expire, publish a policy, end a waiver."""

from approvals.commands.bulk import MOST_AT_ONCE, BulkDecision, BulkDecisionResult, decide_each
from approvals.commands.decide import decide_approval
from approvals.commands.expire import expire_approval
from approvals.commands.policy import adopt_platform_policy, publish_policy_revision
from approvals.commands.waivers import expire_waiver, revoke_waiver

__all__ = [
    "MOST_AT_ONCE",
    "BulkDecision",
    "BulkDecisionResult",
    "adopt_platform_policy",
    "decide_approval",
    "decide_each",
    "expire_approval",
    "expire_waiver",
    "publish_policy_revision",
    "revoke_waiver",
]
