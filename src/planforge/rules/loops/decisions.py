"""
What a loop does next, and why.

A decision carries its reason and the numbers behind it. `Continue` and `Replan` go round once more, the
second with another approach; all others end the loop.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

import msgspec

Numbers: TypeAlias = dict[str, int]


class _Reasoned(msgspec.Struct, frozen=True, tag_field="decision"):
    """What all decisions have."""

    ends: ClassVar[bool] = True
    reason: str
    numbers: Numbers = {}


class Continue(_Reasoned, frozen=True, tag="continue"):
    """Go round once more."""

    ends = False


class Replan(_Reasoned, frozen=True, tag="replan"):
    """Go round once more, but not the same way: what was tried does not get any further."""

    ends = False


class Done(_Reasoned, frozen=True, tag="done"):
    """Stop: what the loop was for has been reached."""


class Halt(_Reasoned, frozen=True, tag="halt"):
    """Stop: going on would do harm or cannot help."""


class Escalate(_Reasoned, frozen=True, tag="escalate"):
    """Stop: a person has to decide."""


Decision: TypeAlias = Continue | Replan | Done | Halt | Escalate
