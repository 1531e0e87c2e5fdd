"""
What a model can do in its worktree: look, find, change files, run commands. Nothing here knows of models.

Every path is kept inside the worktree, every answer is bounded. A tool that will not or cannot do what it
is asked raises `Refused`, whose text the model reads.
"""

from __future__ import annotations


class Refused(Exception):
    """A tool does not do what it was asked; the text says why, to the model."""
