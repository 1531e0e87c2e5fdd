"""
Which name a file has for whoever reads it, or for a file system that is not strict.

`.GitHub/Workflows/ci.yml` is a CI file on a Mac, `AGENTS.md.` is `AGENTS.md` on Windows,
and with a Cyrillic A it still is one to a person. All of them have one plain form.
"""

from __future__ import annotations

import unicodedata

CYRILLIC = "авекмнорстухіјѕԁԛԝһӏАВЕКМНОРСТУХІЈЅ"
CYRILLIC_AS = "abekmhopctyxijsdqwhlABEKMHOPCTYXIJS"
GREEK = "αικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"
GREEK_AS = "aiknoptuxABEZHIKMNOPTYX"
OTHER = "ıɡℓᴏ․‐‑‒–−⁄∕⧸"  # noqa: RUF001
OTHER_AS = "iglo.-----///"
LOOKS_LIKE = str.maketrans(CYRILLIC + GREEK + OTHER, CYRILLIC_AS + GREEK_AS + OTHER_AS)
"""Letters of other alphabets that cannot be told from Latin ones."""


def same(path: str) -> str:
    """The path to a file system that knows no capitals, composes letters and drops dots that end a name."""
    folded = unicodedata.normalize("NFC", path).casefold()
    return "/".join(part.rstrip(" .") or part for part in folded.split("/"))


def alike(path: str) -> str:
    """The path as a reader sees it: look-alikes are what they look like, what is invisible is not there."""
    shown = "".join(
        letter
        for letter in unicodedata.normalize("NFKC", path)
        if unicodedata.category(letter) not in ("Cf", "Cc")
    )
    plain = shown.translate(LOOKS_LIKE).replace("\\", "/")
    return same("/".join(part.lstrip() for part in plain.split("/")))
