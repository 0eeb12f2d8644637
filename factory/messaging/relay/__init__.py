"""The relay: from the outbox to in-process handlers and to Redis Streams, at least once and in order."""

from factory.messaging.relay.handlers import Handler, Received, handlers

__all__ = ["Handler", "Received", "handlers"]
