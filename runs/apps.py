"""Run Control: runs, steps, attempts and leases."""

from factory.apps import HouseConfig


class RunsConfig(HouseConfig):
    name = "runs"
    default = True
