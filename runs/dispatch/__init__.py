"""Dispatch is pull: a live worker's poll is what offers work, so nothing is begun that nobody could take."""

from runs.dispatch.polling import drain_from_outside, drain_worker, poll_worker, revoke_from_outside

__all__ = ["drain_from_outside", "drain_worker", "poll_worker", "revoke_from_outside"]
