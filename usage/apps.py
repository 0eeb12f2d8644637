"""Budgets, reservations, the ledger and priced usage."""

from factory.apps import HouseConfig


class UsageConfig(HouseConfig):
    name = "usage"
    default = True
