"""
What the kept library's detectors and our own shapes find in lines of text.

The library is bc-detect-secrets, loaded when the first line is looked at. Only its
patterns are used: it can also ask a service whether a key works, and nothing here may
send a secret anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from planforge.kernel.redaction import Redactor
from planforge.workspace.secrets import plausibility

if TYPE_CHECKING:
    from detect_secrets.plugins.base import RegexBasedDetector
    from detect_secrets.plugins.high_entropy_strings import HighEntropyStringsPlugin
    from detect_secrets.plugins.keyword import KeywordDetector

LONGEST = 4000
"""A longer line is looked at in pieces, which overlap."""
OVERLAP = 400

KEYS = "api|auth|access|account|private|client|signing|encryption|service|master|storage|db|database|secret"
NAMED = re.compile(
    rf"(?i)secret|token|passw|passphrase|pwd|credential|contrase|(?:{KEYS})[-_. ]?key|_pass\b|db_?pass"
)
"""What a line says that gives a secret a name. A bare `key` is more often that of a mapping or a test."""

OPEN = re.compile(r"[=(:\[{,\\]\s*$")
"""How a line ends that goes on in the next one."""

NAMES = 30
"""A line with more of them was not written to be read."""

MARK = re.compile(r"\[redacted:([^\]]+)\]")
ADDRESS = re.compile(r"""://[^\s/:@?#"'<>`]{0,256}:([^\s/?#"'<>`]{1,512})@([^\s/?#"'<>`@]{1,256})""")

PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d:")
KEY_BODY = re.compile(r"[A-Za-z0-9+/=]{40,}")
KEY_LINES = 8
"""Within so many lines its letters begin; some formats have headers first."""

ASSIGNED = "secret"
"""What redaction calls a text that nothing but the name it is given to makes a secret."""

PASSWORDS = ("password", "Basic Auth Credentials")


class Candidate(NamedTuple):
    """Something that looks like a secret, for as long as it takes to look at it."""

    line: int
    kind: str
    text: str


class Library(NamedTuple):
    """The detectors of the library, by what they go by."""

    shapes: tuple[RegexBasedDetector, ...]
    """Tokens that have a shape of their own."""
    keyword: KeywordDetector
    """What is assigned to a telling name."""
    entropies: tuple[HighEntropyStringsPlugin, ...]
    """What looks random."""


def look(lines: Sequence[str], numbers: Iterable[int]) -> Iterator[Candidate]:
    """What the lines with these numbers, counted from 1, seem to hold."""
    redactor, wanted = Redactor(), sorted(set(numbers))
    yield from _private_keys(lines, frozenset(wanted))
    for number in wanted:
        line = lines[number - 1]
        before = lines[number - 2] if number > 1 else ""
        named = bool(
            NAMED.search(line) or (OPEN.search(before[-OVERLAP:]) and NAMED.search(before[-OVERLAP:]))
        )
        for piece in _pieces(line):
            for kind, text in _found(piece, redactor, named=named):
                yield Candidate(number, kind, text)


def _private_keys(lines: Sequence[str], wanted: frozenset[int]) -> Iterator[Candidate]:
    """A key whose first line or whose letters are among the wanted lines."""
    for number, line in enumerate(lines, 1):
        if "PRIVATE KEY" in line or "PuTTY" in line:
            begin = PRIVATE_KEY.search(line)
            rest = [line[begin.end() :], *lines[number : number + KEY_LINES]] if begin else []
            for offset, text in enumerate(rest):
                body = KEY_BODY.search(text)
                if body and not plausibility.is_for_show(body[0]):
                    if wanted & {number, number + offset}:
                        yield Candidate(number, "Private Key", body[0])
                    break


def _pieces(line: str) -> Iterator[str]:
    for start in range(0, max(len(line), 1), LONGEST):
        yield line[max(start - OVERLAP, 0) : start + LONGEST]


def _found(line: str, redactor: Redactor, *, named: bool) -> Iterator[tuple[str, str]]:
    library = load()
    found = [(shape.secret_type, text) for shape in library.shapes for text in shape.analyze_string(line)]
    for kind, text in (*found, *_redacted(line, redactor)):
        if kind in PASSWORDS:
            if _opens(line, text):
                yield kind, text
        elif not plausibility.is_for_show(text) and not (kind == ASSIGNED and plausibility.is_name(text)):
            yield kind, text
    if named:
        for kind, text in _loose(line, library):
            if plausibility.is_drawn(text) and not plausibility.is_for_show(text):
                yield kind, text


def _loose(line: str, library: Library) -> Iterator[tuple[str, str]]:
    # Its patterns take time that grows with the square of how many names there are, which an agent decides.
    if len(NAMED.findall(line)) <= NAMES:
        for text in library.keyword.analyze_string(line):
            yield library.keyword.secret_type, text
    for entropy in library.entropies:
        for text in entropy.analyze_string(line):
            if entropy.calculate_shannon_entropy(text) > entropy.entropy_limit:
                yield entropy.secret_type, text


def _opens(line: str, text: str) -> bool:
    return any(
        found[1].endswith(text)
        and plausibility.is_password(text, found[2])
        and not plausibility.is_for_show(text)
        for found in ADDRESS.finditer(line)
    )


def _redacted(line: str, redactor: Redactor) -> Iterator[tuple[str, str]]:
    """What redaction would take out of the line."""
    cleaned = redactor.text(line)
    if cleaned == line or MARK.search(line):
        return
    parts = MARK.split(cleaned)
    at = len(parts[0])
    for kind, after in zip(parts[1::2], parts[2::2], strict=True):
        end = line.find(after, at) if after else len(line)
        if end < 0:
            return
        yield kind, line[at:end]
        at = end + len(after)


@cache
def load() -> Library:
    """The library's detectors: those of tokens are all that it has, so that a new one is used at once."""
    import pkgutil
    from importlib import import_module

    from detect_secrets import plugins
    from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
    from detect_secrets.plugins.base import RegexBasedDetector
    from detect_secrets.plugins.high_entropy_strings import Base64HighEntropyString, HexHighEntropyString
    from detect_secrets.plugins.keyword import KeywordDetector

    for found in pkgutil.iter_modules(plugins.__path__):
        import_module(f"{plugins.__name__}.{found.name}")
    # Azure's goes by length alone unless it sees the lines around; the name that it looks for is in `NAMED`.
    kinds = [kind for kind in RegexBasedDetector.__subclasses__() if kind is not AzureStorageKeyDetector]
    kinds = [kind for kind in kinds if kind.__module__.startswith(plugins.__name__)]
    shapes = tuple(kind() for kind in sorted(kinds, key=lambda kind: kind.__name__))
    return Library(shapes, KeywordDetector(), (Base64HighEntropyString(4.0), HexHighEntropyString(3.0)))
