"""Sending to webhooks until nothing is due."""

import time

from factory.messaging.relay.webhooks import Courier


def deliver_all(tenant_id: str, seconds: float = 10.0) -> int:
    """Send one tenant's events until nothing more is due; for whoever waits for the end."""
    courier, total, end = Courier(tenant_id), 0, time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            came = courier.round()
            total += came
            if not came and not courier.busy:
                break
    finally:
        courier.close()
    return total
