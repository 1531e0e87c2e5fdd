"""Commands that a model runs: real ones, and what they leave behind."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from pathlib import Path

import pytest

from planforge.agents.api.tools import shell
from planforge.agents.api.tools.shell import Ended

PYTHON = shlex.quote(sys.executable)

ENVIRONMENT = {"PATH": os.environ["PATH"]}


def run(command: str, cwd: Path, *, seconds: float = 30.0, cancel_after: float = 0.0) -> Ended:
    async def running() -> Ended:
        argv = ["/bin/sh", "-c", command]
        task = asyncio.ensure_future(shell.run(argv, cwd=cwd, env=ENVIRONMENT, seconds=seconds))
        if cancel_after:
            await asyncio.sleep(cancel_after)
            task.cancel()
        return await task

    return asyncio.run(running())


def lives(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def ends(pid: int) -> bool:
    for _ in range(100):
        if not lives(pid):
            return True
        time.sleep(0.02)
    return False


def test_a_command_says_how_it_ended_and_what_it_said_on_both_streams(tmp_path: Path) -> None:
    assert run("pwd; echo oh >&2; exit 3", tmp_path) == Ended(code=3, output=f"{tmp_path}\noh\n")


def test_a_command_has_nobody_to_ask(tmp_path: Path) -> None:
    assert run("cat; echo done", tmp_path).output == "done\n"


def test_much_output_is_kept_at_both_ends(tmp_path: Path) -> None:
    output = run(f"echo first; {PYTHON} -c \"print('x' * 300000)\"; echo last", tmp_path).output
    assert output.startswith("first\n")
    assert output.endswith("last\n")
    assert "bytes left out" in output
    assert len(output) < 2 * shell.KEPT + 100


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    assert run(r"printf '\377\000a'", tmp_path).output == "��a"


def test_a_command_that_has_had_its_time_is_ended_with_what_it_started(tmp_path: Path) -> None:
    began = time.monotonic()
    ended = run("echo begun; sleep 600 & echo $! > pid; wait", tmp_path, seconds=1.0)
    assert ended.timed_out
    assert ended.output == "begun\n"
    assert time.monotonic() - began < 20
    assert ends(int((tmp_path / "pid").read_text()))


def test_a_command_does_not_wait_for_what_it_leaves_and_leaves_nothing(tmp_path: Path) -> None:
    began = time.monotonic()
    assert run("sleep 600 & echo $! > pid; echo done", tmp_path).output == "done\n"
    assert time.monotonic() - began < 20
    assert ends(int((tmp_path / "pid").read_text()))


DETACHED = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
open("pid", "w").write(str(os.getpid()))
time.sleep(600)
"""


@pytest.mark.skipif(not shell.LINUX, reason="needs /proc")
def test_what_left_its_session_and_its_parents_is_ended_too(tmp_path: Path) -> None:
    (tmp_path / "daemon.py").write_text(DETACHED)
    run(f"{PYTHON} daemon.py; while ! test -s pid; do sleep 0.05; done", tmp_path)
    assert ends(int((tmp_path / "pid").read_text()))


@pytest.mark.skipif(not shell.LINUX, reason="needs /proc")
def test_a_cancelled_command_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "daemon.py").write_text(DETACHED)
    with pytest.raises(asyncio.CancelledError):
        run(f"{PYTHON} daemon.py; echo $$ > shell; sleep 600", tmp_path, cancel_after=2.0)
    assert ends(int((tmp_path / "pid").read_text()))
    assert ends(int((tmp_path / "shell").read_text()))
