"""Hints from the scheduler. What is due, the reconciler asks the database."""

from celery import shared_task

from approvals.reconcilers import ApprovalExpiryReconciler


@shared_task(name="approvals.expire_approvals")
def expire_approvals() -> None:
    """One round of expiries."""
    ApprovalExpiryReconciler().run_once()
