"""One lease, from acquiring it to the only outcome."""

import itertools
import logging
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runs.worker.client import WorkerClient
from runs.worker.context import Interrupt, SkillContext
from runs.worker.errors import (
    ApiPolicyDenied,
    ApiRefused,
    Interrupted,
    Invalid,
    LeaseLost,
    Parked,
    SkillFailed,
    ToolFailed,
    Unreachable,
)
from runs.worker.receipts import ReceiptBook, flush
from runs.worker.release import ReleaseStore
from runs.worker.wire import Assignment, AttemptReport, LeaseReply, canonical

log = logging.getLogger("factory.worker")

MOST_OUTPUT = 256 * 1024
FLUSH_EVERY = 5.0
MOST_WITH_OUTCOME = 100
# A renewal is also how a holder hears that its run was cancelled.
LONGEST_RENEWAL = 10.0
AGAIN_IN = 2.0
DRAINING = "the worker is shutting down"
TIMED_OUT = "the time of the step is over"


class AttemptRunner:
    """Runs one assignment in the calling thread, while a thread of its own keeps the lease."""

    def __init__(self, work: Assignment, client: WorkerClient, releases: ReleaseStore) -> None:
        self.work = work
        self.interrupt = Interrupt()
        self._client = client
        self._releases = releases
        self._book = ReceiptBook()
        self._context: SkillContext | None = None
        self._done = threading.Event()

    def run(self) -> None:
        """Acquire, work, report. Whatever happens, at most one outcome is reported."""
        try:
            grant = self._client.acquire(self.work)
        except (LeaseLost, ApiRefused, Unreachable) as fault:
            log.info("attempt %s was not acquired: %s", self.work.attempt_id, fault)
            return
        self._heed(grant)
        keeper = threading.Thread(target=self._keep_lease, args=(grant.remaining,), daemon=True)
        keeper.start()
        try:
            report = self._work()
            if report is not None and not self.interrupt.lease_lost:
                self._report(report)
        finally:
            self._done.set()
            keeper.join(timeout=20.0)
            # What was spent was spent, whoever goes on with the work.
            self._quietly(lambda: flush(self._client, self.work, self._book, patience=5.0))

    def _work(self) -> AttemptReport | None:
        try:
            with tempfile.TemporaryDirectory(prefix="factory-attempt-") as folder:
                return self._call_skill(Path(folder))
        except Parked:
            self._done.set()
            log.info("attempt %s waits for a person", self.work.attempt_id)
            return None
        except LeaseLost as fault:
            log.warning("attempt %s: %s", self.work.attempt_id, fault)
            self.interrupt.set("lease lost", lease_lost=True)
            return None
        except Interrupted:
            return self._interrupted()
        except Exception as fault:
            log.warning("attempt %s failed: %s: %s", self.work.attempt_id, type(fault).__name__, fault)
            return self._failed(fault)

    def _call_skill(self, folder: Path) -> AttemptReport:
        """Call the skill; what its validator refuses is corrected with that feedback, up to the node's limit.

        Not once an authorization was taken: nothing is done twice under it.
        """
        release = self._releases.load(self.work.release)
        skill = release.skill(self.work.skill_id)
        self._context = SkillContext(
            self.work, self._client, self._book, self.interrupt, folder, release.files
        )
        for corrected in itertools.count():
            self._context.check()
            try:
                return _succeeded(skill(self._context))
            except SkillFailed as fault:
                spent = corrected >= self._context.correction_limit or self._context.authorized
                if fault.failure_class != "validation" or spent:
                    raise
                log.info("attempt %s is corrected: %s", self.work.attempt_id, fault.reason)
                self._context.take_feedback(_plain(fault.reason))
        raise AssertionError("count() ends never")

    def _interrupted(self) -> AttemptReport | None:
        if self.interrupt.lease_lost:
            return None
        if self.interrupt.reason in (DRAINING, TIMED_OUT):
            return AttemptReport("Failed", "transient", self.interrupt.reason)
        return AttemptReport("Cancelled", "cancellation", self.interrupt.reason)

    def _failed(self, fault: Exception) -> AttemptReport:
        """After an authorization only the skill itself may say that nothing was done."""
        reason = _plain(f"{type(fault).__name__}: {fault}")
        if isinstance(fault, SkillFailed):
            return AttemptReport("Failed", fault.failure_class, _plain(fault.reason))
        if self._context is not None and self._context.authorized:
            return AttemptReport("Uncertain", "uncertain", reason)
        return AttemptReport("Failed", _class_of(fault), reason)

    def _report(self, report: AttemptReport) -> None:
        report.artifacts.extend(self._context.artifacts if self._context else [])
        report.receipts.extend(self._last_receipts())
        try:
            self._client.report(self.work, report)
            self._book.sent(report.receipts)
            log.info("attempt %s: %s", self.work.attempt_id, report.outcome)
        except Invalid as fault:
            log.warning("attempt %s: the outcome was refused: %s", self.work.attempt_id, fault)
            self._report_refused(fault)
        except (ApiRefused, Unreachable) as fault:
            log.warning("attempt %s: the outcome was not taken: %s", self.work.attempt_id, fault)

    def _last_receipts(self) -> list[dict[str, Any]]:
        """Return as many as travel with the outcome. The rest goes before it, or, where that fails, after it:
        work that is done is reported, whatever becomes of its receipts."""
        try:
            while len(pending := self._book.pending()) > MOST_WITH_OUTCOME:
                self._client.send_receipts(self.work, pending)
                self._book.sent(pending)
        except (ApiRefused, Unreachable) as fault:
            log.warning("attempt %s: receipts wait: %s", self.work.attempt_id, fault)
        return self._book.pending()[:MOST_WITH_OUTCOME]

    def _report_refused(self, fault: Invalid) -> None:
        """Say that the outcome itself is one that the control plane never takes: with no outcome at all, the
        same work would be done again, and refused again."""
        report = self._failed(fault)
        self._quietly(lambda: flush(self._client, self.work, self._book))
        try:
            self._client.report(self.work, report)
            log.info("attempt %s: %s", self.work.attempt_id, report.outcome)
        except (ApiRefused, Unreachable) as again:
            log.warning("attempt %s: the outcome was not taken: %s", self.work.attempt_id, again)

    def _keep_lease(self, remaining: float) -> None:
        """Renew at a third of what remains, sending receipts in between, until the lease is lost or over.

        Nothing else ends it: a task whose lease nobody renews would be given to another worker.
        """
        renew_in = _third(remaining)
        while not self._done.wait(min(renew_in, FLUSH_EVERY)):
            renew_in -= FLUSH_EVERY
            try:
                if renew_in <= 0:
                    renew_in = AGAIN_IN
                    renew_in = self._renew()
                self._quietly(lambda: flush(self._client, self.work, self._book, patience=0.0))
            except LeaseLost as fault:
                log.warning("attempt %s: %s", self.work.attempt_id, fault)
                self.interrupt.set("lease lost", lease_lost=True)
                return
            except (ApiRefused, Unreachable) as fault:
                log.warning("attempt %s: not renewed: %s", self.work.attempt_id, fault)
            except Exception:
                log.exception("attempt %s: a fault while it was renewed", self.work.attempt_id)

    def _renew(self) -> float:
        """Renew, and return when to do so again: without haste where the lease moves no more."""
        grant = self._client.acquire(self.work, patience=5.0)
        self._heed(grant)
        is_at_its_end = grant.timed_out or grant.remaining <= 0
        return AGAIN_IN if is_at_its_end else _third(grant.remaining)

    def _heed(self, grant: LeaseReply) -> None:
        if grant.cancel_requested:
            self.interrupt.set("cancelled")
        elif grant.timed_out:
            self.interrupt.set(TIMED_OUT)

    def _quietly(self, send: Callable[[], None]) -> None:
        """Receipts that could not be sent now are sent later; only a lost lease is news."""
        try:
            send()
        except LeaseLost:
            # A parked or settled lease is released: no news once the skill itself is done with it.
            if not self._done.is_set():
                raise
        except (ApiRefused, Unreachable) as fault:
            log.debug("receipts wait: %s", fault)


def _succeeded(output: Any) -> AttemptReport:
    try:
        size = len(canonical(output))
    except ValueError as fault:
        raise SkillFailed("validation", f"the output is not JSON: {fault}") from fault
    if size > MOST_OUTPUT:
        raise SkillFailed("validation", f"the output has {size} bytes, more than {MOST_OUTPUT}")
    return AttemptReport("Succeeded", output=output)


def _plain(reason: str) -> str:
    """A reason that any database takes and any person can read."""
    return "".join(
        char if char.isprintable() or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in reason[:1000]
    )


def _class_of(fault: Exception) -> str:
    if isinstance(fault, ApiPolicyDenied):
        return "policy-denied"
    if isinstance(fault, ApiRefused):
        return "permanent"
    if isinstance(fault, ToolFailed):
        return "transient"
    programming = (TypeError, KeyError, AttributeError, IndexError, ImportError, SyntaxError, AssertionError)
    return "permanent" if isinstance(fault, programming) else "transient"


def _third(remaining: float) -> float:
    return min(max(remaining / 3.0, 0.05), LONGEST_RENEWAL)
