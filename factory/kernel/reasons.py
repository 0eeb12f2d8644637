"""Why: whatever is on record with a reason asks for one by the same rule."""

from factory.kernel.errors import FieldError, InvalidInput
from factory.kernel.text import is_blank

MOST_REASON = 1000


def length_faults(text: str, what: str, pointer: str, *, most: int) -> list[FieldError]:
    """The fault of a text of more than `most` characters: by how much. `what` is its name in a sentence."""
    if len(text) <= most:
        return []
    by, has = f"{len(text) - most:,}", f"{len(text):,}"
    return [FieldError(pointer, f"{what} is too long by {by} of its {has} characters: at most {most:,} fit.")]


def reason_faults(reason: str, *, most: int = MOST_REASON) -> list[FieldError]:
    """The fault of a reason in which people would see nothing, or that is longer than `most` characters."""
    if is_blank(reason) and len(reason) <= most:
        return [FieldError("/reason", f"From 1 to {most} characters that can be seen.")]
    return length_faults(reason, "The reason", "/reason", most=most)


def remark(reason: str, *, most: int = MOST_REASON) -> str:
    """A reason that may be left out, as it is kept. Raises `InvalidInput` where it is too long."""
    refuse_longer(reason, "The reason", "/reason", most=most)
    return "" if is_blank(reason) else reason.strip()


def reasoned(reason: str, problem: str, *, most: int = MOST_REASON) -> str:
    """The reason as it is kept, without the space around it. Raises `InvalidInput`, which says `problem`."""
    refuse_longer(reason, "The reason", "/reason", most=most)
    faults = reason_faults(reason, most=most)
    if faults:
        raise InvalidInput(problem, errors=faults)
    return reason.strip()


def refuse_longer(text: str, what: str, pointer: str, *, most: int) -> None:
    """Raises `InvalidInput`, which says by how much a text is too long."""
    faults = length_faults(text, what, pointer, most=most)
    if faults:
        raise InvalidInput(faults[0].detail, errors=faults)
