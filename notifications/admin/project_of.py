"""To which project what the evidence says of notices and messages belongs."""

from factory.console.project_of import belongs
from notifications.models import Notice, Notification

belongs(Notice)
belongs(Notification)
