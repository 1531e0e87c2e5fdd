"""Real programs that do not end, do not listen, do not stop talking or leave something behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planforge.errors import CannotPerform
from planforge.workspace import processes
from planforge.workspace.launch.trees import COOKIE
from planforge.workspace.processes import OUTPUT_LIMIT, PASSED_ON, Ended, Kept, environment, plain

PATIENCE = 30.0
"""How long a test waits for what must happen at once, so that a slow machine does not fail it."""

FOREVER = 600


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def run(
    argv: list[str], cwd: Path, seconds: float = PATIENCE, extra: Mapping[str, str] | None = None
) -> Ended:
    return asyncio.run(processes.run(argv, cwd=cwd, seconds=seconds, extra=extra))


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not collected does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def read_pids(file: Path, count: int) -> list[int]:
    wait_until(lambda: file.exists() and len(file.read_text().split()) == count)
    return [int(word) for word in file.read_text().split()]


@pytest.fixture
def noted(tmp_path: Path) -> Iterator[Path]:
    """A file for programs to note their ids in; whoever is noted there is gone after the test."""
    file = tmp_path / "noted"
    yield file
    for word in file.read_text().split() if file.exists() else []:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(word), signal.SIGKILL)


NOTE = "import os, signal, subprocess, sys, time; open('noted', 'a').write(f'{os.getpid()} '); "
SLEEP = f"time.sleep({FOREVER})"
STUBBORN = NOTE + f"signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"
FAMILY = NOTE + f"subprocess.Popen([sys.executable, '-c', {STUBBORN!r}]); "


# Running


def test_output_exit_code_and_time_are_observed(tmp_path: Path) -> None:
    ended = run(["sh", "-c", "echo out; echo err >&2; pwd; exit 3"], tmp_path)
    assert (ended.exit_code, ended.output) == (3, f"out\nerr\n{tmp_path}\n".encode())
    assert 0 <= ended.seconds < PATIENCE


def test_a_program_has_nothing_to_read(tmp_path: Path) -> None:
    assert run(["cat"], tmp_path).output == b""


def test_a_death_by_signal_is_a_negative_exit_code(tmp_path: Path) -> None:
    assert run(["sh", "-c", "kill -SEGV $$"], tmp_path).exit_code == -signal.SIGSEGV


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["no-such-program"], "cannot start `no-such-program`: No such file or directory"),
        (["/"], "cannot start `/`: Permission denied"),
        (["nul\0byte"], r"cannot start `'nul\x00byte'`: embedded null byte"),
        ([], "cannot start a command that is empty"),
    ],
)
def test_what_cannot_be_started_says_so(tmp_path: Path, argv: list[str], message: str) -> None:
    with pytest.raises(CannotPerform) as caught:
        run(argv, tmp_path)
    assert caught.value.message == message


def test_the_environment_is_the_short_list_and_what_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SECRET_TOKEN", "GIT_DIR", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH"):
        monkeypatch.setenv(name, "leaked")
    monkeypatch.setenv("TZ", "UTC")
    lines = run(["env"], tmp_path, extra={"GIVEN": "yes", "HOME": "/given"}).output.decode().splitlines()
    seen = dict(line.split("=", 1) for line in lines)
    assert set(seen) <= {*PASSED_ON, "GIVEN", COOKIE} | {"PWD", "SHLVL", "_"}
    assert (seen["GIVEN"], seen["HOME"], seen["TZ"]) == ("yes", "/given", "UTC")
    assert seen["PATH"] == os.environ["PATH"]
    assert "leaked" not in seen.values()
    assert set(environment()) <= set(PASSED_ON)


# Output


def test_endless_output_is_cut_in_the_middle_and_does_not_fill_the_memory(tmp_path: Path) -> None:
    code = "import sys; w = sys.stdout.buffer.write; w(b'first\\n'); w(b'x' * 20_000_000); w(b'\\nlast')"
    ended = run(python(code), tmp_path)
    assert ended.exit_code == 0
    assert ended.output.startswith(b"first\nxxx")
    assert ended.output.endswith(b"xxx\nlast")
    assert b"\n[15805707 bytes left out]\n" in ended.output
    assert len(ended.output) <= OUTPUT_LIMIT + 100


@given(chunks=st.lists(st.binary(max_size=40), max_size=20), limit=st.integers(0, 60))
def test_what_is_kept_is_the_beginning_and_the_end_and_says_how_much_is_missing(
    chunks: list[bytes], limit: int
) -> None:
    kept = Kept(limit)
    for chunk in chunks:
        kept.add(chunk)
    whole, half = b"".join(chunks), limit // 2
    if len(whole) <= 2 * half:
        assert kept.content() == whole
    else:
        gap = f"\n[{len(whole) - 2 * half} bytes left out]\n".encode()
        assert kept.content() == whole[:half] + gap + whole[len(whole) - half :]


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (b"plain\n\tindented\r\n", "plain\n\tindented\n"),
        (b"\x1b[31mred\x1b[0m \x1b]0;title\x07and \x1b]8;;http://x\x1b\\link\x1b[2J", "red and link"),
        (b"over\rwritten \x00 \x07 \x08 \xc2\x9b31m", "over written        31m"),
        ("left\N{RIGHT-TO-LEFT OVERRIDE}right".encode(), "left right"),
        (b"\xff\xfe", "\N{REPLACEMENT CHARACTER}" * 2),
        (b"x" * 12, "xxxxxxxxxx [2 characters left out]"),
        (b"\x1b[" + b"1" * 50, ""),
    ],
)
def test_what_is_shown_is_text_that_moves_no_cursor_in_lines_that_end(output: bytes, shown: str) -> None:
    assert plain(output, limit=10 if output.startswith(b"x") else 100) == shown


def test_one_endless_line_of_anything_is_cut(tmp_path: Path) -> None:
    ended = run(["head", "-c", "30000000", "/dev/urandom"], tmp_path)
    assert ended.exit_code == 0
    assert len(ended.output) <= OUTPUT_LIMIT + 100
    assert max(map(len, plain(b"y" * 10_000_000).splitlines())) < 2100


# Ending


def test_when_time_is_up_the_whole_group_goes_even_a_child_that_ignores_being_asked(
    tmp_path: Path, noted: Path
) -> None:
    ended = run(python(f"{FAMILY} print('here', flush=True); {STUBBORN}"), tmp_path, seconds=2.0)
    assert ended.exit_code is None
    assert ended.output == b"here\n\n[ended after 2 s]\n"
    pids = read_pids(noted, 3)
    wait_until(lambda: not any(map(alive, pids)))


def test_a_cancelled_run_takes_the_whole_group_with_it(tmp_path: Path, noted: Path) -> None:
    async def cancelled() -> list[int]:
        task = asyncio.create_task(processes.run(python(f"{FAMILY} {SLEEP}"), cwd=tmp_path, seconds=FOREVER))
        pids = await asyncio.to_thread(read_pids, noted, 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return pids

    pids = asyncio.run(cancelled())
    wait_until(lambda: not any(map(alive, pids)))


def test_what_a_program_leaves_in_its_group_ends_with_it_and_is_not_waited_for(
    tmp_path: Path, noted: Path
) -> None:
    code = f"{FAMILY}\nwhile len(open('noted').read().split()) < 2: pass\nprint('done')"
    ended = run(python(code), tmp_path)
    assert (ended.exit_code, ended.output) == (0, b"done\n")
    pids = read_pids(noted, 2)
    wait_until(lambda: not any(map(alive, pids)))


@pytest.mark.parametrize(("ending", "exit_code"), [("print('done')", 0), (SLEEP, None)])
def test_what_left_the_group_cannot_hold_us_up(
    tmp_path: Path, noted: Path, ending: str, exit_code: int | None
) -> None:
    code = (
        f"{NOTE} subprocess.Popen([sys.executable, '-c', {STUBBORN!r}], start_new_session=True)\n"
        f"while len(open('noted').read().split()) < 2: pass\n{ending}"
    )
    started = time.monotonic()
    assert run(python(code), tmp_path, seconds=PATIENCE if exit_code == 0 else 2.0).exit_code == exit_code
    assert time.monotonic() - started < PATIENCE
    assert not any(map(alive, read_pids(noted, 2)))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt what is left below it")
def test_a_daemon_that_forgot_everything_about_us_ends_with_the_program(tmp_path: Path, noted: Path) -> None:
    daemon = f"{NOTE} os.environ.clear(); {STUBBORN}"
    code = (
        f"{NOTE}\nif os.fork() == 0:\n    os.setsid()\n    if os.fork():\n        os._exit(0)\n"
        f"    os.execve(sys.executable, [sys.executable, '-c', {daemon!r}], {{}})\n"
        "while len(open('noted').read().split()) < 3: pass"
    )
    assert run(python(code), tmp_path).exit_code == 0
    assert not any(map(alive, read_pids(noted, 3)))


def test_why_a_program_was_ended_is_said_apart_from_what_it_printed(tmp_path: Path) -> None:
    ended = run(["sleep", "600"], tmp_path, seconds=0.5)
    assert (ended.exit_code, ended.why) == (None, "it did not end within 0.5 s")


def test_a_program_that_closes_its_output_is_still_waited_for(tmp_path: Path) -> None:
    code = "import os, time; os.close(1); os.close(2); time.sleep(0.3); open('late', 'w'); os._exit(4)"
    assert run(python(code), tmp_path).exit_code == 4
    assert (tmp_path / "late").exists()


def test_many_at_once_leave_nothing_behind(tmp_path: Path, noted: Path) -> None:
    async def several() -> list[Ended]:
        argv = python(f"{NOTE} print(os.getpid())")
        runs = (processes.run(argv, cwd=tmp_path, seconds=PATIENCE) for _ in range(6))
        ended = await asyncio.gather(*runs)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return ended

    ended = asyncio.run(several())
    assert [one.exit_code for one in ended] == [0] * 6
    assert not any(map(alive, read_pids(noted, 6)))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent died")
def test_after_a_kill_of_the_parent_the_child_is_gone(tmp_path: Path, noted: Path) -> None:
    code = (
        "import asyncio, pathlib, sys\n"
        "from planforge.workspace import processes\n"
        "argv = [sys.executable, '-c', sys.argv[1]]\n"
        "asyncio.run(processes.run(argv, cwd=pathlib.Path.cwd(), seconds=600))\n"
    )
    parent = subprocess.Popen([*python(code), STUBBORN], cwd=tmp_path)
    try:
        [child] = read_pids(noted, 1)
        assert alive(child)
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: not alive(child))
