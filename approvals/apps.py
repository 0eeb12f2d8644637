"""Requests for a human decision, and the policy that asks for them."""

from factory.apps import BaseAppConfig


class ApprovalsConfig(BaseAppConfig):
    name = "approvals"
    default = True

    def ready(self) -> None:
        super().ready()
        from approvals.operations.waiver_subject import WaiverSubject
        from approvals.subjects import register

        register(WaiverSubject())
