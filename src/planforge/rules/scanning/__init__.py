"""
Finds what makes a green test suite worth less than it looks.

`scan` reads one file and says where it breaks a rule of `issues.RULES`. It looks at code and
comments, never at strings, documents or fixtures. `integrity.compare` compares two states of a
suite. Nothing here reads a file or a clock.

What does the work is loaded when it is asked for: settings name waivers, and a command that
only reads settings should not wait for a lexer.
"""

from __future__ import annotations

from collections.abc import Sequence

from planforge.rules.scanning.issues import RULES, Issue, Rule, Waiver

__all__ = ["RULES", "Issue", "Rule", "Waiver", "scan"]


def scan(
    path: str, text: str, waivers: Sequence[Waiver] = (), *, strict_xfail: bool = False
) -> tuple[Issue, ...]:
    """Where a file breaks a rule, from top to bottom.

    `path` is relative to the top of the project, with `/`; what a file is for is told from it.
    `waivers` are those that are still live. `strict_xfail` says that the settings of pytest
    make every expected failure strict.
    """
    from planforge.rules.scanning import scanner

    return scanner.scan(path, text, waivers, strict_xfail=strict_xfail)
