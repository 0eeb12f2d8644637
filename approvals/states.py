"""The words of approvals: which there are, and which of them end a request."""

from django.db.models import TextChoices

from approvals.events import ApprovalDecided, ApprovalRequested, PolicyRevisionPublished
from factory.lifecycle import Edge, Lifecycle


class ApprovalState(TextChoices):
    PENDING = "Pending"
    APPROVED = "Approved"
    REJECTED = "Rejected"
    EXPIRED = "Expired"
    STALE = "Stale"
    CANCELLED = "Cancelled"


ACTIVE = frozenset({ApprovalState.PENDING})
TERMINAL = frozenset(ApprovalState) - ACTIVE


class Decision(TextChoices):
    """What an approver may answer."""

    APPROVE = "approve"
    REJECT = "reject"
    REQUEST_CHANGES = "request_changes"


class SubjectType(TextChoices):
    """What a request is about: an action of a run's step, or the publication of a release."""

    RUN = "run"
    PUBLICATION = "publication"


class ActionClass(TextChoices):
    """How far an action reaches, weakest first."""

    READ = "read"
    SANDBOX = "sandbox"
    SHARED_WRITE = "shared-write"
    EXTERNAL = "external"
    PRODUCTION = "production"
    PUBLICATION = "publication"

    @property
    def rank(self) -> int:
        """Its place in the order of reach."""
        return list(ActionClass).index(self)

    @property
    def gated(self) -> bool:
        """The platform floor: from shared-write up, a person decides each time."""
        return self.rank >= ActionClass.SHARED_WRITE.rank


GATED = frozenset(c for c in ActionClass if c.gated)


class Effect(TextChoices):
    """What the policy answers, weakest first."""

    ALLOW = "allow"
    REQUIRE_APPROVAL = "require-approval"
    DENY = "deny"

    @property
    def strictness(self) -> int:
        """Its place in the order of strictness."""
        return list(Effect).index(self)


_DECIDED = (ApprovalDecided.topic,)

APPROVAL = Lifecycle(
    "approval",
    edges=(
        Edge("", "Pending", causes=("ApprovalRequested",), events=(ApprovalRequested.topic,)),
        Edge("Pending", "Approved", causes=("Approve",), events=_DECIDED),
        Edge("Pending", "Rejected", causes=("Reject",), events=_DECIDED),
        Edge("Pending", "Expired", causes=("ExpiresAtPassed",), events=_DECIDED),
        Edge("Pending", "Stale", causes=("ChangesRequested", "ProposalChanged"), events=_DECIDED),
        Edge("Pending", "Cancelled", causes=("RunCancelled", "RunEnded", "SubjectWithdrawn"), events=_DECIDED),
        Edge("Approved", "Approved", causes=("ValidityStarted", "Authorized")),
    ),
)

POLICY = Lifecycle(
    "policy-revision",
    edges=(Edge("", "Published", causes=("Published",), events=(PolicyRevisionPublished.topic,)),),
)
