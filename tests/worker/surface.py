"""A small worker surface over real HTTP, for what a client does when answers are late, lost or no."""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from registry.manifest.closure import close
from runs.worker.wire import utc_text

Answer = tuple[int, Any]


class Surface:
    """Says what it was told to say; keeps every call that it got."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, Any, dict[str, str]]] = []
        self.ttl = 120.0
        self.offers: list[dict[str, Any]] = []
        self.faults: dict[str, list[Callable[[], Answer | None]]] = defaultdict(list)
        self.lease: Callable[[], Answer] = self.granted
        self.approval: Answer = (200, {"effect": "allow"})
        self.release: dict[str, Any] = {}
        self.files: dict[str, bytes] = {}
        self.changed = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/factory"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    # what a test prepares

    def publish(self, files: dict[str, str], *, skill: str = "work", entry: str = "skills/work.py") -> None:
        """A release of these files, hashed by the registry's own closure."""
        definition = {
            "asset": "probe",
            "version": "1.0.0",
            "agents": [],
            "skills": [{"skillId": skill, "entry": entry, "files": list(files), "sideEffectClass": "read"}],
            "workflows": [],
            "modelProfiles": [],
            "evaluation": {"suite": "none", "files": []},
        }
        manifest = json.dumps(definition).encode()
        contents = {path: text.encode() for path, text in files.items()}
        closure = close(
            commit="c" * 40, definition=definition, manifest=manifest, contents=contents, dependencies={}
        )
        self.files = {digest.removeprefix("sha256:"): content for digest, content in closure.files.items()}
        self.release = {
            "releaseId": "r1",
            "hash": closure.hash,
            "asset": "probe",
            "version": "1.0.0",
            "sourceCommit": "c" * 40,
            "entries": [entry.to_json() for entry in closure.entries],
        }

    def offer(self, **more: Any) -> str:
        """Lay out an assignment; answers its attempt."""
        attempt = str(uuid4())
        self.offers.append(
            {
                "runId": str(uuid4()),
                "stepId": str(uuid4()),
                "attemptId": attempt,
                "number": 1,
                "leaseId": str(uuid4()),
                "fencingToken": 7,
                "expiresAt": utc_text(time.time() + self.ttl),
                "agentId": "prober",
                "skillId": "work",
                "input": {"run": {"word": "tea"}, "predecessors": {"before": {"n": 1}}},
                "snapshot": {"snapshotId": "s1", "policyRevision": "r1", "environmentId": None},
                "checkpoint": None,
                "decision": None,
                "release": {
                    "id": "r1",
                    "hash": self.release.get("hash", ""),
                    "manifestUrl": "/factory/releases/r1/manifest",
                },
                **more,
            }
        )
        return attempt

    def granted(self, *, cancel: bool = False, stop: str | None = None) -> Answer:
        return 200, {
            "leaseId": "l",
            "fencingToken": 7,
            "expiresAt": utc_text(time.time() + self.ttl),
            "cancelRequested": cancel,
            "stop": "cancelled" if cancel else stop,
        }

    # what a test looks at

    def got(self, what: str) -> list[Any]:
        """The bodies of all calls whose path ends so."""
        return [body for _, path, body, _ in list(self.calls) if path.endswith(what)]

    def wait_for(self, what: str, number: int = 1, seconds: float = 10.0) -> list[Any]:
        with self.changed:
            held = self.changed.wait_for(lambda: len(self.got(what)) >= number, seconds)
        assert held, f"{what} was called {len(self.got(what))} times, not {number}"
        return self.got(what)

    # the conversation

    def answer(self, method: str, path: str, body: Any) -> Answer:
        last = path.rsplit("/", 1)[-1]
        if self.faults[last]:
            fault = self.faults[last].pop(0)()
            if fault is not None:
                return fault
        if last == "lease":
            return self.lease()
        if last == "approvals":
            return self.approval
        if last == "authorizations":
            return 200, {"authorizationId": "a1", "authorizedAt": utc_text()}
        if last == "poll":
            return self._poll()
        if last == "manifest":
            return 200, self.release
        if method == "PUT":
            return 200, {"instanceId": "i-1"}
        return 200, {}

    def _poll(self) -> Answer:
        offers, self.offers = self.offers, []
        if not offers:
            time.sleep(0.05)
        return 200, {"assignments": offers}


def problem(status: int, slug: str) -> Answer:
    """A refusal."""
    return status, {"type": f"/factory/problems/{slug}", "title": slug, "status": status, "detail": "no"}


def _handler(surface: Surface) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            raw = self.rfile.read(size)
            path = urlsplit(self.path).path
            with surface.changed:
                body = json.loads(raw) if raw else None
                surface.calls.append((self.command, path, body, dict(self.headers.items())))
                surface.changed.notify_all()
            if "/files/" in path:
                self._send(200, surface.files.get(path.rsplit("/", 1)[-1], b"?"), "application/octet-stream")
                return
            status, answer = surface.answer(self.command, path, body)
            if status == 0:  # the line goes dead after the work was done
                self.close_connection = True
                self.connection.close()
                return
            if isinstance(answer, bytes):  # somebody in between answers in the control plane's place
                self._send(status, answer, "text/html")
                return
            kind = "application/problem+json" if status >= 400 else "application/json"
            self._send(status, json.dumps(answer).encode(), kind)

        def _send(self, status: int, content: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            if status == 503:
                self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = _serve

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
