"""The whole benchmark, for whoever asks for it: choose, run, score."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path

from planforge_guardrails import adapters, matrix, scores
from planforge_guardrails.matrix import Tell
from planforge_guardrails.scores import Report
from planforge_guardrails.shapes import Case


def measure(
    cases: Sequence[Case],
    *,
    orchestrator: str,
    baseline: bool,
    at_once: int,
    done: Path | None,
    settings: str,
    tell: Tell,
) -> Report:
    """Run these cases and say what they come to."""
    found = adapters.named(orchestrator)
    compared = adapters.BASELINE if baseline and orchestrator != adapters.BASELINE else None
    began = time.monotonic()
    jobs = matrix.jobs_for(cases, [orchestrator, *([compared] if compared else [])], settings=settings)
    seen = matrix.run(jobs, at_once=at_once, tell=tell, done=done)
    return scores.report(
        cases,
        seen,
        orchestrator=orchestrator,
        baseline=compared,
        description=found.describe(),
        machine=f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        wall_seconds=time.monotonic() - began,
    )
