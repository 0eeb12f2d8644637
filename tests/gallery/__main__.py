"""`python -m tests.gallery [word [person …]]`: a house of its own, a browser, one page with all pictures."""

import os
import shutil
import sys
from pathlib import Path
from uuid import uuid4

from tests import databases

PLACE = databases.ROOT / "var" / "gallery"


def main() -> int:
    only, *people = sys.argv[1:] or [""]
    session = databases.Session()
    os.environ.update(session.environment())
    try:
        return picture(PLACE, only, people)
    finally:
        session.close()


def picture(place: Path, only: str, people: list[str]) -> int:
    import django

    django.setup()
    from tests.browser.web import serving
    from tests.gallery.pictures import PEOPLE, take
    from tests.gallery.sheet import write
    from tests.support.furnished import furnished

    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    house = furnished(f"gallery-{uuid4().hex[:8]}")
    with serving(place) as web:
        found = list(take(house, web, place, only, people or PEOPLE))
    write(place / "index.html", found)
    troubles = [f"{one.title}: {trouble}" for one in found for trouble in one.troubles]
    for line in troubles:
        print(line)  # noqa: T201  a program's output
    print(f"{len(found)} pages: {place / 'index.html'}")  # noqa: T201
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
