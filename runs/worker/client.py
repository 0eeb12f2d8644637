"""A typed client of the worker surface.

Each call is idempotent, so a lost answer is asked for again with the same body: on 429, 5xx, a broken
connection, an answer that is not the control plane's (a proxy's page), a run that is frozen and a token that
cannot be read just now it waits (exponential, jittered, `Retry-After` honoured) until `patience` is used up.
"""

import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import httpx

from runs.worker.errors import (
    ApiConflict,
    ApiGone,
    ApiLeaseExpired,
    Frozen,
    LeaseLost,
    StaleToken,
    Unreachable,
    refusal,
)
from runs.worker.wire import ApprovalReply, Assignment, AttemptReport, DecisionReply, LeaseReply, digest

log = logging.getLogger("factory.worker")

T = TypeVar("T")
RETRIED = {429, 500, 502, 503, 504}
INSTANCE_HEADER = "Factory-Worker-Instance"
LONGEST_PAUSE = 10.0


class WorkerClient:
    """One worker's side of the conversation. Safe to use from several threads."""

    def __init__(
        self,
        base_url: str,
        token: Callable[[], str],
        name: str,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], object] = time.sleep,
        patience: float = 60.0,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.name = name
        self.instance_id = ""
        self.patience = patience
        self._token = token
        self._sleep = sleep
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=16)
        self._http = httpx.Client(transport=transport, timeout=httpx.Timeout(15.0), limits=limits)

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    # the worker itself

    def register(self, capabilities: Sequence[str], max_concurrency: int, version: str) -> str:
        """Register or update; the answered instance id goes with every later call."""
        body = {"capabilities": list(capabilities), "maxConcurrency": max_concurrency, "version": version}
        self.instance_id = self._call("PUT", f"/workers/{self.name}", body, read=_text("instanceId"))
        return self.instance_id

    def drain(self) -> None:
        """No new offers from now on."""
        self._call("POST", f"/workers/{self.name}/drain", {}, read=_object, patience=5.0)

    def poll(self, wait: int = 25) -> list[Assignment]:
        """Ask for work, waiting up to `wait` seconds. One attempt: the caller polls again anyway."""
        path = f"/workers/{self.name}/poll?wait={wait}"
        return self._call("POST", path, {}, read=_assignments, patience=0.0, timeout=wait + 15.0)

    # the holder of a lease

    def acquire(self, work: Assignment, *, patience: float | None = None) -> LeaseReply:
        """Acquire the lease, or renew it. Raises LeaseLost when it is no longer this worker's."""
        try:
            path = f"/attempts/{work.attempt_id}/lease"
            return self._call("POST", path, work.fence, read=_grant, patience=patience)
        except LeaseLost:
            raise
        except ApiConflict as fault:
            raise StaleToken(fault.status, fault.slug, fault.detail, fault.body) from fault
        except ApiGone as fault:
            raise ApiLeaseExpired(fault.status, fault.slug, fault.detail, fault.body) from fault

    def send_receipts(
        self, work: Assignment, receipts: Sequence[Mapping[str, Any]], *, patience: float | None = None
    ) -> None:
        """Report evidence while the work goes on. What is refused of it is named in the log, and is not sent
        again: the control plane has kept it for a person."""
        body = {**work.fence, "receipts": list(receipts)}
        path = f"/attempts/{work.attempt_id}/receipts"
        answer = self._call("POST", path, body, read=_object, patience=patience)
        _warn(work, [one for one in answer.get("receipts") or [] if one.get("result") == "refused"])

    def request_approval(
        self,
        work: Assignment,
        *,
        action_class: str,
        proposal: Any,
        summary: str,
        environment_id: str | None = None,
        checkpoint: Any = None,
        park: bool = False,
    ) -> ApprovalReply:
        """Ask a person to decide on exactly this proposal; with `park`, hand back the lease while they do."""
        body = {
            **work.fence,
            "releaseId": work.release.id,
            "snapshotId": work.snapshot.get("snapshotId"),
            "policyRevision": work.snapshot.get("policyRevision"),
            "actionClass": action_class,
            "environmentId": environment_id,
            "proposal": proposal,
            "proposalHash": digest(proposal),
            "summary": summary,
        }
        if park:
            body["park"] = {"checkpoint": checkpoint}
        return self._call("POST", f"/attempts/{work.attempt_id}/approvals", body, read=_approval)

    def authorize(self, work: Assignment, *, approval_id: str, proposal_hash: str) -> str:
        """Take the authorization: from here on an effect may have happened."""
        body = {**work.fence, "approvalId": approval_id, "proposalHash": proposal_hash}
        return self._call(
            "POST", f"/attempts/{work.attempt_id}/authorizations", body, read=_text("authorizationId")
        )

    def report(self, work: Assignment, report: AttemptReport, *, patience: float = 600.0) -> None:
        """Say how it ended. The same body each time, so that a lost answer costs nothing. It counts although
        some of its receipts or artifacts are refused: these are named in the log."""
        outcome = report.body()
        body = {**work.fence, **outcome, "outcomeHash": digest(outcome), "receipts": report.receipts}
        path = f"/attempts/{work.attempt_id}/outcome"
        answer = self._call("POST", path, body, read=_object, patience=patience)
        for refused in ("refusedReceipts", "refusedArtifacts"):
            _warn(work, answer.get(refused) or [])

    # the release

    def manifest(self, url: str) -> dict[str, Any]:
        """LoadRelease."""
        return self._call("GET", url, read=_object)

    def download(self, url: str) -> bytes:
        """The bytes of a released file; the caller checks them against their hash."""
        return self._call("GET", url, read=lambda answer: answer.content)

    # how

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        read: Callable[[httpx.Response], T],
        patience: float | None = None,
        timeout: float | None = None,
    ) -> T:
        """Return what `read` makes of the answer; one that it cannot read is asked for again."""
        until = time.monotonic() + (self.patience if patience is None else patience)
        for attempt in range(1_000_000):
            pause, fault = self._try(method, path, body, timeout)
            if isinstance(fault, httpx.Response):
                try:
                    return read(fault)
                except (ValueError, KeyError, TypeError, AttributeError) as strange:
                    fault = f"an answer that is not the control plane's ({type(strange).__name__})"
            if pause is None:
                pause = random.uniform(0.5, 1.0) * min(LONGEST_PAUSE, 0.2 * 2.0 ** min(attempt, 10))
            if time.monotonic() + pause > until:
                if isinstance(fault, Frozen):
                    raise fault
                raise Unreachable(f"{method} {path}: {fault}")
            log.debug("%s %s: %s; again in %.1f s", method, path, fault, pause)
            self._sleep(pause)
        raise AssertionError("unreachable")

    def _try(
        self, method: str, path: str, body: Mapping[str, Any] | None, timeout: float | None
    ) -> tuple[float | None, httpx.Response | Frozen | str]:
        """The response when it is one to act on; else the pause asked for, and why."""
        url = self._url(path)
        extra: dict[str, Any] = {} if timeout is None else {"timeout": timeout}
        try:
            headers = self._headers(url)
        except (OSError, ValueError) as fault:  # it is replaced while we look
            return None, f"the token cannot be read ({type(fault).__name__})"
        try:
            answer = self._http.request(
                method, url, json=body if method != "GET" else None, headers=headers, **extra
            )
        except httpx.RequestError as fault:
            return None, f"{type(fault).__name__} {fault}".strip()
        if answer.status_code in RETRIED:
            return _retry_after(answer), f"{answer.status_code}"
        if answer.is_success:
            return None, answer
        problem = _problem(answer)
        if problem is None:  # a proxy's page: the control plane has said nothing
            return None, f"{answer.status_code} of somebody in between"
        refused = refusal(answer.status_code, problem)
        if isinstance(refused, Frozen):
            return None, refused
        raise refused

    def _url(self, path: str) -> str:
        if path.startswith(("http://", "https://")):
            return path
        if path.startswith(("/workers/", "/attempts/")):
            return self.base_url + path
        return urljoin(self.base_url + "/", path)

    def _headers(self, url: str) -> dict[str, str]:
        """The credential goes to the control plane only, never where a manifest URL may point."""
        if _origin(url) != _origin(self.base_url):
            return {}
        token = self._token()
        if not token:
            raise ValueError("The token is empty.")
        headers = {"Authorization": f"Bearer {token}"}
        if self.instance_id:
            headers[INSTANCE_HEADER] = self.instance_id
        return headers


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _grant(answer: httpx.Response) -> LeaseReply:
    body = answer.json()
    expires_at = datetime.fromisoformat(str(body["expiresAt"]).replace("Z", "+00:00"))
    date = answer.headers.get("Date")
    server_now = parsedate_to_datetime(date).timestamp() if date else time.time()
    remaining = max(0.0, expires_at.timestamp() - server_now)
    timed_out = body.get("stop") == "timed-out"
    return LeaseReply(expires_at, remaining, bool(body.get("cancelRequested")), timed_out)


def _retry_after(answer: httpx.Response) -> float | None:
    seconds = answer.headers.get("Retry-After", "")
    return min(float(seconds), 60.0) if seconds.isdigit() else None


def _warn(work: Assignment, refused: Sequence[Mapping[str, Any]]) -> None:
    for one in refused:
        named = one.get("receiptId") or one.get("uri") or one.get("pointer")
        log.warning(
            "attempt %s: %s was refused: %s: %s", work.attempt_id, named, one.get("code"), one.get("detail")
        )


def _problem(answer: httpx.Response) -> dict[str, Any] | None:
    """Return the refusal as the control plane words it; None if it is not its own."""
    try:
        return _object(answer)
    except ValueError:
        return None


def _object(answer: httpx.Response) -> dict[str, Any]:
    body = answer.json()
    if not isinstance(body, dict):
        raise ValueError("not an object")
    return body


def _text(name: str) -> Callable[[httpx.Response], str]:
    return lambda answer: str(_object(answer)[name])


def _assignments(answer: httpx.Response) -> list[Assignment]:
    """Return what is offered. An offer that cannot be read costs itself alone: it is offered again."""
    assignments = []
    for item in answer.json()["assignments"]:
        try:
            assignments.append(Assignment.read(item))
        except (ValueError, KeyError, TypeError, AttributeError):
            log.exception("an offer cannot be read, and is left")
    return assignments


def _approval(answer: httpx.Response) -> ApprovalReply:
    body = _object(answer)
    decision = body.get("decision")
    return ApprovalReply(
        effect=str(body["effect"]),
        approval_id=body.get("approvalId"),
        decision=DecisionReply.read(decision) if decision else None,
    )
