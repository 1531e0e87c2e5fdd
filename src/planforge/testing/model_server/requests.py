"""What the server remembers of a request, for a test to look at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A request that asked the model for something."""

    dialect: str
    """`anthropic`, `chat`, `responses` or `gemini`."""
    path: str
    model: str
    """The model that was asked for."""
    prompt: str
    """The latest words of the person, without what the program put among them."""
    history: tuple[str, ...]
    """All texts of the conversation as the program sent them, with calls and their results, in order."""
    system: str
    """What the program told the model besides."""
    tools: tuple[str, ...]
    """The names of the tools that were offered."""
    cwd: str
    """The directory that the program says it works in; empty if it does not say."""
    status: int
    """The status of the answer; 0 if there was none."""
    scene: int | None
    """The scene that was played, counted from 0; None for a request that no scene answers."""
    aside: bool
    """Whether it was asked by the way, such as for a title."""
    at: float
    """When it came, in seconds since 1970."""
