"""Why: whatever is on record with a reason asks for one by the same rule."""

from factory.errors import FieldError, InvalidInput
from factory.words import is_blank

MOST_REASON = 1000


def reason_faults(reason: str, *, most: int = MOST_REASON) -> list[FieldError]:
    """The fault of a reason in which people would see nothing, or that is longer than `most` characters."""
    if not is_blank(reason) and len(reason) <= most:
        return []
    return [FieldError("/reason", f"From 1 to {most} characters that can be seen.")]


def remark(reason: str, *, most: int = MOST_REASON) -> str:
    """A reason that may be left out, as it is kept. Raises `InvalidInput` where it is too long."""
    if len(reason) > most:
        raise InvalidInput("The reason is too long.", errors=[FieldError("/reason", f"At most {most}.")])
    return "" if is_blank(reason) else reason.strip()


def reasoned(reason: str, problem: str, *, most: int = MOST_REASON) -> str:
    """The reason as it is kept, without the space around it. Raises `InvalidInput`, which says `problem`."""
    faults = reason_faults(reason, most=most)
    if faults:
        raise InvalidInput(problem, errors=faults)
    return reason.strip()
