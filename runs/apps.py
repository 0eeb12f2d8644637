"""Run Control: runs, steps, attempts and leases."""

from factory.apps import BaseAppConfig


class RunsConfig(BaseAppConfig):
    name = "runs"
    default = True

    def ready(self) -> None:
        super().ready()
        from approvals.subjects import register
        from factory.identity.pools import register_pools
        from runs.selectors.clocks import frozen_for
        from runs.selectors.waiting import pool_names
        from runs.subjects.action import StepAction
        from runs.subjects.spend import RunSpend
        from usage.selectors.expiry import stands_still_with_runs

        stands_still_with_runs(frozen_for)
        register_pools(pool_names)
        register(StepAction())
        register(RunSpend())
