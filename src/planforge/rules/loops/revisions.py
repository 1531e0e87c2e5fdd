"""
Revisions that are none: what was judged before, given back.

To judge the same once more costs a round and says the same. Spaces and line ends do not count as a change.
"""

from __future__ import annotations


class Revisions:
    """Everything that one loop has judged, in order."""

    def __init__(self) -> None:
        self._judged: list[str] = []

    def repeated(self, text: str, who: str) -> str:
        """Why there is nothing new to judge, in words; empty if there is, which is remembered."""
        normal = " ".join(text.split())
        if normal not in self._judged:
            self._judged.append(normal)
            return ""
        if normal == self._judged[-1]:
            return f"{who} changed nothing"
        return f"{who} went back to version {self._judged.index(normal) + 1}, which was judged before"
