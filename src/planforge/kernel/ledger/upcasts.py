"""
Earlier shapes of facts, turned into today's.

Every fact is stored with the revision of its shape. Reading one of an earlier
revision takes it through the functions here, one revision at a time; the stored
bytes, and so the hash chain, stay as they were written. A fact of a later
revision was written by a later Planforge and is refused, never guessed at.
`docs/events.md` has an example.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

Fields = dict[str, Any]

UPCASTS: dict[str, tuple[Callable[[Fields], Fields], ...]] = {}
"""For each kind, the functions from revision 1 to 2, from 2 to 3, and so on."""


def revision(kind: str) -> int:
    """The revision that a fact of this kind is written in today."""
    return 1 + len(UPCASTS.get(kind, ()))


def upcast(kind: str, stored: int, fields: Fields) -> Fields:
    """The fields of a fact stored in an earlier revision, in today's shape."""
    try:
        for function in UPCASTS.get(kind, ())[stored - 1 :]:
            fields = function(fields)
    except (KeyError, TypeError, AttributeError) as error:
        raise msgspec.ValidationError(f"it is no `{kind}` of revision {stored}") from error
    return fields
