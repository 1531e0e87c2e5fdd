"""
Runs the `planforge` command as a user would: a real process, from outside.

`planforge` and `started` fork it from a process that stands by; `COMMAND` starts it from nothing, as a shell
does.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import standby


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

PYTHON_SCRIPT = f"""\
#!/bin/sh
'''exec' {shlex.quote(sys.executable)} "$0" "$@"
' '''
"""
"""The first lines of a script in Python: what follows `#!` cannot name a path with a space."""

LOADED = standby.Standby(
    "planforge.agents.acp.conversation",
    "planforge.app.compose",
    *standby.modules("planforge.interfaces.cli"),
    *standby.modules("planforge.interfaces.cli.commands"),
)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of the tests, with an identity for git and without colours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PLANFORGE_"))}
    identity = {"GIT_CONFIG_COUNT": "0", "NO_COLOR": "1"}
    return kept | identity | dict(extra or {})


def planforge(
    *arguments: str, cwd: Path, extra: Mapping[str, str] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    process = started(*arguments, cwd=cwd, extra=extra, told=True)
    try:
        said = process.communicate(stdin, 120)
    except BaseException:
        process.kill()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, *said)


def started(
    *arguments: str, cwd: Path, extra: Mapping[str, str] | None = None, told: bool = False, heard: bool = True
) -> subprocess.Popen[str]:
    """Start one command and do not wait for it, with pipes to tell it something and to hear what it says."""
    env = environment(extra)
    if standby.POSSIBLE and not any(name.startswith("PYTHON") for name in extra or {}):
        return LOADED.open("planforge", arguments, cwd=cwd, env=env, told=told, heard=heard)
    stdin, out = (subprocess.PIPE if wanted else subprocess.DEVNULL for wanted in (told, heard))
    argv = [*COMMAND, *arguments]
    return subprocess.Popen(argv, cwd=cwd, env=env, stdin=stdin, stdout=out, stderr=out, text=True)


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
