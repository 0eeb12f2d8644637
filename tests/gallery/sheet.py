"""The one page that shows all pictures: by page, and beside each other by person."""

from collections.abc import Sequence
from pathlib import Path

from django.template import Context, Engine

from tests.gallery.pictures import THEMES, WIDTHS, Shown

SHEET = Path(__file__).with_name("sheet.html")


def write(file: Path, found: Sequence[Shown]) -> None:
    titles = list(dict.fromkeys(one.title for one in found))
    by_title = [(title, [one for one in found if one.title == title]) for title in titles]
    pages = [
        (title, [(one, [(w, t, one.pictures[w, t]) for t in THEMES for w in WIDTHS]) for one in shown])
        for title, shown in by_title
    ]
    text = Engine().from_string(SHEET.read_text(encoding="utf-8")).render(Context({"pages": pages}))
    file.write_text(text, encoding="utf-8")
