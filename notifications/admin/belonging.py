"""To which project what the evidence says of notices and messages belongs."""

from typing import Any

from django.db.models import QuerySet

from factory.admin.belonging import project_of
from notifications.models import Notice, Notification


@project_of()
def of_a_notice(key: Any) -> QuerySet[Any]:
    return Notice.objects.filter(pk=key).values("project_id")


@project_of()
def of_a_notification(key: Any) -> QuerySet[Any]:
    return Notification.objects.filter(pk=key).values("project_id")
