"""The forms of the names that tokens carry: one rule for who issues, takes, keeps and revokes them.

What is narrower at one of these places than at another can be issued and then not be revoked.
"""

import re

MOST_SUBJECT = 255
MOST_JTI = 255
SUBJECT = re.compile(rf"[!-~]{{1,{MOST_SUBJECT}}}")
JTI = re.compile(rf"[!-~]{{1,{MOST_JTI}}}")
TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
POOL = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
POOL_WORDS = "Small letters, digits, '.', '_' and '-', at most 64."
OUR_OWN = ("system:", "policy:")
"""How subjects begin that only parts of the product itself have."""


def subject_fault(subject: object) -> str:
    """Return why nobody's token may speak for this subject; nothing where it may."""
    if not isinstance(subject, str) or not SUBJECT.fullmatch(subject):
        return f"a subject has 1 to {MOST_SUBJECT} visible ASCII characters and no space"
    return "a subject that only the product itself may be" if subject.startswith(OUR_OWN) else ""
