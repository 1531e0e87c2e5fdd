"""
One command and what it shows, for programs that use the kernel by itself.

Planforge's own runs check a commit in a fresh checkout (`execution`). A script that
embeds the kernel often has one command and a directory; this runs it there and
says no more than what was seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from planforge.errors import CannotPerform
from planforge.kernel.evidence import Counts, Evidence, Outcome
from planforge.kernel.objects import Objects
from planforge.kernel.redaction import Redactor
from planforge.workspace import processes
from planforge.workspace.checks.judgement import Judgement, stopped
from planforge.workspace.processes import Ended

SECONDS = 300.0


def observe(
    command: Sequence[str],
    *,
    tree: str,
    tests: int,
    objects: Objects,
    cwd: Path | None = None,
    seconds: float = SECONDS,
    env: Mapping[str, str] | None = None,
) -> Evidence:
    """
    Run `command`, which stands for `tests` tests: all of them pass if it exits with 0, none if not.

    If it cannot be started, does not end within `seconds`, is killed, or stands for no test, the evidence
    cannot tell. It sees no more of our environment than `PATH` and its like, and `env`.
    """
    seen = observe_async(command, tree=tree, tests=tests, objects=objects, cwd=cwd, seconds=seconds, env=env)
    return asyncio.run(seen)


async def observe_async(
    command: Sequence[str],
    *,
    tree: str,
    tests: int,
    objects: Objects,
    cwd: Path | None = None,
    seconds: float = SECONDS,
    env: Mapping[str, str] | None = None,
) -> Evidence:
    """`observe`, for callers in an event loop."""
    try:
        ended = await processes.run(command, cwd=cwd or Path.cwd(), seconds=seconds, extra=env)
    except CannotPerform as error:
        ended = Ended(exit_code=None, output=error.message.encode(), seconds=0.0)
        outcome, reason = Outcome.CANNOT_TELL, error.message
    else:
        outcome, reason = _judged(ended.exit_code, tests, seconds)
    redact = Redactor.of_environment()
    passed = tests if outcome is Outcome.PASS else 0
    counts = Counts(total=tests, passed=passed, failed=tests - passed, skipped=0)
    return Evidence(
        check="command",
        outcome=outcome,
        reason=redact.text(reason),
        command=tuple(map(redact.text, command)),
        exit_code=ended.exit_code,
        counts=None if outcome is Outcome.CANNOT_TELL else counts,
        failing=(),
        commit="",
        tree=tree,
        output=objects.put(redact.octets(ended.output)),
        seconds=ended.seconds,
    )


def _judged(exit_code: int | None, tests: int, seconds: float) -> Judgement:
    if (end := stopped(exit_code, seconds)) is not None:
        return end
    if tests < 1:
        return Judgement(Outcome.CANNOT_TELL, "no test ran")
    return Judgement(Outcome.FAIL if exit_code else Outcome.PASS, f"exit code {exit_code}")
