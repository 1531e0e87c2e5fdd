"""
Model APIs as an agent: a program of ours that speaks the Agent Client Protocol and asks a model itself.

`python -m planforge.agents.api --provider anthropic --model M` is started, confined, cancelled and charged
like every other agent. It needs the extra `planforge[api]`; nothing here loads it before the program runs.

`options` is its command line, `keys` keeps its key from what it starts, `providers` finds the model,
`server` is the protocol, `turns` one question and its answer, `toolset` and `tools/` what the model may
use, `histories` conversations on disk, `failures` what went wrong in words that a client can sort.
"""

from __future__ import annotations

from importlib.util import find_spec

from planforge.errors import AgentUnavailable

EXTRA = 'pip install "planforge[api]"'
"""How to get what this program is made of."""


def require() -> None:
    """Raise an error if the packages for model APIs are not installed."""
    if find_spec("pydantic_ai") is None:
        raise AgentUnavailable(
            "model APIs need the package `pydantic-ai-slim`, which is not installed", EXTRA
        )
