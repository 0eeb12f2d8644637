"""Requests for a human decision, and the policy that asks for them."""

from factory.apps import register
from factory.kernel.app_config import BaseAppConfig


class ApprovalsConfig(BaseAppConfig):
    name = "approvals"
    default = True

    def ready(self) -> None:
        from approvals import (
            events,
            handlers,
            invariants,
            permissions,
            reconcilers,
            restore,
            states,
            subjects,
        )
        from approvals.operations.waiver_subject import WaiverSubject

        register(states, events, permissions, handlers, reconcilers, invariants)
        restore.register()
        subjects.register(WaiverSubject())
