"""The words of approvals: which there are, and which of them end a request."""

from typing import Final

from django.db.models import TextChoices

from factory.kernel.colours import Colour, ColouredChoices
from factory.kernel.lifecycle import Edge, Lifecycle

REQUESTED: Final = "run-control.approvals.v1.approval-requested"
DECIDED: Final = "run-control.approvals.v1.approval-decided"
BREAK_GLASS: Final = "run-control.approvals.v1.approval-break-glass"
WAIVER_CHANGED: Final = "run-control.waivers.v1.waiver-changed"
POLICY_PUBLISHED: Final = "governance.policies.v1.policy-revision-published"


class ApprovalState(ColouredChoices):
    PENDING = "Pending", Colour.WAIT
    APPROVED = "Approved", Colour.GOOD
    REJECTED = "Rejected", Colour.BAD
    EXPIRED = "Expired", Colour.BAD
    STALE = "Stale", Colour.PLAIN
    CANCELLED = "Cancelled", Colour.PLAIN


ACTIVE: Final = frozenset({ApprovalState.PENDING})
TERMINAL: Final = frozenset(ApprovalState) - ACTIVE


class Decision(TextChoices):
    """List what an approver may answer."""

    APPROVE = "approve"
    REJECT = "reject"
    REQUEST_CHANGES = "request_changes"


class SubjectType(TextChoices):
    """List what a request is about: a run's step, a run's money, a release's publication, or a waiver."""

    RUN = "run"
    SPEND = "spend"
    PUBLICATION = "publication"
    WAIVER = "waiver"


class WaiverState(ColouredChoices):
    """An approval given in advance: asked for, in force, or over."""

    REQUESTED = "Requested", Colour.BUSY
    ACTIVE = "Active", Colour.GOOD
    REFUSED = "Refused", Colour.BAD
    EXPIRED = "Expired", Colour.BAD
    REVOKED = "Revoked", Colour.BAD


class ActionClass(TextChoices):
    """List how far an action reaches, weakest first."""

    READ = "read"
    SANDBOX = "sandbox"
    SHARED_WRITE = "shared-write"
    EXTERNAL = "external"
    PRODUCTION = "production"
    PUBLICATION = "publication"
    SPEND = "spend"

    @property
    def rank(self) -> int:
        """Return its place in the order of reach."""
        return list(ActionClass).index(self)

    @property
    def gated(self) -> bool:
        """Return whether a person decides each time: from shared-write up; on spend past a threshold."""
        return self.rank >= ActionClass.SHARED_WRITE.rank


GATED: Final = frozenset(c for c in ActionClass if c.gated)
WAIVABLE: Final = ActionClass.SHARED_WRITE.value
"""The one class that can be approved in advance, and never one above it."""


class Effect(ColouredChoices):
    """List what the policy answers, weakest first."""

    ALLOW = "allow", Colour.GOOD
    REQUIRE_APPROVAL = "require-approval", Colour.WAIT
    DENY = "deny", Colour.BAD

    @property
    def strictness(self) -> int:
        """Return its place in the order of strictness."""
        return list(Effect).index(self)


class OnExpiry(TextChoices):
    """List what follows when nobody answers in time, strictest first: an end, or the same once more."""

    FAIL = "fail"
    RE_REQUEST = "re-request", "re-request"


class UnknownUsage(TextChoices):
    """List what follows when a run has used something of unknown cost, strictest first."""

    FAIL = "fail"
    ASK = "ask"
    IGNORE = "ignore"


APPROVAL: Final = Lifecycle(
    "approval",
    edges=(
        Edge("", "Pending", causes=("ApprovalRequested", "AskedAgain"), events=(REQUESTED,)),
        Edge("", "Approved", causes=("WaiverApplied",), events=(REQUESTED, DECIDED)),
        Edge("Pending", "Pending", causes=("VoteCast",)),
        Edge("Pending", "Approved", causes=("Approve",), events=(DECIDED,), optional=(BREAK_GLASS,)),
        Edge("Pending", "Rejected", causes=("Reject",), events=(DECIDED,), optional=(BREAK_GLASS,)),
        Edge("Pending", "Expired", causes=("ExpiresAtPassed",), events=(DECIDED,)),
        Edge("Pending", "Stale", causes=("ChangesRequested",), events=(DECIDED,), optional=(BREAK_GLASS,)),
        Edge("Pending", "Stale", causes=("ProposalChanged",), events=(DECIDED,)),
        Edge(
            "Pending",
            "Cancelled",
            causes=("RunCancelled", "RunEnded", "SubjectWithdrawn"),
            events=(DECIDED,),
        ),
        Edge("Approved", "Approved", causes=("ValidityStarted", "ValidityResumed", "Authorized")),
    ),
)

POLICY: Final = Lifecycle(
    "policy-revision",
    edges=(Edge("", "Published", causes=("Published",), events=(POLICY_PUBLISHED,)),),
)

WAIVER_ENDS: Final = ("RevokeRequested", "TemplateRetired", "ReleaseEnded")

WAIVER: Final = Lifecycle(
    "waiver",
    edges=(
        Edge("", "Requested", causes=("WaiverRequested",), events=(WAIVER_CHANGED,)),
        Edge("Requested", "Requested", causes=("AskedAgain",)),
        Edge("Requested", "Active", causes=("ApprovalGranted",), events=(WAIVER_CHANGED,)),
        Edge(
            "Requested",
            "Refused",
            causes=("ApprovalRejected", "ApprovalExpired", "ChangesRequested"),
            events=(WAIVER_CHANGED,),
        ),
        Edge("Requested", "Revoked", causes=WAIVER_ENDS, events=(WAIVER_CHANGED,)),
        Edge("Active", "Revoked", causes=WAIVER_ENDS, events=(WAIVER_CHANGED,)),
        Edge("Active", "Expired", causes=("ExpiresAtPassed",), events=(WAIVER_CHANGED,)),
    ),
)
