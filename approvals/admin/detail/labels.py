"""The sentences of the decision page: what is asked, what a yes means, what each answer and silence do."""

import re
from collections.abc import Iterable
from datetime import datetime

from django.template.defaultfilters import pluralize

from approvals.admin.detail.proposal import Shown
from approvals.operations import kinds
from approvals.policy.messages import duration
from approvals.selectors import ApprovalView, Right
from approvals.states import GATED, ApprovalState, SubjectType
from approvals.subjects import Timeline
from factory.console.show import seen

ASKED = {
    kinds.TEXT: "do what is written below",
    kinds.MANIFEST: "go on with this manifest",
    kinds.QUESTION: "go on",
}


def question(view: ApprovalView, shown: Shown | None, story: Timeline | None) -> str:
    """Return what is asked, as one question in the control plane's words, where it knows enough; else the
    summary.

    What is over is no question any more.
    """
    if view.subject_type != SubjectType.RUN or shown is None or view.consumed_by_its_decision:
        text = seen(view.summary)
        end = "" if text.endswith("?") or not view.is_pending else "?"
        return f"{text[:1].upper()}{text[1:]}{end}"
    who = f"the step {seen(story.asker)}" if story and story.asker else "this run"
    if not view.is_pending:
        return f"{who[:1].upper()}{who[1:]} asked to {_act(shown)}"
    return f"May {who} {_act(shown)}?"


def _act(shown: Shown) -> str:
    if shown.diff is not None:
        count = len(shown.diff.files)
        place = f" in {seen(shown.repository)}" if shown.repository else ""
        return f"change {count} file{pluralize(count)}{place}"
    if shown.tool:
        return f"call {seen(shown.tool)}"
    return ASKED.get(shown.kind, "do what is written below")


def lead(view: ApprovalView, shown: Shown | None, *, may_decide: bool, stops: str = "") -> str:
    """Return what a yes means, in one sentence, before anything is read: the reader's own, or somebody's."""
    if stops:
        return "Nothing of this has happened, and no answer would make it happen as things stand."
    if view.names_nobody:
        return "Nothing of this has happened, and no member can approve it, whoever joins."
    yes = "If you approve" if may_decide else "If it is approved"
    if view.subject_type == SubjectType.SPEND:
        return f"{yes}, this run begins, or goes on, and may cost up to so much on the terms below."
    if view.subject_type == SubjectType.WAIVER:
        return (
            f"{yes}, people are not asked about the writes that are named below, until its end, "
            "except runs of who asked for or decided it, and where the rule asks for more."
        )
    if view.subject_type == SubjectType.RUN and view.consumed_by_its_decision:
        answer = "your answer" if may_decide else "the answer"
        return f"The run asks a person and waits. It goes on with {answer}, and not without one."
    yes = yes if view.quorum == 1 else f"Once {view.quorum} different people have approved"
    return (
        f"{yes}, exactly {_what(shown)} happens, once. "
        "Nothing has happened yet, and nothing will without a decision."
    )


def _what(shown: Shown | None) -> str:
    if shown is None or shown.diff is None:
        return "the proposal below"
    added, removed = shown.diff.added, shown.diff.removed
    return f"the change below, of {added} line{pluralize(added)} added and {removed} removed,"


def consequence(view: ApprovalView) -> dict[str, str]:
    """Return what each answer does, said on its button."""
    if view.subject_type == SubjectType.PUBLICATION:
        return {
            "approve": "The release is published, and the alias latest names it.",
            "reject": "The release goes back to Draft. Nothing is published.",
            "request_changes": "The release goes back to Draft with your words.",
        }
    if view.subject_type == SubjectType.WAIVER:
        return {
            "approve": "Such a write is approved at once and names this waiver, except runs of who asked for "
            "or decided it, and where the rule asks for more. It can be revoked.",
            "reject": "Nothing is allowed in advance: people are asked about each write.",
            "request_changes": "It is refused with your words, and can be asked for again.",
        }
    if view.subject_type == SubjectType.SPEND:
        return {
            "approve": "The money is set aside if the budgets have it, and the run begins or goes on.",
            "reject": "Nothing more is set aside. The run fails, and can only be run again.",
        }
    if view.consumed_by_its_decision:
        return {
            "approve": "The run goes on: your answer is the whole of this step.",
            "reject": "The run fails (policy-denied) and cannot be resumed, only run again.",
        }
    return {
        "approve": "The run goes on. The agent may do exactly this, once, within "
        f"{duration(view.valid_for)}.",
        "reject": "Nothing is done. The run fails (policy-denied) and cannot be resumed, only run again.",
        "request_changes": "The agent reads your reason and proposes again.",
    }


def unused(view: ApprovalView, siblings: Iterable[ApprovalView], at: datetime) -> str:
    """Return what is true beside this question: an unused yes to another proposal of the step still
    counts."""
    if all(one.id == view.id or one.use(at) != "not-yet-used" for one in siblings):
        return ""
    return (
        "Another proposal of this step was approved and is not used yet: it may still be done, once, beside "
        "this one. Rejecting this one ends the run, and with it both."
    )


def silence(view: ApprovalView, stops: str = "") -> str:
    """Return what happens when nobody answers in time; what could not be answered is not asked again."""
    if view.may_be_renewed and not stops:
        return "Silence is never a yes: then the same is asked once more, and a second silence ends it."
    then = {
        SubjectType.PUBLICATION: "the release goes back to Draft and nothing is published.",
        SubjectType.WAIVER: "nothing is allowed in advance.",
        SubjectType.SPEND: "the run fails and nothing more is spent.",
    }.get(SubjectType(view.subject_type), "the run fails (policy-denied) and nothing is done.")
    return f"Silence is never a yes: then {then}"


def why(view: ApprovalView) -> str:
    """Return which rule of the pinned revision asks for a decision: its words are frozen in the request."""
    found = re.search(r"\((?:(rule \d+): [^()]*|the platform floor)[^()]*\)$", view.approver_rule)
    return found[1].capitalize() if found and found[1] else "The platform floor, under"


def fixed(view: ApprovalView) -> str:
    """Return what no policy and no role can change about it."""
    klass = view.action_class
    if klass not in GATED or view.subject_type == SubjectType.SPEND:
        return ""
    return f"That {klass} needs a decision at all is fixed: no policy and no role can switch it off."


def by_what(right: Right) -> str:
    """Return why the reader may decide."""
    if right.acting_for:
        return f"You act for {right.acting_for}, who has lent you the role {right.role}; you count as one."
    return f"You are {right.role} here, you did not ask for this, and you act in your own role."


def outcome(view: ApprovalView, cancelled_by: str = "") -> str:
    """One sentence about a request that is over."""
    by = f" by {seen(cancelled_by)}" if cancelled_by else ""
    words = {
        ApprovalState.APPROVED: f"Approved by {_who(view)}.",
        ApprovalState.REJECTED: f"Rejected by {_who(view)}.",
        ApprovalState.EXPIRED: "Nobody answered in time. Silence is never a yes.",
        ApprovalState.CANCELLED: f"Cancelled{by}, together with what it was about.",
    }
    if view.state == ApprovalState.STALE:
        return f"Sent back by {_who(view)}." if view.sent_back else "Replaced by a newer proposal."
    return words.get(ApprovalState(view.state), "")


def _who(view: ApprovalView) -> str:
    """Return who decided, and how they came to: both names of a delegation, the broken glass, or a waiver."""
    if view.waiver_id is not None:
        return f"a waiver, which {view.decided_person} had given"
    who = f"{view.decided_by} for {view.decided_for}" if view.decided_for else view.decided_by
    return f"{who}, breaking the glass" if view.break_glass else who
