"""How full an agent's context is, as it says itself or as we guess."""

from __future__ import annotations

import msgspec

THRESHOLD = 100_000
"""At how many tokens in context an agent hands over, unless its profile says otherwise."""

CHARACTERS_PER_TOKEN = 4
"""The usual guess, for agents that do not say how full their context is."""


def estimate(characters: int) -> int:
    """How many tokens so many characters are likely to be, rounded up."""
    return -(-characters // CHARACTERS_PER_TOKEN)


class TokenState(msgspec.Struct, frozen=True, kw_only=True):
    """How full an agent's context is."""

    used: int
    threshold: int
    """Where it hands over; 0 if it never does."""
    estimated: bool
    """The agent did not say; the number is a guess."""

    @property
    def is_due(self) -> bool:
        """Whether it is time to hand over."""
        return 0 < self.threshold <= self.used

    def reported(self, used: int) -> TokenState:
        """The state as the agent reports it, which ends all guessing."""
        return TokenState(used=used, threshold=self.threshold, estimated=False)

    def guessed(self, characters: int) -> TokenState:
        """The state by our guess, unless the agent has reported one."""
        if not self.estimated:
            return self
        return TokenState(used=estimate(characters), threshold=self.threshold, estimated=True)
