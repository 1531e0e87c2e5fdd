"""
How a finding is known again in the next round.

Reviewers write the same thing in many ways: in bold, in capitals, three lines further down, no longer
blocking. A fingerprint is made of two things that stay: what the title says, without markup, case, spacing,
quotes, line numbers and any word for a severity; and which file it is about, without the line. What is said
at length, what is recommended and how bad it is are not part of it.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

DIGITS = 16
"""As many hexadecimal digits as the documents' other short hashes have."""
UNTITLED = ("untitled concern", "untitled finding")
"""What a finding without a title is called; such ones differ by what they say at length."""

SEVERITIES = (
    "blocking|blocker|critical|high|error|required|medium|warning|major|minor|low|suggestion|suggested|info"
)
LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\s+\"[^\"]*\")?\)")
TAG = re.compile(r"</?(?:b|i|u|s|em|strong|code|tt|kbd|samp|del|ins|mark|small|br)\s*/?>", re.IGNORECASE)
BULLET = re.compile(r"^(?:(?:[#>*+-]+|\(?\d{1,3}[.)]|\[[ x]\])\s+)+", re.IGNORECASE)
STARS = re.compile(r"(?<!\w)[*~]+(?=\S)|(?<=\S)[*~]+(?!\w)")
UNDERLINED = re.compile(r"(?<!\w)_(?=[^\W_])([^_]*[^\W_])_(?!\w)")
QUOTES = dict.fromkeys(map(ord, "`\"'´‘’‚“”„«»"))  # noqa: RUF001
DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−"), "-")  # noqa: RUF001
TAGGED = re.compile(
    rf"^(?:[\[(](?:severity\s*[:=]\s*)?(?:{SEVERITIES})[\])]\s*[:-]?|(?:severity\s*[:=]\s*)?(?:{SEVERITIES})(?::|\s+-))\s+"
)
TAGGED_AFTER = re.compile(
    rf"\s+[\[(](?:severity\s*[:=]\s*(?:{SEVERITIES})|blocking|critical|high|medium|minor|low|suggestion)[\])]$"
)
PLACE = re.compile(r"(?<=\w)(?::\d+(?:[:-]\d+)*|\#l\d+(?:c\d+)?(?:-l?\d+(?:c\d+)?)?)(?!\w)")
FILE_BEFORE = re.compile(r"/|\.[a-z]\w{0,9}$")
LINES = re.compile(
    r"[,;]?\s*[\[(]?\s*\b(?:(?:at|in|on|near)\s+)?(?:lines?\s*\#?\s*\d+(?:\s*(?:-|to|and|,)\s*\d+)*"
    r"(?:\s*,?\s*col(?:umn)?s?\s*\d+)?|l\d{2,}(?:-l?\d+)?)\b\s*[\])]?"
)
EDGES = " \t.,;:!-"
MOST = 10_000
"""Nobody's title is longer; what comes after is not looked at."""
REACH = 200
"""How far back the name of a file is looked for."""


def fingerprint(title: str, location: str = "", detail: str = "") -> str:
    """The same digits for the same finding, even if its wording changed between two rounds."""
    said = "" if title in UNTITLED else wording(title)
    about = said or wording(detail) or " ".join(title.split())
    return hashlib.sha256(f"{about}\0{file_of(location)}".encode("utf-8", "replace")).hexdigest()[:DIGITS]


def wording(text: str) -> str:
    """What a text says, apart from how it is written down."""
    text = TAG.sub("", LINK.sub(r"\1", _letters(text[:MOST])))
    text = BULLET.sub("", " ".join(text.split()))
    text = UNDERLINED.sub(r"\1", STARS.sub("", text)).translate(QUOTES)
    text = TAGGED_AFTER.sub("", TAGGED.sub("", text.strip(EDGES)))
    return " ".join(LINES.sub(" ", PLACE.sub(_unless_a_line, text)).split()).strip(EDGES)


def _unless_a_line(found: re.Match[str]) -> str:
    """Nothing for the line that follows the name of a file; a port or a time stays."""
    before = found.string[max(found.start() - REACH, 0) : found.start()].split(" ")[-1]
    return "" if FILE_BEFORE.search(before) else found[0]


def file_of(location: str) -> str:
    """Which file or section a location is in, without the line."""
    return wording(_letters(location[:MOST]).strip(" `").replace("\\", "/").removeprefix("./"))


def _letters(text: str) -> str:
    """One way to write each letter, in one case, without those that nobody sees."""
    visible = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold()).translate(DASHES)
