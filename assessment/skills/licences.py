"""Which licence a text is: by the SPDX line, or by the sentences that only that licence has."""

import re

_NAMES = re.compile(r"^(licen[cs]e|copying|unlicense|copyright)([-._].*)?$", re.IGNORECASE)
_SPDX = re.compile(r"SPDX-License-Identifier:\s*([A-Za-z0-9.+-]+(?:\s+(?:OR|AND|WITH)\s+[A-Za-z0-9.+-]+)*)")

# The first whose every phrase is in the text. Order matters: the more particular first.
_PHRASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("AGPL-3.0", ("gnu affero general public license", "version 3")),
    ("LGPL-3.0", ("gnu lesser general public license", "version 3")),
    ("LGPL-2.1", ("gnu lesser general public license", "version 2.1")),
    ("GPL-3.0", ("gnu general public license", "version 3")),
    ("GPL-2.0", ("gnu general public license", "version 2")),
    ("MPL-2.0", ("mozilla public license", "2.0")),
    ("EPL-2.0", ("eclipse public license", "2.0")),
    ("EUPL-1.2", ("european union public licence", "1.2")),
    ("Apache-2.0", ("apache license", "version 2.0")),
    ("BUSL-1.1", ("business source license 1.1",)),
    ("CC0-1.0", ("cc0 1.0 universal",)),
    ("CC-BY-4.0", ("creative commons attribution 4.0",)),
    ("BSL-1.0", ("boost software license", "version 1.0")),
    ("Unlicense", ("this is free and unencumbered software released into the public domain",)),
    ("ISC", ("permission to use, copy, modify, and/or distribute this software for any purpose",)),
    ("0BSD", ("permission to use, copy, modify, and/or distribute", "zero-clause")),
    ("MIT", ("permission is hereby granted, free of charge, to any person obtaining a copy",)),
    ("BSD-3-Clause", ("redistribution and use in source and binary forms", "neither the name")),
    ("BSD-2-Clause", ("redistribution and use in source and binary forms",)),
    ("Zlib", ("this software is provided 'as-is', without any express or implied warranty",)),
    ("WTFPL", ("do what the fuck you want to public license",)),
    ("proprietary", ("all rights reserved",)),
)


def is_licence_file(path: str) -> bool:
    """Tell a licence for the whole: in the root, or in a LICENSES folder there."""
    parts = path.split("/")
    return (len(parts) == 1 and bool(_NAMES.match(parts[0]))) or parts[0] in ("LICENSES", "LICENCES")


def identify(text: str) -> str | None:
    """Return the SPDX identifier, or None when the text is none that we know."""
    named = _SPDX.search(text)
    if named:
        return named.group(1)
    plain = " ".join(text.lower().replace("“", '"').replace("’", "'").split())
    for spdx, phrases in _PHRASES:
        if all(phrase in plain for phrase in phrases):
            return spdx
    return None
