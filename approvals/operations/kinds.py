"""The kinds of proposals: what each one has to hold, so that a person can be shown what they decide about.

Pure: no database, no clock, no HTML. A kind that nobody defined is refused: it never means yes.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from approvals.errors import ProposalNotReadable
from factory.kernel.errors import FieldError
from factory.kernel.text import is_blank

UNIFIED_DIFF: Final = "unified-diff"
TOOL_CALL: Final = "tool-call"
MANIFEST: Final = "manifest"
SPEND_ESTIMATE: Final = "spend-estimate"
TEXT: Final = "text"
QUESTION: Final = "question"

MOST_NAME = 200


def check(proposal: Any) -> str:
    """Return the kind of a proposal. Raises `ProposalNotReadable` with a pointer to each fault."""
    if not isinstance(proposal, Mapping):
        raise ProposalNotReadable("A proposal is a JSON object that names its kind.")
    kind = proposal.get("kind")
    faults_of = _KINDS.get(kind) if isinstance(kind, str) else None
    if faults_of is None:
        errors = [FieldError("/proposal/kind", f"One of {', '.join(_KINDS)}.")]
        raise ProposalNotReadable("There is no such kind of proposal.", errors=errors)
    faults = list(faults_of(proposal))
    if faults:
        raise ProposalNotReadable(f"It cannot be shown as a {kind}.", errors=faults)
    return str(kind)


def _diff(proposal: Mapping[str, Any]) -> Iterator[FieldError]:
    diff = proposal.get("diff")
    if not isinstance(diff, str) or not _files(diff):
        yield FieldError("/proposal/diff", "A unified diff of at least one file, as text.")


def _files(diff: str) -> int:
    try:
        return len(PatchSet(diff))
    except (UnidiffParseError, ValueError, IndexError):
        return 0


def _tool_call(proposal: Mapping[str, Any]) -> Iterator[FieldError]:
    tool = proposal.get("tool")
    if not isinstance(tool, str) or is_blank(tool) or len(tool) > MOST_NAME:
        yield FieldError("/proposal/tool", f"The tool's name, of 1 to {MOST_NAME} characters.")
    if not isinstance(proposal.get("arguments"), Mapping):
        yield FieldError("/proposal/arguments", "An object with the arguments, which may be empty.")


def _manifest(proposal: Mapping[str, Any]) -> Iterator[FieldError]:
    if not isinstance(proposal.get("manifest"), Mapping) or not proposal["manifest"]:
        yield FieldError("/proposal/manifest", "An object that is not empty.")


def _spend(proposal: Mapping[str, Any]) -> Iterator[FieldError]:
    money = proposal.get("amount")
    members = ("amount", "currency")
    if not isinstance(money, Mapping) or not all(isinstance(money.get(word), str) for word in members):
        yield FieldError("/proposal/amount", "An object with amount and currency, both text.")


def _text(proposal: Mapping[str, Any]) -> Iterator[FieldError]:
    text = proposal.get("text")
    if not isinstance(text, str) or is_blank(text):
        yield FieldError("/proposal/text", "The text, which may not be empty.")


def _question(proposal: Mapping[str, Any]) -> Iterator[FieldError]:
    question = proposal.get("question")
    if not isinstance(question, str) or is_blank(question):
        yield FieldError("/proposal/question", "The question in words, which may not be empty.")


_KINDS: Final[dict[str, Callable[[Mapping[str, Any]], Iterator[FieldError]]]] = {
    UNIFIED_DIFF: _diff,
    TOOL_CALL: _tool_call,
    MANIFEST: _manifest,
    SPEND_ESTIMATE: _spend,
    TEXT: _text,
    QUESTION: _question,
}
