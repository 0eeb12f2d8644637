"""Steps for the commands of the apps above, inside their transaction.

The caller holds the locks of its own rows (release, project, run, step, attempt, lease) before it comes
here: a request is locked below them.
"""

from approvals.errors import AnswerNotPossible, PolicyDenied
from approvals.operations.closing import cancel_pending, close, supersede
from approvals.operations.deciding import decide
from approvals.operations.draft import ApprovalDraft, Spend
from approvals.operations.requesting import open_request, open_requests, renew
from approvals.operations.resuming import resume
from approvals.operations.using import consume, start_validity
from approvals.operations.waiver_requests import WaiverTerms, request_waiver
from approvals.operations.waiving import end_waivers_of
from approvals.selectors import unused_approved

__all__ = [
    "AnswerNotPossible",
    "ApprovalDraft",
    "PolicyDenied",
    "Spend",
    "WaiverTerms",
    "cancel_pending",
    "close",
    "consume",
    "decide",
    "end_waivers_of",
    "open_request",
    "open_requests",
    "renew",
    "request_waiver",
    "resume",
    "start_validity",
    "supersede",
    "unused_approved",
]
