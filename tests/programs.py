"""Runs the `planforge` command as a user would: a real process, from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest


class Told(NamedTuple):
    """A demo that was played to its end."""

    root: Path
    document: dict[str, Any]
    progress: str


counts_skipped = pytest.mark.skipif(
    sys.version_info[:3] == (3, 12, 1),
    reason="the unittest of Python 3.12.1 leaves skipped tests out of its count",
)

COMMAND = [sys.executable, "-m", "planforge"]


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of the tests, with an identity for git and without colours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PLANFORGE_"))}
    identity = {"GIT_CONFIG_COUNT": "0", "NO_COLOR": "1"}
    return kept | identity | dict(extra or {})


def planforge(
    *arguments: str, cwd: Path, extra: Mapping[str, str] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=environment(extra),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def python(code: str, *, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a few lines of Python in a process of their own."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def document(*arguments: str, cwd: Path) -> Any:
    """What a command prints with `--json`."""
    process = planforge(*arguments, "--json", cwd=cwd)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)
