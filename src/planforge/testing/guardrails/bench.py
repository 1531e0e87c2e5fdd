"""The whole benchmark, for whoever asks for it: choose, run, score."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path

from planforge.testing.guardrails import adapters, running, scoring
from planforge.testing.guardrails.running import Tell
from planforge.testing.guardrails.scoring import Report
from planforge.testing.guardrails.shapes import Case


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
    jobs = running.jobs_for(cases, [orchestrator, *([compared] if compared else [])], settings=settings)
    seen = running.run(jobs, at_once=at_once, tell=tell, done=done)
    return scoring.report(
        cases,
        seen,
        orchestrator=orchestrator,
        baseline=compared,
        description=found.describe(),
        machine=f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        wall_seconds=time.monotonic() - began,
    )
