"""Jobs: a hint that there is something to send; the rows say what."""

from celery import shared_task

from factory.kernel.absence import put_off
from factory.kernel.reconciling import reconcilers
from notifications.reconcilers import NotificationSender
from notifications.states import SEND


@shared_task(name=SEND)
def send(*, tenant_id: str) -> None:
    """Send what is due in a tenant; the schedule does it too if this is lost."""
    with put_off(SEND, tenant=tenant_id):
        reconcilers()[NotificationSender.name].run_once(tenant_id)
