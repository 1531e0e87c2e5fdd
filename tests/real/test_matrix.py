"""
Every agent, every check, the way Planforge asks: private home, sandbox, adapter, scripted model on loopback.

The checks are those of `planforge agent test`. Which of them cannot be told, and for whom, stands here, so
that a check which silently stops to be made is noticed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from planforge.app.conformance import Outcome, conform
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

NOT_TOLD: dict[str, set[str]] = {"opencode": {"usage"}, "pi": {"usage"}}
"""What cannot be told: one reports the usage of its last step only, one none at all."""

NOT_SO: dict[str, dict[str, str]] = {"opencode": {"error 429": "AgentTimedOut"}}
"""What an agent is known to do otherwise, and what is seen then: told to come again in an hour, one waits for
that hour without a word, so all that can be said is that its time was up."""


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
    found = asyncio.run(conform(agent, Settings()))
    outcomes = {Outcome.FAILED: "FAILED", Outcome.PASSED: "passed", Outcome.CANNOT_TELL: "cannot tell"}
    record_property(CHECKS, [(line.check, outcomes[line.outcome]) for line in found.checks])
    other = [line for line in found.checks if line.outcome is not Outcome.PASSED]
    record_property(REASONS, [f"{line.check}: {line.seen}" for line in other])
    untold = [line for line in other if line.outcome is Outcome.CANNOT_TELL]
    failed = {line.check: line.seen for line in found.checks if line.outcome is Outcome.FAILED}
    known = NOT_SO.get(agent, {})
    assert {check: seen for check, seen in failed.items() if not seen.startswith(known.get(check, "?"))} == {}
    assert failed.keys() == known.keys()
    assert {line.check for line in untold} == NOT_TOLD.get(agent, set())
