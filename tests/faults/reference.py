"""What a run of one step should be after each act, in plain Python: the rules of the house, said again.

It knows no database, no lock and no event. It is written from the house's words and not from its code, so
that the two can disagree.
"""

from dataclasses import dataclass, field

MOST_TRIES = 3


@dataclass
class Request:
    """A question to a person about one proposal."""

    proposal: int
    state: str = "Pending"
    sent_back: bool = False
    used_by: tuple[int, int] | None = None
    """The attempt and the lease that took the authorization."""

    @property
    def unused(self) -> bool:
        return self.state == "Approved" and self.used_by is None


@dataclass
class Try:
    """An attempt."""

    number: int
    state: str = "Open"
    held: bool = False
    due: bool = False
    request: int | None = None
    authorized: bool = False


@dataclass
class RunModel:
    """A run whose workflow is one step, gated or not."""

    gated: bool
    state: str = "Accepted"
    step: str = "Pending"
    attention: str = ""
    lease: str = ""
    leases: int = 0
    tries: list[Try] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    @property
    def working(self) -> bool:
        return self.state in ("Running", "WaitingForApproval")

    @property
    def over(self) -> bool:
        return self.state in ("Completed", "Failed", "Cancelled")

    @property
    def last(self) -> Try:
        return self.tries[-1]

    @property
    def pending(self) -> list[Request]:
        return [one for one in self.requests if one.state == "Pending"]

    def shown(self) -> tuple[str, str, str, list[str], str, list[str]]:
        """What can be compared with the rows."""
        return (
            self.state,
            self.step,
            self.attention,
            [one.state for one in self.tries],
            self.lease,
            [one.state for one in self.requests],
        )

    # the dispatcher

    def offer(self) -> bool:
        """A worker with free slots polls: whether this run has something for it."""
        if self.lease == "Offered":
            return True
        if self.state not in ("Accepted", "Running"):
            return False
        if self.step == "Pending":
            self.tries.append(Try(len(self.tries) + 1))
            self.step, self.state = "Dispatched", "Running"
        elif self.tries and self.last.state == "Parked" and self.last.due:
            self.last.state, self.last.due = "Open", False
        else:
            return False
        self.lease, self.leases = "Offered", self.leases + 1
        return True

    def acquire(self) -> None:
        if self.lease == "Offered":
            self.lease, self.last.held, self.step = "Held", True, "Running"

    def lapse(self) -> None:
        """The lease and its grace are over, and the reconciler has come."""
        one, was, self.lease = self.last, self.lease, ""
        if was == "Offered" and one.held:
            one.state, one.due = "Parked", True
        elif was == "Offered":
            one.state, self.step = "TimedOut", "Pending"
        elif self.working and self._asked(one) and not one.authorized:
            one.state, one.due = "Parked", self.requests[one.request or 0].state == "Approved"
        elif self.state == "Cancelling" or (self.gated and one.authorized):
            self._settle("Uncertain")
        else:
            self._settle("TimedOut")

    def _asked(self, one: Try) -> bool:
        if one.request is None:
            return False
        asked = self.requests[one.request]
        return asked.state == "Pending" or asked.unused

    # the holder

    def ask(self, proposal: int, park: bool) -> None:
        if not self.working:
            return
        found = self._standing(proposal)
        if found is None:
            for older in self.pending:
                older.state = "Stale"
            self.requests.append(Request(proposal))
            found = len(self.requests) - 1
        self.last.request = found
        if self.requests[found].state == "Pending":
            self.state = "WaitingForApproval"
            if park:
                self.lease, self.last.state, self.last.due = "", "Parked", False

    def _standing(self, proposal: int) -> int | None:
        for index in reversed(range(len(self.requests))):
            one = self.requests[index]
            if one.proposal != proposal:
                continue
            mine = one.used_by is not None and one.used_by[0] == self.last.number
            if one.state == "Pending" or one.unused or one.sent_back or mine:
                return index
        return None

    def may_authorize(self) -> bool:
        """Whether the holder gets the authorization of what it last asked for."""
        one = self.last
        if not self.working or one.request is None or self.requests[one.request].state != "Approved":
            return False
        return self.requests[one.request].used_by in (None, (one.number, self.leases))

    def authorize(self) -> None:
        if self.may_authorize():
            self.requests[self.last.request or 0].used_by = (self.last.number, self.leases)
            self.last.authorized = True

    def report(self, outcome: str, failure_class: str | None) -> None:
        if failure_class == "transient" and self.gated and self.last.authorized:
            outcome, failure_class = "Uncertain", "uncertain"
        self.lease = ""
        self._settle(outcome, failure_class or "")

    def _settle(self, outcome: str, failure_class: str = "transient") -> None:
        self.last.state = outcome
        if not self.working:
            self._close_late(outcome)
        elif outcome == "Succeeded":
            self._succeed()
        elif outcome == "Uncertain":
            self.attention = "uncertain"
        elif outcome == "TimedOut" or failure_class == "transient":
            if sum(one.held for one in self.tries) < MOST_TRIES:
                self.step = "Pending"
            else:
                self._fail("Failed")
        else:
            self._fail("Cancelled" if outcome == "Cancelled" else "Failed")

    def _close_late(self, outcome: str) -> None:
        """The run does not go on; what was reported is kept."""
        if self.step == "Running":
            self.step = "Succeeded" if outcome == "Succeeded" else "Cancelled"
            if outcome == "Uncertain" and self.gated:
                self.attention = "uncertain"
        if self.state == "Cancelling":
            self.state = "Cancelled"

    def _succeed(self) -> None:
        for one in self.pending:
            one.state = "Cancelled"
        self.step, self.state, self.attention = "Succeeded", "Completed", ""

    def _fail(self, step: str) -> None:
        self.step, self.attention = step, ""
        self._stop("Failed")

    def _stop(self, state: str) -> None:
        """Whatever nobody holds ends with the run."""
        self.state = state
        for one in self.pending:
            one.state = "Cancelled"
        if self.lease == "Held":
            return
        if self.tries and self.last.state in ("Open", "Parked"):
            self.last.state = "Uncertain" if self.last.authorized else "Cancelled"
            self.attention = "uncertain" if self.last.authorized else self.attention
            self.last.due = False
        self.lease = ""
        if self.step in ("Pending", "Dispatched", "Running"):
            self.step = "Cancelled"

    # people

    def decide(self, decision: str) -> None:
        [asked] = self.pending
        words = {"approve": "Approved", "reject": "Rejected", "request_changes": "Stale"}
        asked.state, asked.sent_back = words[decision], decision == "request_changes"
        if decision == "reject":
            self._stop("Failed")
            return
        if self.tries and self.last.state == "Parked":
            self.last.due = True
        self.state = "Running"

    def cancel(self) -> None:
        if self.over or self.state == "Cancelling":
            return
        at_work = self.lease == "Held"
        self._stop("Cancelling" if at_work else "Cancelled")

    def resolve(self, resolution: str) -> None:
        self.attention = ""
        if not self.working:
            return
        if resolution == "effect-happened":
            self._succeed()
        elif resolution == "effect-did-not-happen":
            self.step = "Pending"
        else:
            self._fail("Failed")
