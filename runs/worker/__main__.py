"""`python -m runs.worker`: the reference worker as a process."""

import argparse
import base64
import binascii
import json
import logging
import os
import re
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from runs.worker.client import WorkerClient
from runs.worker.errors import ApiRefused
from runs.worker.runtime import WorkerOptions, WorkerRuntime

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line; each option has a setting in the environment."""
    known = os.environ
    parser = argparse.ArgumentParser(prog="python -m runs.worker", description=__doc__)
    parser.add_argument("--url", default=known.get("FACTORY_WORKER_URL"), help="http://host:7402/factory")
    parser.add_argument("--token-file", default=known.get("FACTORY_WORKER_TOKEN_FILE"), type=Path)
    parser.add_argument("--name", default=known.get("FACTORY_WORKER_NAME") or socket.gethostname().lower())
    parser.add_argument("--pool", default=known.get("FACTORY_WORKER_POOL"))
    parser.add_argument("--concurrency", type=int, default=int(known.get("FACTORY_WORKER_CONCURRENCY", 2)))
    parser.add_argument("--capability", action="append", help="agentId/skillId, * is a wildcard")
    parser.add_argument("--cache", type=Path, default=known.get("FACTORY_WORKER_CACHE"))
    parser.add_argument("--drain-seconds", type=float, default=20.0)
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args(argv)
    _checked(parser, given)
    return given


def _checked(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    if not given.url or not given.url.startswith(("http://", "https://")):
        parser.error("--url must be the worker surface, like http://127.0.0.1:7402/factory")
    if not given.token_file or not given.token_file.is_file():
        parser.error("--token-file must name a file that holds a worker's token")
    if not NAME.fullmatch(given.name):
        parser.error("--name may hold small letters, digits, dot, dash and underscore, at most 64")
    if not 1 <= given.concurrency <= 64:
        parser.error("--concurrency must be between 1 and 64")
    pool = _claims(given.token_file.read_text()).get("pool")
    if given.pool and pool and pool != given.pool:
        parser.error(f"the token is for pool {pool!r}, not {given.pool!r}")


def _claims(token: str) -> dict[str, Any]:
    """The claims, unverified: to tell a wrong file early. Whether it is good, the control plane says."""
    parts = token.strip().split(".")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
    except (IndexError, ValueError, binascii.Error):
        return {}
    return claims if isinstance(claims, dict) else {}


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; then finish what is in hand, or hand it back."""
    given = arguments(argv)
    logging.basicConfig(
        level=logging.DEBUG if given.verbose else logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.getLogger("httpcore").setLevel(logging.WARNING)
    client = WorkerClient(given.url, lambda: given.token_file.read_text().strip(), given.name)
    cache = given.cache or Path.home() / ".cache" / "factory-worker"
    named = [item for item in os.environ.get("FACTORY_WORKER_CAPABILITIES", "*/*").split(",") if item]
    options = WorkerOptions(
        cache=Path(cache),
        capabilities=given.capability or named,
        max_concurrency=given.concurrency,
        drain_seconds=given.drain_seconds,
    )
    worker = WorkerRuntime(client, options)
    signalled = 0

    def stop(signum: int, frame: FrameType | None) -> None:
        nonlocal signalled
        signalled += 1
        if signalled > 1:  # asked twice: at once; open leases are settled by the control plane
            os._exit(130)
        worker.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    try:
        return worker.run()
    except ApiRefused as fault:
        logging.getLogger("factory.worker").error("the control plane does not take this worker: %s", fault)
        return 1


if __name__ == "__main__":
    sys.exit(main())
