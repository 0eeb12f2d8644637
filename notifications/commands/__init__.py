"""Everything that changes something about notifications."""

from notifications.commands.choosing import (
    add_channel,
    change_channel,
    change_preference,
    remove_channel,
    send_test,
)
from notifications.commands.notify import (
    notify_of_approval,
    notify_of_ending_budget,
    notify_of_sign_in,
    remind_of_expiry,
)
from notifications.commands.sending import ClaimedMessage, claim, retry_notification, settle

__all__ = [
    "ClaimedMessage",
    "add_channel",
    "change_channel",
    "change_preference",
    "claim",
    "notify_of_approval",
    "notify_of_ending_budget",
    "notify_of_sign_in",
    "remind_of_expiry",
    "remove_channel",
    "retry_notification",
    "send_test",
    "settle",
]
