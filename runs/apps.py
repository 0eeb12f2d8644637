"""Run Control: runs, steps, attempts and leases."""

from factory.apps import register
from factory.kernel.app_config import BaseAppConfig


class RunsConfig(BaseAppConfig):
    name = "runs"
    default = True

    def ready(self) -> None:
        from approvals.subjects import register as register_subject
        from factory.identity.pools import register_pools
        from factory.kernel.impact import register_impact
        from factory.kernel.telemetry import meters
        from runs import events, handlers, invariants, permissions, reconcilers, restore, states
        from runs.selectors import active, impact
        from runs.selectors.clocks import frozen_for
        from runs.selectors.waiting import pool_names
        from runs.subjects.action import StepAction
        from runs.subjects.spend import RunSpend
        from usage.selectors.expiry import stands_still_with_runs

        register(states, events, permissions, handlers, reconcilers, invariants)
        restore.register()
        register_subject(StepAction())
        register_subject(RunSpend())
        stands_still_with_runs(frozen_for)
        register_pools(pool_names)
        register_impact("project", impact.of_project)
        register_impact("release", impact.of_release)
        meters.count_active(active.active_runs)
