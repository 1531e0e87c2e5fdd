"""
Whether a text that stands where a secret could stand is one, or only stands for one.

Detectors are generous: every password in a test and every hash is a match to them. What
is judged here is the text: whether it looks drawn and not written, and whether it says
of itself that it is an example.
"""

from __future__ import annotations

import math
import re
from collections import Counter

DUMMY = re.compile(
    r"example|sample|dummy|fake|placeholder|change[-_. ]?(?:me|this|it)|redacted|testing|lorem|ipsum|"
    r"replace[-_. ]?(?:me|this|with)|your[-_. ]|insert[-_. ]|todo|fixme|foo[-_]?bar|"
    r"not[-_. ]?(?:a[-_. ]?)?(?:real|secret)|deadbeef|cafebabe|hunter2|correct[-_. ]?horse|"
    r"s[e3]cr[e3]t|p[a4@][s$5]{2}w[o0]rd|passwd|"
    r"(?P<run>[x*.#_0-])(?P=run){3,}",
    re.IGNORECASE,
)
"""What is in a text that is there for show. A real secret has none of these but by its owner's humour."""

LEFT = 36
"""So many drawn characters beside the word that says it is an example are a secret after all."""

ELSEWHERE = re.compile(
    r"\$[{(\w]|%[({]|[{<\[*]|https?://|(?:\.{0,2}|~)/|[A-Za-z]:\\|process\.env|[A-Za-z_][\w.]*\(|django-insecure-|"
    r"(?:pbkdf2|scrypt|bcrypt|argon2|md5|sha1|sha256)\w*\$|\$(?:2[aby]|5|6|argon2)\w*\$|\{S?SHA"
)
"""How a text begins that says where a secret is, is the hash of one, or is a framework's own default."""

NAME = re.compile(r"[A-Za-z]+(?:[_.-][A-Za-z]+)*[_.-]?\d{0,2}")

ROWS = (
    *("abcdefghijklmnopqrstuvwxyz", "zyxwvutsrqponmlkjihgfedcba", "qwertyuiop", "asdfghjkl", "zxcvbnm"),
    *("01234567890123456789", "98765432109876543210"),
)
STEP = 5
"""So many characters of an alphabet or a keyboard in a row are typed, not drawn."""

SHORTEST = 8
LONG = 16

NOWHERE = re.compile(
    r"(?i)(?:[\w-]+\.)*(?:example|test|invalid|localhost|testserver|host|proxy\w*)(?:[.:/\"'\s]|$)|127\."
)
"""Hosts that nobody can log in to."""


def is_for_show(text: str) -> bool:
    """Whether it says of itself that it is no secret: an example, a placeholder, a row of letters."""
    if ELSEWHERE.match(text):
        return True
    if not DUMMY.search(text) and not _is_row(text):
        return False
    rest = _without_rows(DUMMY.sub("", text))
    return len(rest) < LEFT or not is_drawn(rest)


def is_name(text: str) -> bool:
    """Whether it reads like the name of something: `FORBIDDEN_VALUE2`, `settings.token`."""
    return bool(NAME.fullmatch(text))


def is_drawn(text: str) -> bool:
    """Whether it looks like the work of a generator: `a3f9c2d1e8`, not `phase-1-of-the-plan`."""
    if len(text) < SHORTEST or len(set(text)) < SHORTEST or re.search(r"\s", text):
        return False
    kinds = sum(bool(re.search(kind, text)) for kind in ("[a-z]", "[A-Z]", r"\d"))
    if kinds < 2 or not re.search(r"\d", text) or _is_written(text):
        return False
    return _entropy(text) >= 2.9 and _turns(text) >= (3 if len(text) >= LONG else 2)


def is_password(text: str, host: str) -> bool:
    """Whether what stands before the host of an address opens anything."""
    return len(text) >= 6 and not re.fullmatch("[A-Za-z][a-z]*|[A-Z]+", text) and not NOWHERE.match(host)


def _is_row(text: str) -> bool:
    """Whether a large part of it is an alphabet, a row of keys, or the same again and again."""
    return len(set(text)) * 4 <= len(text) or len(_without_rows(text)) * 2 <= len(text)


def _without_rows(text: str) -> str:
    lowered = text.lower()
    at, kept = 0, []
    while at < len(text):
        length = max(_common(row, lowered, at) for row in ROWS)
        if length < STEP:
            kept.append(text[at])
        at += length if length >= STEP else 1
    return "".join(kept)


def _common(row: str, lowered: str, at: int) -> int:
    """How many characters from `at` on follow each other in the row as well."""
    start = row.find(lowered[at])
    length = 0
    while (
        start >= 0
        and row[start + length : start + length + 1] == lowered[at + length : at + length + 1] != ""
    ):
        length += 1
    return length


def _is_written(text: str) -> bool:
    """Whether most of it is words."""
    words = re.findall(r"[A-Z]?[a-z]{4,}|[A-Z]{4,}", text)
    return sum(len(word) for word in words if re.search("(?i)[aeiouy]", word)) * 2 > len(text)


def _entropy(text: str) -> float:
    """Bits a character, as far as the text itself tells."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


def _turns(text: str) -> int:
    """How often letters and digits take turns, or the case changes within a word."""
    return len(re.findall(r"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])|(?<=[a-z])(?=[A-Z])", text))
