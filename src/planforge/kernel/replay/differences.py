"""
Whether two sides are the same, and if not, where they differ.

A score made by an earlier formula is compared by the measures which that formula
had, and its value by that formula; today's formula says nothing about it. Where
secrets were taken out of what is stored, only the rest is compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from planforge.kernel.events import Event, StepCompleted
from planforge.kernel.payloads import encode
from planforge.kernel.scores import Measures, StepScore

REDACTED = re.compile(rb"\[redacted:[^\]\"]*\]")
"""What is left in the place of a secret. A fingerprint is made before secrets are taken out."""


class FieldDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One place where the two sides differ; a side without it leaves it out."""

    path: str
    recorded: object = msgspec.UNSET
    asked: object = msgspec.UNSET


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Where a flow and its recording part, with both sides."""

    key: str
    problem: str
    recorded: object
    """What is on record, None if nothing is."""
    asked: object
    """What the flow asked for or noted, None if nothing."""
    fields: tuple[FieldDifference, ...]


def differing(key: str, problem: str, recorded: object, asked: object) -> Difference:
    """A difference with the fields that make it."""
    fields = tuple(_fields(recorded, asked)) if _comparable(recorded, asked) else ()
    return Difference(key=key, problem=problem, recorded=recorded, asked=asked, fields=fields)


def _comparable(recorded: object, asked: object) -> bool:
    """Whether both are the same kind of thing, so that it says something to compare their fields."""
    if not (isinstance(recorded, dict) and isinstance(asked, dict)):
        return False
    return all(recorded.get(name) == asked.get(name) for name in ("effect", "fact"))


def _fields(recorded: object, asked: object, path: str = "") -> Iterator[FieldDifference]:
    if isinstance(recorded, dict) and isinstance(asked, dict):
        for name in [*recorded, *(name for name in asked if name not in recorded)]:
            one, other = recorded.get(name, msgspec.UNSET), asked.get(name, msgspec.UNSET)
            yield from _fields(one, other, f"{path}.{name}" if path else str(name))
    elif isinstance(recorded, list) and isinstance(asked, list) and len(recorded) == len(asked):
        for number, (one, other) in enumerate(zip(recorded, asked, strict=True)):
            yield from _fields(one, other, f"{path}[{number}]")
    elif recorded is not asked and recorded != asked:
        yield FieldDifference(path=path, recorded=recorded, asked=asked)


def value_of(event: Event) -> object:
    """A fact as JSON values, with its name."""
    return {"fact": type(event).__name__} | msgspec.json.decode(encode(event), type=dict)


def same_but_redacted(stored: bytes, asked: bytes) -> bool:
    """Whether `stored` is `asked` with something else in the places that were redacted, and only there."""
    first, *others = REDACTED.split(stored)
    if not others:
        return stored == asked
    *between, last = others
    if not asked.startswith(first) or not asked.endswith(last):
        return False
    at, end = len(first), len(asked) - len(last)
    for part in between:
        found = asked.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return at <= end


def same_fact(recorded: Event, noted: Event) -> bool:
    """Whether a fact is the recorded one, allowing for scores of earlier formulas."""
    if recorded == noted:
        return True
    if not (isinstance(recorded, StepCompleted) and isinstance(noted, StepCompleted)):
        return False
    old, new = recorded.score, noted.score
    if old is None or new is None or old.formula not in EARLIER or old.formula >= new.formula:
        return False
    return msgspec.structs.replace(recorded, score=new) == noted and _same_by_earlier_formula(old, new)


class _Formula(NamedTuple):
    """What an earlier formula was made from, and what it gave."""

    measures: tuple[str, ...]
    value: Callable[[Measures], int | None]


def _first_formula(measures: Measures) -> int | None:
    if measures.regression_hits:
        return 0
    if not measures.tests_total or measures.tests_passed is None:
        return None
    size = 200 * 200 // (200 + max(measures.diff_size or 0, 0))
    return 800 * measures.tests_passed // measures.tests_total + size


EARLIER = {1: _Formula(("tests_passed", "tests_total", "diff_size"), _first_formula)}
"""Formulas that recorded scores were made by and that are not used any more."""


def _same_by_earlier_formula(old: StepScore, new: StepScore) -> bool:
    formula = EARLIER[old.formula]
    taken = all(getattr(old.measures, name) == getattr(new.measures, name) for name in formula.measures)
    return taken and old.value == formula.value(new.measures)
