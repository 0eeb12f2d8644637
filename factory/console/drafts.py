"""What was written and refused is not lost: it stands in its field again on the page that is next."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

KEPT, TOKEN = "factory_kept_words", "csrfmiddlewaretoken"
MOST = 50_000
"""So many characters are kept with a session; more are in the browser's history alone."""


def keep_words(request: HttpRequest, about: str, words: Mapping[str, str]) -> None:
    """Keep them with the session, in the place of what was kept before. `about` is what they are about."""
    kept = {name: words[name] for name in words if name != TOKEN}
    if sum(map(len, (*kept, *kept.values()))) <= MOST:
        request.session[KEPT] = {"about": about, "words": kept}


def kept_words(request: HttpRequest, about: str) -> dict[str, Any]:
    """Return what this person last wrote about it, and could not send."""
    kept = request.session.get(KEPT) or {}
    return dict(kept["words"]) if kept.get("about") == about else {}


def forget_words(request: HttpRequest) -> None:
    """They were sent."""
    request.session.pop(KEPT, None)
