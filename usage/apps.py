"""Budgets, reservations, the ledger and priced usage."""

from factory.apps import BaseAppConfig


class UsageConfig(BaseAppConfig):
    name = "usage"
    default = True
