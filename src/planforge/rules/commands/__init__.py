"""
The command language: what a person types to a chat, and what an agent may ask for in its answer.

    !plan list                    shapes.py   what each command is, as data
    !forge Add rate limiting      grammar.py  text to a command, to a usage error, or to neither
    ```planforge-actions          actions.py  the block of an agent's answer, to the same commands

It stands among the rules because it is one: which words are reserved, which flags go together, which commands
need a person. It is pure, it knows nothing of plans or projects beyond the form of their ids, and everything
that lets people type (the terminal now, web and chat services later) reads the same table; `app/chat`
does what a command says.
"""

from planforge.rules.commands.actions import Asked, Malformed, asked
from planforge.rules.commands.grammar import Misused, NoCommand, parse, written
from planforge.rules.commands.shapes import TABLE, Command

__all__ = [
    "TABLE",
    "Asked",
    "Command",
    "Malformed",
    "Misused",
    "NoCommand",
    "asked",
    "parse",
    "written",
]
