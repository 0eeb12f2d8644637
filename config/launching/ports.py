"""Ports for people and workers: the usual one, or the next that is free."""

import socket

from factory.embedded.system import EmbeddedError

TRIES = 50


def choose(wanted: int) -> int:
    """`wanted` itself if nobody listens there, else the next free port."""
    for port in range(wanted, wanted + TRIES):
        if is_free(port):
            return port
    raise EmbeddedError(
        f"The ports {wanted} to {wanted + TRIES - 1} are all in use. Name others: manage.py up --port … "
        "--stream-port …"
    )


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the servers themselves do it: a port that only lingers after its last connection is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
