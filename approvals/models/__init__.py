"""The tables of approvals: policy revisions, proposals, requests, votes, authorizations, and waivers."""

from approvals.models.policy import HASH_LENGTH, PolicyRevision
from approvals.models.request import (
    MAX_PROPOSAL_BYTES,
    MAX_SUMMARY,
    WAIVER_PREFIX,
    ApprovalRequest,
    Authorization,
    DecisionAnswer,
    Proposal,
    Vote,
)
from approvals.models.waiver import LONGEST_WAIVER, MAX_REASON, Waiver

__all__ = [
    "HASH_LENGTH",
    "LONGEST_WAIVER",
    "MAX_PROPOSAL_BYTES",
    "MAX_REASON",
    "MAX_SUMMARY",
    "WAIVER_PREFIX",
    "ApprovalRequest",
    "Authorization",
    "DecisionAnswer",
    "PolicyRevision",
    "Proposal",
    "Vote",
    "Waiver",
]
