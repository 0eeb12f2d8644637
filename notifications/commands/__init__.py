"""Everything that changes something about notifications."""

from notifications.commands.choosing import (
    add_channel,
    change_channel,
    change_preference,
    remove_channel,
    send_test,
)
from notifications.commands.sending import ClaimedMessage, claim, retry_notification, settle
from notifications.commands.telling import (
    remind_of_expiry,
    tell_of_approval,
    tell_of_ending_budget,
    tell_of_sign_in,
)

__all__ = [
    "ClaimedMessage",
    "add_channel",
    "change_channel",
    "change_preference",
    "claim",
    "remind_of_expiry",
    "remove_channel",
    "retry_notification",
    "send_test",
    "settle",
    "tell_of_approval",
    "tell_of_ending_budget",
    "tell_of_sign_in",
]
