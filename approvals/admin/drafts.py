"""A reason that was refused together with its decision is not lost: it is there on the page that is next."""

from django.http import HttpRequest

from approvals.models import MAX_REASON
from approvals.selectors import ApprovalView

KEPT = "approvals_kept_reason"


def keep_words(request: HttpRequest, view: ApprovalView, words: str) -> None:
    """Keep them with the session, for the step or subject that they are about."""
    if words:
        request.session[KEPT] = {"about": _about(view), "words": words[:MAX_REASON]}


def kept_words(request: HttpRequest, view: ApprovalView) -> str:
    """What this person last wrote about the same step or subject, and could not send."""
    kept = request.session.get(KEPT) or {}
    return str(kept["words"]) if kept.get("about") == _about(view) else ""


def forget_words(request: HttpRequest) -> None:
    """They were sent."""
    request.session.pop(KEPT, None)


def _about(view: ApprovalView) -> str:
    return str(view.step_id or view.subject_id)
