"""
Items: whatever people work on, under one record, one numbering and one way of writing names.

An item's name is its kind and its number: `plan-017`, `fix-003`, `task-001`. People may leave out the zeros,
and the kind where only one can be meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Any, Protocol, TypeVar

import msgspec

from planforge.errors import InvalidDocument

Query = Callable[..., Iterable[tuple[Any, ...]]]
"""Reads rows: what `Ledger.query` does, and a projection while it folds."""

Row = TypeVar("Row", bound=msgspec.Struct)


class Rows(Protocol):
    """Reads the tables, as a ledger does."""

    def query(self, statement: str, *values: str | int) -> Iterator[tuple[Any, ...]]:
        """Rows."""

    def select(self, kind: type[Row], rest: str, *values: str | int) -> list[Row]:
        """Rows as structures."""


class Kind(StrEnum):
    """What an item can be."""

    PLAN = "plan"
    FIX = "fix"
    TASK = "task"
    BUG = "bug"
    SPRINT = "sprint"
    FEATURE = "feature"
    DELIVERY = "delivery"
    MODULE = "module"
    IDEA = "idea"


KINDS = frozenset(Kind)
NAME = re.compile(rf"(?:(?P<kind>{'|'.join(Kind)})-)?0*(?P<number>[1-9][0-9]{{0,8}})")
NUMBER = re.compile(rf"(?:{'|'.join(Kind)})-0*(?P<number>[0-9]{{1,9}})(?![0-9])")


def name(kind: Kind, number: int) -> str:
    """The name of the item with that number."""
    if number < 1:
        raise InvalidDocument(f"a {kind} is numbered from 1, not {number}")
    return f"{kind}-{number:03}"


def kind_of(item: str) -> Kind:
    """What an item is, by its name; one that an embedder named is a plan."""
    kind = item.partition("-")[0]
    return Kind(kind) if kind in KINDS else Kind.PLAN


def parse(text: str, *kinds: Kind) -> str:
    """The item that a text names, of one of these kinds; the first one is meant by a number alone."""
    found = NAME.fullmatch(text.strip())
    kind = Kind(found["kind"] or kinds[0]) if found else None
    if found is None or kind not in kinds:
        shown = f"write it like `{name(kinds[0], 17)}` or `17`"
        others = ", ".join(f"a {other} like `{name(other, 3)}`" for other in kinds[1:])
        raise InvalidDocument(f"`{text}` is not a {kinds[0]} id", f"{shown}; {others}" if others else shown)
    return name(kind, int(found["number"]))


def is_named(text: str, *kinds: Kind) -> bool:
    """Whether a text is the name of such an item and nothing else, with its kind."""
    found = NAME.fullmatch(text.strip())
    return found is not None and found["kind"] in kinds


def following(kind: Kind, names: Iterable[str]) -> str:
    """The name after all of these, which may be those of items, files or streams."""
    return name(kind, max(_numbers(kind, names), default=0) + 1)


def _numbers(kind: Kind, names: Iterable[str]) -> Iterator[int]:
    for each in names:
        if each.startswith(f"{kind}-") and (found := NUMBER.match(each)):
            yield int(found["number"])
