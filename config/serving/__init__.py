"""The servers of the product, with their bounds: who sends half a request, or reads half an answer, keeps
nobody else from being answered. Why these servers: docs/adr/0013-requests-arrive-whole.md."""

import argparse
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.core.exceptions import ImproperlyConfigured

LOCAL = "127.0.0.1"
WAITING = 1024
"""Connections that the kernel holds until the process takes them."""


@dataclass(frozen=True)
class ListenAddress:
    """Say where a process listens."""

    host: str
    port: int
    shared: bool


def listen_address(kind: str, port: int, argv: Sequence[str] | None) -> ListenAddress:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog=f"python -m config.serving.{kind}")
    parser.add_argument("--host", default=LOCAL)
    parser.add_argument("--port", type=int, default=port)
    parser.add_argument("--share-port", action="store_true", help="several processes may listen on it")
    read = parser.parse_args(argv)
    return ListenAddress(read.host, read.port, read.share_port)


@contextmanager
def exiting_with_a_sentence() -> Iterator[None]:
    """End the process with the sentence of what is set up wrongly, instead of a traceback."""
    try:
        yield
    except ImproperlyConfigured as fault:
        sys.exit(str(fault))


def listening(where: ListenAddress) -> socket.socket:
    """Return the socket on which requests come in, or end the process with a sentence."""
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    try:
        made = socket.create_server(
            (where.host, where.port), family=family, backlog=WAITING, reuse_port=where.shared
        )
    except OSError as fault:
        sys.exit(f"{where.host}:{where.port} cannot be listened on: {os.strerror(fault.errno or 0)}.")
    made.setblocking(False)
    return made
