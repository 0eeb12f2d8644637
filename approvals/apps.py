"""Requests for a human decision, and the policy that asks for them."""

from factory.apps import HouseConfig


class ApprovalsConfig(HouseConfig):
    name = "approvals"
    default = True
