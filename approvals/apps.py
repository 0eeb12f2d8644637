"""Requests for a human decision, and the policy that asks for them."""

from factory.apps import BaseAppConfig


class ApprovalsConfig(BaseAppConfig):
    name = "approvals"
    default = True
