"""Proposals as agents make them, and words as nobody should."""

from typing import Any

REPORT = (
    "diff --git a/report.md b/report.md\n"
    "new file mode 100644\n"
    "--- /dev/null\n"
    "+++ b/report.md\n"
    "@@ -0,0 +1,3 @@\n"
    "+# Assessment of the sample\n"
    "+\n"
    "+142 files, 18,204 lines of code.\n"
    "diff --git a/index.md b/index.md\n"
    "--- a/index.md\n"
    "+++ b/index.md\n"
    "@@ -1,2 +1,2 @@\n"
    " # Reports\n"
    "-- none yet\n"
    "+- sample\n"
)


def change(diff: str = REPORT, message: str = "Publish the assessment") -> dict[str, Any]:
    return {
        "kind": "unified-diff",
        "repository": "artifacts",
        "branch": "factory/assessment-01a2",
        "message": message,
        "diff": diff,
    }


HOSTILE = [
    "<script>alert('a script')</script>",
    "</textarea></title><script>alert('after an end tag')</script>",
    "<img src=x onerror=alert('an image')>",
    "\"><svg/onload=alert('a drawing')>",
    "<svg><animate onbegin=alert('an animation') attributeName=x dur=1s></svg>",
    "' autofocus onfocus=alert('an attribute') x='",
    "<a href=\"javascript:alert('a link')\">javascript:alert('a link')</a>",
    "<iframe srcdoc=\"<script>alert('a frame')</script>\"></iframe>",
    "<style>body{display:none}</style><base href=//elsewhere.example>",
    "<form action=//elsewhere.example><button>Approve exactly this</button></form>",
    "{{ constructor.constructor('alert(1)')() }} {% debug %} ${alert(1)}",
    "<div x-data x-init=\"alert('the theme')\" hx-get=/admin/ data-live></div>",
    "\u202edrowssap ruoy\u202c \u2066turned\u2069 \u200bno width",
    "\U0001f469\u200d\U0001f680 e\u0301 \u0635\u0628\u0627\u062d \u4f60\u597d",
]
"""What an agent, or whoever writes what agents read, could put into a text."""

ALL_OF_IT = "\n".join(HOSTILE)


PATCH = """\
--- a/report.md
+++ b/report.md
@@ -1 +1,2 @@
 # Report
+{}
"""


DIFF = {"kind": "unified-diff", "diff": PATCH.format("All is well.")}


OTHER_DIFF = {"kind": "unified-diff", "diff": PATCH.format("All is very well.")}


def said(text: str) -> dict[str, str]:
    """A proposal in plain words."""
    return {"kind": "text", "text": text}
