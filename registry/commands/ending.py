"""A release is taken out of use."""

from uuid import UUID

from approvals.operations import cancel_pending, end_waivers_of
from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import FieldError
from factory.kernel.reasons import reasoned
from factory.kernel.recording import audit, record
from registry.errors import AliasInUse, InFlightNotOffered, ReleaseNotInState
from registry.events import AssetReleaseDeprecated, AssetReleaseRevoked
from registry.models import Release
from registry.operations import lock_release
from registry.selectors import aliases_of
from registry.selectors.obstacles import DEPRECATED_FROM, REVOKED_FROM, other_of, stops_ending, stops_leading
from registry.states import InFlight, ReleaseState

ReleaseEnded = AssetReleaseDeprecated | AssetReleaseRevoked


@command("DeprecateRelease")
def deprecate_release(ctx: Context, *, release_id: UUID, in_flight: str, reason: str) -> str:
    """Take no new submissions for a release; runs that pinned it still load it. Returns the state.

    What becomes of those runs the in-flight policy says: `drain` lets them finish, `block` fails them and
    `cancel` cancels them, which the app above does on hearing of it; with these two no run is left that could
    rest on a waiver for it, and its waivers end. Guards: Published; no alias names it;
    an in-flight policy that is offered; a reason. Emits: AssetReleaseDeprecated, WaiverChanged. Errors:
    InvalidInput, InFlightNotOffered, ReleaseNotFound, ReleaseNotInState, AliasInUse.
    """
    reason = _check(in_flight, reason)
    release = _locked_in(ctx, release_id, "deprecate", DEPRECATED_FROM)
    named = aliases_of(release.id)
    if named:
        raise AliasInUse(stops_leading(named, other_of(release)), extra={"aliases": named})
    release.deprecate(at=now(), in_flight=in_flight, reason=reason)
    record(ctx, release, "Deprecated", _event(AssetReleaseDeprecated, release))
    if in_flight != InFlight.DRAIN:
        end_waivers_of(ctx, "release_id", release.id, reason=f"The release was deprecated: {reason}")
    audit(ctx, "DeprecateRelease", subject=f"release:{release.id}", reason=reason, stream=release.id)
    return str(release.state)


@command("RevokeRelease")
def revoke_release(ctx: Context, *, release_id: UUID, in_flight: str, reason: str) -> str:
    """Take a release back for good: nothing loads it any more. Returns the state.

    Runs that rest on it, also through another release, finish (`drain`), fail (`block`) or are cancelled
    (`cancel`); whatever they have not loaded yet is refused to them, and every authorization.
    A review that is under way is cancelled, waivers for it end, and aliases that name it resolve no more
    until they move.
    Guards: InReview, Published or Deprecated; an in-flight policy that is offered; a reason.
    Emits: AssetReleaseRevoked, WaiverChanged. Errors: InvalidInput, InFlightNotOffered, ReleaseNotFound,
    ReleaseNotInState.
    """
    reason = _check(in_flight, reason)
    release = _locked_in(ctx, release_id, "revoke", REVOKED_FROM)
    reviewed = release.state == ReleaseState.IN_REVIEW
    release.revoke(at=now(), in_flight=in_flight, reason=reason)
    record(ctx, release, "Revoked", _event(AssetReleaseRevoked, release))
    end_waivers_of(ctx, "release_id", release.id, reason=f"The release was revoked: {reason}")
    if reviewed:
        cancel_pending(ctx, subject=release.id, cause="SubjectWithdrawn")
    audit(ctx, "RevokeRelease", subject=f"release:{release.id}", reason=reason, stream=release.id)
    return str(release.state)


def _event(kind: type[ReleaseEnded], release: Release) -> ReleaseEnded:
    return kind(
        release_id=release.id,
        tenant_id=release.tenant_id,
        asset=release.asset.name,
        version=release.semver,
        in_flight=str(release.in_flight),
        reason=release.ending_reason,
    )


def _check(in_flight: str, reason: str) -> str:
    """Return the reason as it is kept."""
    kept = reasoned(reason, "Taking a release out of use needs a reason.")
    if in_flight not in InFlight.values:
        problem = f"What becomes of runs in flight is one of {', '.join(InFlight.values)}."
        raise InFlightNotOffered(problem, errors=[FieldError("/inFlight", problem)])
    return kept


def _locked_in(ctx: Context, release_id: UUID, word: str, states: frozenset[str]) -> Release:
    release = lock_release(ctx, release_id)
    if why := stops_ending(release, word, states):
        raise ReleaseNotInState(why)
    return release
