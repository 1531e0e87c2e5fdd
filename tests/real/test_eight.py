"""Eight real agents at once on one server: each has a home of its own, nothing gets across, all finish."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planforge.app import compose
from planforge.app.agents.casting import Cast
from planforge.app.project import Project
from planforge.app.runs.leasing import Leasing
from planforge.kernel.driver import Call
from planforge.kernel.effects import Access, AgentAnswer, OpenWorktree, RunAgent
from planforge.testing.model_server import ModelServer
from real.conftest import PROGRAM, Programs
from repositories import git, repository

EIGHT = (*("claude-cli", "codex-cli") * 2, "claude-acp", "codex-acp", "gemini", "claude-cli")
PROGRAMS = {
    "claude-cli": "claude",
    "codex-cli": "codex",
    "claude-acp": "claude-agent-acp",
    "codex-acp": "codex-acp",
    "gemini": "gemini",
}
SECONDS = 240.0
RUN = "run-001"
SCRIPT = {
    "name": "eight",
    "scenes": [
        {
            "when": ["You are number"],
            "match": {"secret": r"the secret (\w+)"},
            "do": [
                {"usage": {"input": 100, "output": 10}},
                {"write": {"path": "mine.txt", "text": "${secret}\n"}},
                {"usage": {"input": 100, "output": 10}},
                {"say": "I keep ${secret}."},
            ],
        }
    ],
}


def secret(number: int) -> str:
    """Something that nothing else holds."""
    return f"secret{number}of{number * 7919 + 104729}"


async def at_work(project: Project, url: str) -> list[AgentAnswer]:
    """All of them at once, through what performs `RunAgent` in a run."""
    base = git(project.root, "rev-parse", "HEAD")

    async def one(number: int, agent: str) -> AgentAnswer:
        cast = Cast(agent=agent, endpoint=url)
        worker = compose.Worker(project, RUN, "plan-001", Leasing(project, RUN), cast=cast)
        call = Call(run=RUN, key=f"/{number}", intended_at="2026-01-01T00:00:00+00:00", resumed=False)
        name = f"agent-{number}"
        await worker.open_worktree(OpenWorktree(name=name, commit=base), call)
        effect = RunAgent(
            role="developer",
            access=Access.WRITE,
            worktree=name,
            base=base,
            prompt=f"You are number {number}. Write the secret {secret(number)} into `mine.txt` and say it.",
            session=f"eight:{number}",
        )
        return await worker.run_agent(effect, call)

    return list(await asyncio.gather(*(one(number, agent) for number, agent in enumerate(EIGHT))))


def holding(directory: Path, words: bytes) -> list[str]:
    """The files beneath a directory that hold these words."""
    return [
        str(path)
        for path in directory.rglob("*")
        if path.is_file() and not path.is_symlink() and words in path.read_bytes()
    ]


@pytest.mark.check("eight at once")
def test_eight_agents_at_once_have_homes_of_their_own_and_all_finish(
    programs: Programs,
    server: Callable[[Any], ModelServer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    for agent in sorted(set(EIGHT)):
        assert programs[PROGRAMS[agent]].exists()
    record_property(PROGRAM, "eight")
    monkeypatch.setenv("PATH", programs.path)
    model = server(SCRIPT)
    project = Project.create(repository(tmp_path / "project"))
    began = time.monotonic()
    answers = asyncio.run(asyncio.wait_for(at_work(project, model.url), SECONDS))
    taken = time.monotonic() - began
    assert [answer.agent for answer in answers] == list(EIGHT)
    for number, answer in enumerate(answers):
        assert answer.text.strip().endswith(f"I keep {secret(number)}.")
        assert answer.usage is not None
        assert (answer.usage.input_tokens, answer.usage.output_tokens) == (200, 20)
        worktree = project.state / "worktrees" / RUN / f"agent-{number}"
        assert (worktree / "mine.txt").read_text() == f"{secret(number)}\n"
    homes = sorted((project.state / "homes" / RUN).glob("*/*"))
    assert len(homes) == len(EIGHT)
    for number in range(len(EIGHT)):
        of_own = [home for home in homes if holding(home, secret(number).encode())]
        assert len(of_own) == 1, f"what number {number} was told lies in {of_own}"
    for request in model.requests:
        told = "\n".join(request.history)
        assert sum(secret(number) in told for number in range(len(EIGHT))) <= 1
    assert taken < SECONDS
