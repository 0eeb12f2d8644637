"""What can be done: decide, expire, publish a policy."""

from approvals.commands.decide import decide_approval
from approvals.commands.expire import expire_approval
from approvals.commands.policy import adopt_platform_policy, publish_policy_revision

__all__ = ["adopt_platform_policy", "decide_approval", "expire_approval", "publish_policy_revision"]
