"""The worker kit."""
