"""What looks like a credential. Kind, place and a slow fingerprint leave this module, never the value."""

import hashlib
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from .languages import is_test

MOST_PER_FILE = 20
LONGEST_LINE = 2_000


@dataclass(frozen=True)
class Secret:
    """A finding, without what was found."""

    kind: str
    path: str
    line: int
    fingerprint: str
    certain: bool

    @property
    def rank(self) -> tuple[bool, bool, str, int]:
        """Order findings: the surest outside tests first."""
        return is_test(self.path), not self.certain, self.path, self.line

    def shown(self) -> dict[str, Any]:
        """For the report."""
        return {
            "kind": self.kind,
            "path": self.path[:200],
            "line": self.line,
            "fingerprint": self.fingerprint,
            "certain": self.certain,
            "test": is_test(self.path),
        }


# kind, pattern (group `value` or the whole). Each has a mark that hardly anything else has.
_CERTAIN: tuple[tuple[str, "re.Pattern[str]"], ...] = (
    ("private key", re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----(?!.*(?:\\n)?\.\.\.)")),
    ("AWS access key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("GitHub token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,})\b")),
    ("GitLab token", re.compile(r"\bglpat-[A-Za-z0-9_-]{20,}\b")),
    ("Slack token", re.compile(r"\bxox[abeprs]-[A-Za-z0-9-]{20,}\b")),
    (
        "Slack webhook",
        re.compile(r"https://hooks\.slack\.com/services/T[A-Z0-9]+/B[A-Z0-9]+/[A-Za-z0-9]{20,}"),
    ),
    ("Stripe key", re.compile(r"\b[sr]k_live_[A-Za-z0-9]{20,}\b")),
    ("Google API key", re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b")),
    ("npm token", re.compile(r"\bnpm_[A-Za-z0-9]{36}\b")),
    ("PyPI token", re.compile(r"\bpypi-AgEI[A-Za-z0-9_-]{50,}")),
    ("SendGrid key", re.compile(r"\bSG\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{40,}\b")),
    ("model provider key", re.compile(r"\bsk-(?:ant-|proj-)[A-Za-z0-9_-]{32,}\b")),
    ("Azure storage key", re.compile(r"AccountKey=[A-Za-z0-9+/]{80,}={0,2}")),
)
_IN_URL = re.compile(
    r"\b[a-z][a-z0-9+.-]{2,15}://[^\s:/@'\"]{1,64}:(?P<value>[^\s@/'\"${}<>]{6,100})@[\w.-]+"
)
_ASSIGNED = re.compile(
    r"(?i)\b[\w.-]{0,40}(?:passw(?:or)?d|passwd|secret|api[_-]?key|access[_-]?key|auth[_-]?token|token)[\w-]{0,20}"
    r"['\"]?\s*(?:[:=]|=>|:=)\s*['\"](?P<value>[A-Za-z0-9+/_.~!@#$%^&*=-]{16,200})['\"]"
)
_PLACEHOLDER = re.compile(
    r"(?i)(example|sample|dummy|fake|change.?me|placeholder|your[_-]|xxxx|\*\*\*|<|\$\{|\{\{|test|todo|none|null"
    r"|localhost|secret|password|passwd|token$|env|redacted|12345)"
)
_HINT = re.compile(
    r"(?i)passw|secret|key|token|://|AKIA|ASIA|gh[pousr]_|github_pat|glpat|xox|npm_|pypi-|SG\.|[rs]k[-_]|AIza"
)


def scan(path: str, text: str) -> list[Secret]:
    """Return at most one finding a line, the surest."""
    found: list[Secret] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) > LONGEST_LINE or not _HINT.search(line):
            continue
        hit = _in_line(line)
        if hit:
            kind, value, certain = hit
            found.append(Secret(kind, path, number, _fingerprint(value), certain))
            if len(found) >= MOST_PER_FILE:
                break
    return found


def _in_line(line: str) -> tuple[str, str, bool] | None:
    for kind, pattern in _CERTAIN:
        match = pattern.search(line)
        if match and not re.search(r"(?i)example", match.group()):
            return kind, match.group(), True
    match = _IN_URL.search(line)
    if match and not _PLACEHOLDER.search(match["value"]) and entropy(match["value"]) >= 2.5:
        return "password in a URL", match["value"], False
    match = _ASSIGNED.search(line)
    if match and _looks_random(match["value"]):
        return "assigned credential", match["value"], False
    return None


def _looks_random(value: str) -> bool:
    """Tell a random value: enough entropy, letters and digits, no word that makes it an example."""
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return mixed and entropy(value) >= 3.5 and not _PLACEHOLDER.search(value)


def entropy(value: str) -> float:
    """Shannon entropy, bits a character."""
    counts = Counter(value)
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())


def _fingerprint(value: str) -> str:
    """Derive a mark from a value; slowly, so that a short value cannot simply be guessed from it."""
    key = hashlib.scrypt(value.encode(), salt=b"factory-assessment", n=2**12, r=8, p=1, dklen=6)
    return key.hex()
