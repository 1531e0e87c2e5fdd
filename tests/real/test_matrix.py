"""
Every agent, every check, the way Planforge asks: private home, sandbox, adapter, scripted model on loopback.

The checks are those of `planforge agent test`. Which of them cannot be told, and for whom, stands here, so
that a check which silently stops to be made is noticed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from planforge.app.agents.conformance import conform
from planforge.app.agents.conformance.outcomes import Outcome
from planforge.app.settings import Settings
from real.conftest import CHECKS, PROGRAM, REASONS, Programs

AGENTS = {
    "claude-cli": ("claude",),
    "claude-acp": ("claude-agent-acp",),
    "codex-cli": ("codex",),
    "codex-acp": ("codex-acp",),
    "gemini": ("gemini",),
    "opencode": ("opencode",),
    "pi": ("pi-acp", "pi"),
}
"""By name, with the programs that each one needs."""

NOT_TOLD: dict[str, set[str]] = {"pi": {"usage"}}
"""What cannot be told: it reports no usage."""

ONLY = {"opencode": ("write", "read-only", "cancel")}
"""An agent that takes many seconds to start is asked the rest by `test_acp.py` alone."""


@pytest.mark.parametrize("agent", AGENTS)
def test_the_agent_conforms(
    agent: str,
    programs: Programs,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    for program in AGENTS[agent]:
        _ = programs[program]
    record_property(PROGRAM, agent)
    monkeypatch.setenv("PATH", programs.path)
    found = asyncio.run(conform(agent, Settings(), only=ONLY.get(agent, ())))
    outcomes = {Outcome.FAILED: "FAILED", Outcome.PASSED: "passed", Outcome.CANNOT_TELL: "cannot tell"}
    record_property(CHECKS, [(line.check, outcomes[line.outcome]) for line in found.checks])
    other = [line for line in found.checks if line.outcome is not Outcome.PASSED]
    record_property(REASONS, [f"{line.check}: {line.seen}" for line in other])
    untold = [line for line in other if line.outcome is Outcome.CANNOT_TELL]
    assert [line for line in other if line.outcome is Outcome.FAILED] == []
    assert {line.check for line in untold} == NOT_TOLD.get(agent, set())
