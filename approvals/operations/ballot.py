"""Votes: where a rule asks for several people, each yes is kept, and all are judged at the last one."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from approvals.errors import AlreadyVoted
from approvals.models import ApprovalRequest, Vote
from approvals.selectors import Electorate, Right, counted_votes, votes_of
from factory.kernel.context import Context
from factory.kernel.recording import audit, record, save


@dataclass
class Ballot:
    """One person's yes to a locked, open request. Where one is enough, nothing is kept of it here."""

    row: ApprovalRequest
    right: Right
    reason: str
    at: datetime

    @cached_property
    def _votes(self) -> list[Vote]:
        return votes_of(self.row.id)

    @cached_property
    def _own(self) -> Vote | None:
        return next((vote for vote in self._votes if vote.person == self.right.person), None)

    def is_enough(self) -> bool:
        """Return whether the request has all that it needs with this yes; every earlier one is judged again.

        Raises `AlreadyVoted`: this person, or the one whose role they use, counts already.
        """
        if self.row.quorum == 1:
            return True
        electorate = Electorate()
        others = counted_votes(self.row, [vote for vote in self._votes if vote is not self._own], electorate)
        if any(electorate.behind(right) & electorate.behind(self.right) for _, right in others):
            raise AlreadyVoted(
                "Who lends a role and who borrows it, and members of one address, count once. One approved."
            )
        enough = len(others) + 1 >= self.row.quorum
        if self._own is not None and not enough:
            raise AlreadyVoted(
                f"{self.right.subject} has approved already; {self.row.quorum - len(others) - 1} more needed."
            )
        return enough

    def cast(self, ctx: Context, *, final: bool) -> None:
        """Keep the vote. Before the last one the request stays as it is, at the same version."""
        if self.row.quorum == 1 or self._own is not None:
            return
        vote = Vote(
            approval_id=self.row.id,
            voter=self.right.subject,
            person=self.right.person,
            acting_for=self.right.acting_for,
            delegation_id=self.right.delegation.delegation_id if self.right.delegation else None,
            version=self.row.version,
            proposal_hash=self.row.proposal_hash,
            reason=self.reason,
            voted_at=self.at,
        )
        save(vote)
        self.row.count_vote()
        if final:
            return
        detail = {"vote": self.row.votes, "of": self.row.quorum, "proposalHash": vote.proposal_hash}
        record(ctx, self.row, "VoteCast", detail=detail, keeps_version=True)
        audit(
            ctx,
            "CastVote",
            subject=f"approval:{self.row.id}",
            reason=self.reason,
            detail={**detail, "onBehalfOf": vote.acting_for},
            stream=self.row.stream,
        )
