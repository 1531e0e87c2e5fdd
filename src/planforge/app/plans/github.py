"""
Asks GitHub through the person's own `gh`, as the person.

`gh` is started by its arguments, never by a shell, gets no terminal to ask questions on, and has only so long
and so much to say.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from planforge.errors import AgentUnauthenticated, AgentUnavailable, NotFound, PlanforgeError, TryLater

SECONDS = 60.0
GRACE = 5.0
"""How long it may take to end once it has closed its streams."""
SAID = 4096
"""How much of what it complains of is kept."""
NOT_LOGGED_IN = 4
"""The exit code of `gh` where a login is required."""

QUIET = {
    "GH_PROMPT_DISABLED": "1",
    "GH_NO_UPDATE_NOTIFIER": "1",
    "GH_PAGER": "cat",
    "NO_COLOR": "1",
    "CLICOLOR_FORCE": "0",
}


def ask(arguments: Sequence[str], *, cwd: Path, limit: int, seconds: float = SECONDS) -> bytes:
    """What `gh` prints for these arguments; refused in words if it is not there, not logged in, or fails."""
    program = shutil.which("gh")
    if program is None:
        hint = "install it from https://cli.github.com, then run `gh auth login`"
        raise AgentUnavailable("`gh` is not installed", hint)
    try:
        process = subprocess.Popen(
            [program, *arguments],
            cwd=cwd,
            env=os.environ | QUIET,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise AgentUnavailable(f"cannot start `{program}`: {error.strerror}") from error
    try:
        output, said = _heard(process, limit, time.monotonic() + seconds)
        code = process.wait(timeout=GRACE)
    except (TimeoutError, subprocess.TimeoutExpired):
        raise TryLater(f"`gh` did not answer within {seconds:g} s") from None
    finally:
        _end(process)
    if code:
        raise _refused(code, said.decode("utf-8", "replace"))
    return output


def _heard(process: subprocess.Popen[bytes], limit: int, until: float) -> tuple[bytes, bytes]:
    """What it prints, and the beginning of what it complains of."""
    assert process.stdout is not None
    assert process.stderr is not None
    heard = {process.stdout: bytearray(), process.stderr: bytearray()}
    output, said = heard.values()
    still = list(heard)
    while still:
        ready, _, _ = select.select(still, [], [], max(0.0, until - time.monotonic()))
        if not ready:
            raise TimeoutError
        for stream in ready:
            chunk = os.read(stream.fileno(), 65536)
            if not chunk:
                still.remove(stream)
            if stream is process.stdout or len(said) < SAID:
                heard[stream] += chunk
        if len(output) > limit:
            raise PlanforgeError(f"`gh` printed more than {limit} bytes")
    return bytes(output), bytes(said)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in filter(None, (process.stdout, process.stderr)):
        stream.close()


def _refused(code: int, said: str) -> PlanforgeError:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    first = "".join(filter(str.isprintable, lines[0]))[:300] if lines else f"it ended with {code}"
    if code == NOT_LOGGED_IN or "gh auth login" in said:
        return AgentUnauthenticated(f"`gh` is not logged in: {first}", "run `gh auth login`")
    return NotFound(f"`gh` refused: {first}")
