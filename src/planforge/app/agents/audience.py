"""
Whoever follows a run while it goes on: hears signs of life, is told what matters, may be asked.

What is heard is not recorded. Without anybody there, nothing is shown and nobody is asked.
"""

from __future__ import annotations


class Audience:
    """Nobody; the command line puts a screen in its place."""

    attended = False
    """Whether there is a person who can be asked."""

    def heard(self, key: str, what: str) -> None:
        """A sign of life of the effect at `key`, in a line."""

    def told(self, what: str) -> None:
        """Something that a person should know at once, in a line."""

    async def asked(self, question: str) -> bool:
        """What the person says to a question; no, if there is none."""
        del question
        return False


NOBODY = Audience()
