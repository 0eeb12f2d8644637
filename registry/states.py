"""States and lifecycles of releases and aliases."""

from typing import Final

from django.db.models import TextChoices

from factory.kernel.colours import Colour, ColouredChoices
from factory.kernel.lifecycle import Edge, Lifecycle
from registry.events import (
    AliasMoved,
    AssetReleaseDeprecated,
    AssetReleasePublished,
    AssetReleaseRevoked,
    AssetReleaseSubmitted,
)


class ReleaseState(ColouredChoices):
    DRAFT = "Draft", Colour.WAIT
    IN_REVIEW = "InReview", Colour.BUSY
    PUBLISHED = "Published", Colour.GOOD
    DEPRECATED = "Deprecated", Colour.PLAIN
    REVOKED = "Revoked", Colour.BAD


LOADABLE = frozenset({ReleaseState.PUBLISHED, ReleaseState.DEPRECATED})
"""What a worker may load: Deprecated ones still load for the runs that pinned them."""
TERMINAL = frozenset({ReleaseState.REVOKED})
HOLDS_VERSION = frozenset(ReleaseState) - {ReleaseState.DRAFT}
"""States in which a release alone owns its version; there may be several Draft candidates for one."""


class AliasState(ColouredChoices):
    SET = "Set", Colour.PLAIN


class PieceState(ColouredChoices):
    """Mark what a release needs and nobody has."""

    MISSING = "Missing", Colour.BAD


class InFlight(TextChoices):
    """Say what happens to runs that already pinned a release which is taken out of use."""

    DRAIN = "drain"
    BLOCK = "block"
    CANCEL = "cancel"


STRICTNESS: Final = (InFlight.DRAIN, InFlight.CANCEL, InFlight.BLOCK)
"""Of two decrees over one run the later in this order stands: to stop at once is the strictest."""


class EvaluationVerdict(ColouredChoices):
    PASS = "pass", Colour.GOOD
    FAIL = "fail", Colour.BAD


RELEASE = Lifecycle(
    "release",
    edges=(
        Edge("", "Draft", causes=("Submitted",), events=(AssetReleaseSubmitted.topic,)),
        Edge("Draft", "Draft", causes=("Resubmitted",), events=(AssetReleaseSubmitted.topic,)),
        Edge("Draft", "Draft", causes=("ClosureResolved", "ClosureFailed", "EvaluationRecorded")),
        Edge("Draft", "InReview", causes=("ReviewRequested",)),
        Edge("InReview", "Published", causes=("ApprovalGranted",), events=(AssetReleasePublished.topic,)),
        Edge("InReview", "Draft", causes=("ApprovalRejected", "ApprovalExpired", "ChangesRequested")),
        Edge("Published", "Deprecated", causes=("Deprecated",), events=(AssetReleaseDeprecated.topic,)),
        Edge("InReview", "Revoked", causes=("Revoked",), events=(AssetReleaseRevoked.topic,)),
        Edge("Published", "Revoked", causes=("Revoked",), events=(AssetReleaseRevoked.topic,)),
        Edge("Deprecated", "Revoked", causes=("Revoked",), events=(AssetReleaseRevoked.topic,)),
    ),
)
ALIAS = Lifecycle(
    "alias",
    edges=(
        Edge("", "Set", causes=("AliasCreated",), events=(AliasMoved.topic,)),
        Edge("Set", "Set", causes=("AliasMoved",), events=(AliasMoved.topic,)),
    ),
)
