"""The refusals of approvals, each a fact. All that a decision can meet are evidence, and audited."""

from typing import ClassVar

from factory.kernel.errors import (
    Conflict,
    Forbidden,
    Gone,
    InvalidInput,
    NotFound,
    Unprocessable,
    VersionMismatch,
)


class ApprovalNotFound(NotFound):
    """No such request in the caller's tenant and project."""

    title = "There is no such approval here"
    audited = True


class NotEligible(Forbidden):
    """The approver rule names other people."""

    code = "insufficient-role"
    title = "The approver rule does not name the caller"
    audited = True


class SeparationOfDuties(Forbidden):
    """The caller asked for it, or wrote it. No role and no path lifts this."""

    code = "separation-of-duties"
    title = "Nobody decides on their own request"
    audited = True


class MachineNeverDecides(Forbidden):
    """A service account votes on nothing, breaks no glass and waives nothing, whatever it holds."""

    code = "machine-never-decides"
    title = "A machine never decides"
    audited = True


class AlreadyDecided(Conflict):
    """Somebody was faster; `extra` carries the decision that stands."""

    code = "already-decided"
    title = "The request is already decided"
    audited = True


class AlreadyVoted(Conflict):
    """Their approval counts already, once: a quorum is of distinct people."""

    code = "already-voted"
    title = "This person's approval counts already"
    audited = True


class AnswerNotPossible(Unprocessable):
    """Nobody is there who could propose again."""

    code = "answer-not-possible"
    title = "This request knows no such answer"
    audited = True


class ApprovalOver(Gone):
    """Expired, Stale or Cancelled: there is nothing left to decide."""

    code = "approval-over"
    title = "The request is over"
    audited = True


class ApprovalExpired(ApprovalOver):
    """The decision came at or after `expiresAt`."""

    code = "approval-expired"
    title = "The request has expired"


class ProposalMoved(VersionMismatch):
    """Refuse an answer to what is not stored any more as it was on the screen."""

    audited = True


class ReasonMissing(InvalidInput):
    code = "reason-missing"
    title = "A reason is required"


class ProposalCorrupted(Conflict):
    """The stored proposal no longer has the hash that was asked about: nothing may rest on it."""

    code = "proposal-corrupted"
    title = "The stored proposal does not match its hash"
    audited = True


class ProposalNotReadable(Unprocessable):
    """Nobody can be asked about what nobody can be shown: of no known kind, or not whole."""

    code = "proposal-not-readable"
    title = "The proposal cannot be shown to people"


class PolicyDenied(Forbidden):
    """The policy says no; asking again changes nothing."""

    code = "policy-denied"
    title = "The policy denies this action"
    audited = True


class ApprovalNotNeeded(Unprocessable):
    """An autonomous action has nothing to decide about."""

    code = "approval-not-needed"
    title = "The policy allows this action by itself"


class NotAuthorized(Conflict):
    """The approval does not stand for this action: not approved, another step's, or another proposal's."""

    code = "not-authorized"
    title = "The approval does not cover this action"
    audited = True


class AuthorizationUsed(Conflict):
    """An approval is good for one act, and it has happened."""

    code = "authorization-used"
    title = "The approval is used"
    audited = True


class ApprovalLapsed(Gone):
    """Approved, but its validity has ended unused."""

    code = "approval-lapsed"
    title = "The approval's validity has ended"
    audited = True


class PolicyMissing(Unprocessable):
    """Silence is never a yes: without a revision nothing is evaluated."""

    code = "policy-missing"
    title = "No policy revision is published"


class PolicyOutOfReach(Forbidden):
    """The policy holds in projects that the caller does not administer."""

    code = "policy-out-of-reach"
    title = "The policy is not the caller's to publish"
    audited = True


class PolicyInvalid(InvalidInput):
    """The document is not one of ours, or goes below the platform floor; `errors` points at each fault."""

    code: ClassVar[str] = "policy-invalid"
    title = "The policy document is not valid"


class NotDueYet(Conflict):
    """There is still time to answer."""

    code = "not-due-yet"
    title = "The request has not expired"


class WaiverNotFound(NotFound):
    title = "There is no such waiver here"


class WaiverOver(Conflict):
    """Refused, expired or revoked before."""

    code = "waiver-over"
    title = "The waiver has ended"


class WaiverNeverServes(Unprocessable):
    """In some of the environments it could answer no question; `errors` points at each and says why."""

    code = "waiver-never-serves"
    title = "The waiver would never be used"


class WaiverPending(Conflict):
    """Refuse a second waiver while the same is not decided yet; `extra` names that one."""

    code = "waiver-pending"
    title = "The same waiver waits for its decision"


class WaiverNotAsked(Gone):
    """The question has lost its object: it was withdrawn, or its time would be over."""

    code = "waiver-withdrawn"
    title = "Nobody waits for this waiver any more"
