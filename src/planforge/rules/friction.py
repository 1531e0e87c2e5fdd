"""
Friction: what stood in the way of the work, said by whoever noticed it.

An agent adds a fence to its answer, one JSON object a line, and nothing but its judgement in it:

    ```friction
    {"issue": "skill_missing", "skill": "writing-tests", "detail": "says nothing about fixtures"}
    ```

`drain` takes such fences out of an answer. Who said it, where and when is added by Planforge. A line that
cannot be read is counted, and is friction itself.
"""

from __future__ import annotations

import json
import re

import msgspec

MOST = 20
"""So many signals of one answer are kept."""

DETAIL = 500
"""So many characters of each."""

ISSUES = ("skill_unused", "skill_failed", "skill_missing", "skill_stale", "skill_redundant")
"""The five kinds."""

OWN = re.compile(r"x_[a-z_]{1,40}")
"""Tokens of one's own, to try out."""

FENCE = re.compile(
    r"^ {0,3}(?P<fence>`{3,})friction[ \t]*\n(?P<body>.*?)^ {0,3}(?P=fence)[ \t]*$\n?", re.M | re.S
)


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that stood in the way."""

    issue: str
    skill: str = ""
    detail: str = ""


class Drained(msgspec.Struct, frozen=True, kw_only=True):
    """An answer without its friction, and the friction."""

    text: str
    signals: tuple[Signal, ...] = ()
    unreadable: int = 0
    """Lines that are no signal, and signals beyond the most that are kept."""


ASKED = """\
If a skill was of no use, failed you, was missing, out of date or said twice, end your answer with a fence
labelled `friction`, one JSON object a line: {"issue": "skill_unused|skill_failed|skill_missing|skill_stale|\
skill_redundant", "skill": "...", "detail": "..."}. Otherwise leave it out."""


def drain(text: str) -> Drained:
    """Take the friction out of an answer."""
    signals: list[Signal] = []
    unreadable = 0
    for found in FENCE.finditer(text):
        for line in filter(str.strip, found["body"].splitlines()):
            signal = _signal(line)
            if signal is None or len(signals) == MOST:
                unreadable += 1
            else:
                signals.append(signal)
    return Drained(text=FENCE.sub("", text), signals=tuple(signals), unreadable=unreadable)


def is_known(issue: str) -> bool:
    """Whether a token is one of the five, or one of somebody's own."""
    return issue in ISSUES or bool(OWN.fullmatch(issue))


def _signal(line: str) -> Signal | None:
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict) or not is_known(str(given.get("issue"))):
        return None
    texts = {name: " ".join(str(given.get(name) or "").split())[:DETAIL] for name in ("skill", "detail")}
    return Signal(issue=given["issue"], **texts)
