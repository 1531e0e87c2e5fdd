"""
Confines programs that are not trusted: what they may see and change, and what works on this machine.

`policy` says what a role may do, `view` what that means here (`home` what of a home, `needs` what programs
need to start), `bubblewrap` and `landlock` turn it into a command, `levels` finds out which of them work,
`settings` is what a person says.
"""

from __future__ import annotations

from planforge.workspace.sandbox.levels import (
    Confined,
    Tried,
    chosen,
    confine,
    enough,
    explain,
    strongest,
    tried,
)
from planforge.workspace.sandbox.policy import RECORDS, Level, Policy, reading, verifying, writing
from planforge.workspace.sandbox.settings import Sandboxing

__all__ = [
    "RECORDS",
    "Confined",
    "Level",
    "Policy",
    "Sandboxing",
    "Tried",
    "chosen",
    "confine",
    "enough",
    "explain",
    "reading",
    "strongest",
    "tried",
    "verifying",
    "writing",
]
