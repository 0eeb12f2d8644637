"""Messages to people are kept as long as events; what was set aside, so long from then on.

The notice stays, so that nothing is told twice.
"""

from factory.evidence.retention import goes_with_events


def register() -> None:
    """Register what is kept no longer than delivered events."""
    goes_with_events(
        "DELETE FROM notifications_notification "
        "WHERE (sent_at IS NOT NULL OR dropped_at IS NOT NULL OR set_aside_at IS NOT NULL) "
        "AND greatest(created_at, set_aside_at) < clock_timestamp() - make_interval(days => %s)"
    )
