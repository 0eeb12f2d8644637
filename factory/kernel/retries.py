"""When what leaves the control plane is tried again: webhooks and notifications alike."""

from typing import Final

DELAYS: Final = (5, 30, 120, 600, 1800, 3600, 7200, 14400, 21600, 28800)
"""Seconds before each further try: together about a day."""


def delay_after(tries: int) -> int | None:
    """Seconds until the next try after `tries` of them; None after the last: it is set aside for a person."""
    return DELAYS[tries - 1] if tries <= len(DELAYS) else None
