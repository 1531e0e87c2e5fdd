"""
What an agent sends, as structures of ours, as forgiving as the protocol says.

The schema of the protocol marks what a client has to bear: a field that is wrong counts as left out, an item
that is wrong is left out of its list. Agents rely on it, for they are newer or older than we are. What has no
mark has to be right. Fields that nobody here reads are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

T = TypeVar("T")

FORGIVEN = msgspec.Meta(extra={"wrong": "left out"})
"""A field that counts as left out if it is wrong."""

PICKED = msgspec.Meta(extra={"wrong": "picked out"})
"""A list that is without its items that are wrong."""


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Some part of a message, by the names that the protocol gives to its fields."""


def read(kind: type[T], raw: object) -> T:
    """`raw` as one of `kind`; raises `ValueError` for what cannot be forgiven."""
    return msgspec.convert(_mended(kind, raw), kind, strict=False)


def _mended(kind: Any, raw: object) -> object:
    if not isinstance(raw, dict):
        return raw
    mended = dict(raw)
    for name, mark, inner in _fields(kind):
        found = mended.get(name)
        if found is None:
            continue
        if mark is PICKED:
            mended[name] = list(_right(inner, found)) if isinstance(found, list) else found
        elif mark is FORGIVEN:
            try:
                mended[name] = read(inner, found)
            except ValueError:
                del mended[name]
        else:
            mended[name] = read(inner, found)
    return mended


def _right(kind: Any, items: list[object]) -> Iterator[object]:
    for item in items:
        try:
            yield read(kind, item)
        except ValueError:
            continue


@cache
def _fields(kind: Any) -> tuple[tuple[str, msgspec.Meta | None, Any], ...]:
    """The fields that may need mending: name, mark, and the type of the content."""
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return ()
    found = []
    for field in msgspec.structs.fields(kind):
        mark = next((mark for mark in (FORGIVEN, PICKED) if mark in get_args(field.type)[1:]), None)
        inner = _inner(get_args(field.type)[0] if mark else field.type)
        if mark is PICKED:
            inner = get_args(inner)[0]
        if mark or _fields(inner):
            found.append((field.encode_name, mark, inner))
    return tuple(found)


def _inner(kind: Any) -> Any:
    """A type without the None that it may be instead."""
    if get_origin(kind) not in (Union, UnionType):
        return kind
    kinds = [one for one in get_args(kind) if one is not NoneType]
    return kinds[0] if len(kinds) == 1 else kind
