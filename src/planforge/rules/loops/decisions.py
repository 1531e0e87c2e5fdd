"""
What a loop does next, and why.

A decision carries its reason and the numbers behind it. `Continue` and `Replan` go round once more, the
second with another approach; all others end the loop.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

import msgspec

Numbers: TypeAlias = dict[str, int]


class Continue(msgspec.Struct, frozen=True, tag_field="decision", tag="continue"):
    """Go round once more."""

    ends: ClassVar[bool] = False
    reason: str
    numbers: Numbers = {}


class Replan(msgspec.Struct, frozen=True, tag_field="decision", tag="replan"):
    """Go round once more, but not the same way: what was tried does not get any further."""

    ends: ClassVar[bool] = False
    reason: str
    numbers: Numbers = {}


class Done(msgspec.Struct, frozen=True, tag_field="decision", tag="done"):
    """Stop: what the loop was for has been reached."""

    ends: ClassVar[bool] = True
    reason: str
    numbers: Numbers = {}


class Halt(msgspec.Struct, frozen=True, tag_field="decision", tag="halt"):
    """Stop: going on would do harm or cannot help."""

    ends: ClassVar[bool] = True
    reason: str
    numbers: Numbers = {}


class Escalate(msgspec.Struct, frozen=True, tag_field="decision", tag="escalate"):
    """Stop: a person has to decide."""

    ends: ClassVar[bool] = True
    reason: str
    numbers: Numbers = {}


Decision: TypeAlias = Continue | Replan | Done | Halt | Escalate
