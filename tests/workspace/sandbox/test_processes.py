"""Programs that want to outlive us or to use up the machine, at every level that is meant to prevent it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from planforge.errors import CannotPerform
from planforge.workspace import processes, sandbox
from planforge.workspace.launch import trees
from planforge.workspace.processes import OUTPUT_LIMIT, Ended, cookies, limits
from planforge.workspace.sandbox import Level, Policy
from workspace.sandbox.confining import PATIENCE, forget_levels, required

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="process trees are looked for in Linux's way")

HOLDING = (Level.BUBBLEWRAP, Level.LANDLOCK, Level.PROCESSES)
"""The levels that promise to leave no process behind."""

FOREVER = 600


class Room:
    """A directory to work in, and a mark by which everything that was started there is known."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.mark = f"mark-{os.urandom(8).hex()}"

    def left(self) -> list[int]:
        """Every process that runs and has the mark among its arguments."""
        found = []
        for pid, row in trees.table().items():
            with contextlib.suppress(OSError):
                if row.running and self.mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return [pid for pid in found if pid != os.getpid()]

    def python(self, code: str) -> list[str]:
        return [sys.executable, "-c", f"import os, signal, subprocess, sys, time\n{code}", self.mark]

    def policy(self, **changes: object) -> Policy:
        plain = Policy(writable=(self.directory,), records=self.directory / "state" / "processes")
        return msgspec.structs.replace(plain, **changes)

    async def go(
        self, argv: list[str], level: Level, policy: Policy | None = None, seconds: float = PATIENCE
    ) -> Ended:
        return await processes.run(
            argv, cwd=self.directory, seconds=seconds, policy=policy or self.policy(), level=level
        )

    def run(self, code: str, level: Level, policy: Policy | None = None, seconds: float = PATIENCE) -> Ended:
        return asyncio.run(self.go(self.python(code), level, policy, seconds))

    def until(self, count: int, process: subprocess.Popen[bytes] | None = None) -> None:
        """Wait until so many are up, while the process lives that is to start them."""
        deadline = time.monotonic() + PATIENCE
        while len(list(self.directory.glob("up-*"))) < count:
            assert time.monotonic() < deadline, "waited in vain"
            assert process is None or process.poll() is None
            time.sleep(0.01)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    made = Room(tmp_path / "work")
    made.directory.mkdir()
    yield made
    for pid in made.left():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


UP = "open(f'up-{os.getpid()}', 'w').close(); "
SLEEP = f"time.sleep({FOREVER})\n"
STUBBORN = f"[signal.signal(n, signal.SIG_IGN) for n in (signal.SIGTERM, signal.SIGHUP)]; {UP}{SLEEP}"
FORKED = "if os.fork() == 0:\n    "
DETACHED = f"{FORKED}os.setsid()\n    if os.fork(): os._exit(0)\n    "

CHILDREN = {
    "a child": f"{FORKED}{STUBBORN}",
    "a session": f"{FORKED}os.setsid(); {STUBBORN}",
    "a daemon": f"{DETACHED}{STUBBORN}",
    "a stranger": (  # a daemon without our cookie and without our streams
        f"{DETACHED}null = os.open('/dev/null', 2); [os.dup2(null, n) for n in range(3)]\n"
        '    code = \'import os, time; open("up-stranger", "w").close(); time.sleep(600)\'\n'
        "    os.execve(sys.executable, [sys.executable, '-c', code, sys.argv[1]], {})\n"
    ),
}
WAIT = "while not [name for name in os.listdir() if name.startswith('up-')]: time.sleep(0.01)\n"


STARTING = """
import asyncio, os, sys, time
from pathlib import Path
from planforge.workspace import processes
from planforge.workspace.processes import limits
from planforge.workspace.sandbox import Level, Policy

os.register_at_fork(after_in_child=lambda: time.sleep(600))
place, limits.PROGRAM = Path.cwd(), sys.argv[2] or limits.PROGRAM
policy = Policy(writable=(place,))
running = processes.run(["echo", "here"], cwd=place, seconds=60, policy=policy, level=Level(sys.argv[1]))
print(asyncio.run(running).output.decode(), end="")
"""
"""In forks of it Python never comes to anything, as where a thread held what a fork has to wait for."""


@pytest.mark.parametrize(
    ("level", "limiter"),
    [*((level, "") for level in Level), (Level.BUBBLEWRAP, "planforge-has-no-such-program")],
)
def test_a_program_is_started_without_any_code_of_ours_in_a_fork(
    room: Room, level: Level, limiter: str
) -> None:
    required(level)
    argv = [sys.executable, "-c", STARTING, level.value, limiter, room.mark]
    ended = subprocess.run(argv, cwd=room.directory, capture_output=True, timeout=PATIENCE, check=True)
    assert ended.stdout == b"here\n"


# Nothing is left


@pytest.mark.parametrize("kind", CHILDREN)
@pytest.mark.parametrize("level", HOLDING)
def test_when_a_program_ends_by_itself_nothing_of_it_is_left(room: Room, level: Level, kind: str) -> None:
    required(level)
    ended = room.run(f"{CHILDREN[kind]}{WAIT}print('done', flush=True)\nos._exit(3)", level)
    assert room.left() == []
    assert (ended.exit_code, ended.output, ended.why, ended.sandbox) == (3, b"done\n", "", level)
    assert list(room.directory.glob("state/processes/*")) == []


@pytest.mark.parametrize("level", HOLDING)
def test_when_time_is_up_nothing_is_left_of_all_kinds_of_children_at_once(room: Room, level: Level) -> None:
    required(level)
    ended = room.run(f"{''.join(CHILDREN.values())}{STUBBORN}", level, seconds=2.5)
    assert room.left() == []
    assert (ended.exit_code, ended.why) == (None, "it did not end within 2.5 s")


@pytest.mark.parametrize("level", HOLDING)
def test_when_a_run_is_called_off_nothing_is_left_of_it(room: Room, level: Level) -> None:
    required(level)

    async def called_off() -> None:
        task = asyncio.create_task(room.go(room.python(f"{CHILDREN['a daemon']}{STUBBORN}"), level))
        await asyncio.to_thread(room.until, 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(called_off())
    assert room.left() == []
    assert list(room.directory.glob("state/processes/*")) == []


DRIVER = (
    "import asyncio, pathlib, sys\n"
    "from planforge.workspace import processes\n"
    "from planforge.workspace.sandbox import Level, Policy\n"
    "here = pathlib.Path.cwd()\n"
    "policy = Policy(writable=(here,), records=here / 'state' / 'processes')\n"
    "argv = [sys.executable, '-c', sys.argv[2], sys.argv[3]]\n"
    "asyncio.run(processes.run(argv, cwd=here, seconds=600, policy=policy, level=Level(sys.argv[1])))\n"
)


def driver(room: Room, level: Level) -> subprocess.Popen[bytes]:
    """Another Planforge, with a program that has two daemons up and running."""
    program = room.python(f"{CHILDREN['a daemon']}{CHILDREN['a stranger']}{STUBBORN}")
    process = subprocess.Popen([sys.executable, "-c", DRIVER, level, *program[2:]], cwd=room.directory)
    room.until(3, process)
    return process


@pytest.mark.parametrize("level", HOLDING)
def test_after_a_kill_of_planforge_nothing_survives(room: Room, level: Level) -> None:
    required(level)
    process = driver(room, level)
    assert len(room.left()) >= 4
    process.kill()
    process.wait()
    deadline = time.monotonic() + PATIENCE
    while room.left():
        assert time.monotonic() < deadline, "something survived"
        time.sleep(0.01)
    assert len(list(room.directory.glob("state/processes/*"))) == 1
    assert cookies.sweep(room.directory / "state") == ()
    assert list(room.directory.glob("state/processes/*")) == []


def test_what_survives_even_that_is_found_by_the_next_sweep(room: Room) -> None:
    """As when all of Planforge's own processes go at once, for want of memory or with their terminal."""
    process = driver(room, Level.PROCESSES)
    assert cookies.sweep(room.directory / "state") == ()  # whoever started it is there to end it
    [launcher] = [pid for pid, row in trees.table().items() if row.parent == process.pid]
    os.kill(process.pid, signal.SIGSTOP)
    os.kill(launcher, signal.SIGKILL)
    process.kill()
    process.wait()
    survivors = room.left()
    assert survivors
    swept = cookies.sweep(room.directory / "state")
    assert [(one.program, one.processes >= 1) for one in swept] == [(sys.executable, True)]
    stranger = [pid for pid in room.left() if b"up-stranger" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert room.left() == stranger  # it threw its cookie away and lost its keeper: docs/sandbox.md says so
    assert cookies.sweep(room.directory / "state") == ()


def test_a_program_whose_starter_is_gone_before_it_is_confined_never_begins(room: Room) -> None:
    required(Level.BUBBLEWRAP)
    hears, tells = os.pipe()
    os.close(hears)  # as if whoever would be told had died
    cookie, records = cookies.make(), room.directory / "processes"
    records.mkdir()
    record = cookies.Record(cookie=cookie, program="x", owner=(os.getpid(), 0), boot=cookies._boot())
    (records / cookie).write_bytes(msgspec.json.encode(record))
    env = {trees.COOKIE: cookie, "PATH": os.environ["PATH"], "HOME": str(room.directory)}
    confined = sandbox.confine(
        ["touch", "begun"],
        cwd=room.directory,
        env=env,
        policy=room.policy(),
        level=Level.BUBBLEWRAP,
        status=tells,
    )
    try:
        ended = subprocess.run(
            confined.argv,
            cwd=room.directory,
            env=confined.env,
            pass_fds=(tells,),
            timeout=PATIENCE,
            check=False,
        )
    finally:
        os.close(tells)
    assert ended.returncode != 0
    cookies.sweep(room.directory)  # what there is of the sandbox waits for a word to begin
    assert trees.bearing(cookie) == set()
    assert not (room.directory / "begun").exists()


# Nobody else is hit


def test_a_process_that_has_the_id_of_another_is_left_alone(room: Room) -> None:
    innocent = subprocess.Popen(["sleep", str(FOREVER), room.mark][:2])
    try:
        known = trees.identity(innocent.pid)
        assert known is not None
        trees.send((innocent.pid, known[1] - 1), signal.SIGKILL)
        records = room.directory / "processes"
        records.mkdir()
        cookie = "ab" * 16
        record = cookies.Record(
            cookie=cookie, program="x", owner=(innocent.pid, known[1] - 1), boot=cookies._boot()
        )
        (records / cookie).write_bytes(msgspec.json.encode(record))
        assert cookies.sweep(room.directory) == ()
        assert not (records / cookie).exists()
        assert innocent.poll() is None
        trees.send(known, signal.SIGKILL)
        assert innocent.wait(PATIENCE) == -signal.SIGKILL
    finally:
        innocent.kill()
        innocent.wait()


def test_a_record_of_another_life_of_the_machine_ends_nobody(room: Room) -> None:
    cookie = "cd" * 16
    bearer = subprocess.Popen(["sleep", str(FOREVER)], env={trees.COOKIE: cookie, "PATH": os.defpath})
    try:
        records = room.directory / "processes"
        records.mkdir()
        record = cookies.Record(cookie=cookie, program="x", owner=(1, 0), boot="another")
        (records / cookie).write_bytes(msgspec.json.encode(record))
        (records / "abc").write_text("not a record")
        assert cookies.sweep(room.directory) == ()
        assert bearer.poll() is None
        assert [path.name for path in records.iterdir()] == ["abc"]
    finally:
        bearer.kill()
        bearer.wait()


def test_programs_side_by_side_end_without_each_other(room: Room) -> None:
    required(Level.PROCESSES)

    async def side_by_side() -> tuple[Ended, ...]:
        long = room.python(f"{CHILDREN['a daemon']}{WAIT}time.sleep(2)\nprint(len(os.listdir('.')) > 0)")
        short = [room.python(f"{CHILDREN['a session']}{WAIT}") for _ in range(3)]
        return tuple(await asyncio.gather(*(room.go(argv, Level.PROCESSES) for argv in (long, *short))))

    ended = asyncio.run(side_by_side())
    assert [one.exit_code for one in ended] == [0] * 4
    assert ended[0].output == b"True\n"
    assert room.left() == []


def test_a_process_whose_first_thread_has_ended_is_not_taken_for_dead(room: Room) -> None:
    required(Level.PROCESSES)
    hidden = (
        "if os.fork() == 0:\n"
        "    import ctypes, threading\n"
        f"    threading.Thread(target=lambda: time.sleep({FOREVER})).start()\n"
        f"    {UP} ctypes.CDLL(None).syscall(60, 0)\n"  # `exit` for this thread alone
    )
    if os.uname().machine != "x86_64":
        pytest.skip("the number of the system call is that of another machine")
    room.run(f"{hidden}{WAIT}time.sleep(0.3)", Level.PROCESSES)
    [pid] = [int(path.name.removeprefix("up-")) for path in room.directory.glob("up-*")]
    threads = Path(f"/proc/{pid}/task").glob("*/stat")
    assert {path.read_bytes().rpartition(b")")[2].split()[0] for path in threads} <= {b"Z", b"X"}


def test_a_process_whose_first_thread_has_ended_still_has_its_cookie(room: Room) -> None:
    code = (
        "import ctypes, os, threading, time\n"
        f"threading.Thread(target=lambda: time.sleep({FOREVER})).start()\n"
        f"{UP} ctypes.CDLL(None).syscall(60, 0)\n"
    )
    if os.uname().machine != "x86_64":
        pytest.skip("the number of the system call is that of another machine")
    cookie = "ef" * 16
    env = {trees.COOKIE: cookie, "PATH": os.defpath}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=room.directory, env=env)
    try:
        room.until(1)
        deadline = time.monotonic() + PATIENCE
        while Path(f"/proc/{process.pid}/cmdline").read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert [pid for pid, _ in trees.bearing(cookie)] == [process.pid]
    finally:
        process.kill()
        process.wait()


# Bounds


@pytest.mark.parametrize("setsid", [False, True], ids=["one group", "a session each"])
@pytest.mark.parametrize("level", HOLDING)
def test_a_bomb_of_processes_is_defused(room: Room, level: Level, setsid: bool) -> None:
    required(level)
    bomb = (
        "for generation in range(9):\n"  # it ends by itself, in case we do not end it
        "    try:\n"
        "        if os.fork() == 0:\n"
        f"            {'os.setsid()' if setsid else 'pass'}\n"
        "    except OSError: break\n"  # the kernel had enough first
        f"{SLEEP}"
    )
    ended = room.run(bomb, level, room.policy(processes=60))
    assert room.left() == []
    assert (ended.exit_code, ended.why) == (None, "it had more than 60 processes at once")
    assert ended.output.endswith(b"\n[ended: it had more than 60 processes at once]\n")


@pytest.mark.parametrize("level", HOLDING)
def test_a_program_that_takes_all_memory_is_ended_and_told_why(room: Room, level: Level) -> None:
    required(level)
    hog = (
        "import array\nkept = []\nfor _ in range(60):\n    kept.append(b'x' * 10_000_000); time.sleep(0.02)\n"
    )
    ended = room.run(f"{hog}{SLEEP}", level, room.policy(memory_bytes=150 * 2**20))
    assert (ended.exit_code, ended.why) == (None, "it used more than 150 MiB of memory")
    assert room.left() == []


def test_memory_that_children_share_is_counted_once(room: Room) -> None:
    required(Level.PROCESSES)
    family = (
        "kept = b'x' * 100_000_000\n"
        "for _ in range(4):\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(2); os._exit(0)\n"
        "time.sleep(1.5)\nprint('well')"
    )
    ended = room.run(family, Level.PROCESSES, room.policy(memory_bytes=250 * 2**20))
    assert (ended.exit_code, ended.output, ended.why) == (0, b"well\n", "")


def test_a_started_program_that_uses_too_much_says_why_when_asked(room: Room) -> None:
    required(Level.BUBBLEWRAP)

    async def asked() -> str:
        pipe = asyncio.subprocess.PIPE
        process = await processes.start(
            room.python(f"kept = b'x' * 200_000_000\n{SLEEP}"),
            cwd=room.directory,
            extra={},
            stdin=pipe,
            stderr=pipe,
            policy=room.policy(memory_bytes=100 * 2**20),
            level=Level.BUBBLEWRAP,
        )
        try:
            await processes.exited(process)
            return processes.why_ended(process)
        finally:
            await processes.end(process)

    assert asyncio.run(asked()) == "it used more than 100 MiB of memory"


@pytest.mark.parametrize("level", HOLDING)
def test_a_file_may_not_grow_without_end(room: Room, level: Level) -> None:
    required(level)
    argv = ["sh", "-c", "head -c 3000000 /dev/zero > large; ls -l large | cut -d ' ' -f 5"]
    ended = asyncio.run(room.go(argv, level, room.policy(file_bytes=1_000_000)))
    assert ended.output.splitlines()[-1] == b"1000000"


def test_a_file_may_not_grow_either_where_no_program_limits_others(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    required(Level.BUBBLEWRAP)
    monkeypatch.setattr(limits, "PROGRAM", "planforge-has-no-such-program")
    test_a_file_may_not_grow_without_end(room, Level.BUBBLEWRAP)


@pytest.mark.parametrize("level", HOLDING)
def test_a_program_leaves_no_core_and_has_not_all_the_files_of_the_machine(room: Room, level: Level) -> None:
    required(level)
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        core, files = asyncio.run(room.go(["sh", "-c", "ulimit -c; ulimit -Hn"], level)).output.split()
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    assert core == b"0"
    assert int(files) <= limits.OPEN_FILES


OF_THE_C_LIBRARY = 3 << 31
"""Two signals that it keeps to itself: whoever started the tests may have left them ignored."""


@pytest.mark.parametrize("level", Level)
def test_a_program_starts_with_its_signals_and_streams_and_nothing_else_of_ours(
    room: Room, level: Level
) -> None:
    required(level)
    shell = ["sh", "-c", "grep -E 'Sig(Ign|Blk)' /proc/self/status | cut -f 2"]
    masks = [int(mask, 16) for mask in asyncio.run(room.go(shell, level)).output.split()]
    assert [mask & ~OF_THE_C_LIBRARY for mask in masks] == [0, 0]
    seen = "[n for n in os.listdir('/proc/self/fd') if int(n) > 2 and os.path.exists(f'/proc/self/fd/{n}')]"
    assert room.run(f"print({seen})", level).output == b"[]\n"


@pytest.mark.dear
@pytest.mark.parametrize("level", HOLDING)
def test_a_gigabyte_of_output_does_not_fill_the_memory(room: Room, level: Level) -> None:
    required(level)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = 1_000_000_000
    ended = asyncio.run(room.go(["head", "-c", str(size), "/dev/zero"], level))
    assert ended.exit_code == 0
    assert len(ended.output) <= OUTPUT_LIMIT + 100
    assert f"\n[{size - OUTPUT_LIMIT} bytes left out]\n".encode() in ended.output
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes


@pytest.mark.parametrize("level", Level)
def test_how_a_program_ended_is_told_the_same_way_at_every_level(room: Room, level: Level) -> None:
    required(level)
    for code, wanted in (("os._exit(0)", 0), ("os._exit(7)", 7), ("os.kill(os.getpid(), 11)", -11)):
        assert room.run(code, level).exit_code == wanted


def test_a_level_that_does_not_work_starts_nothing(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_levels()
    monkeypatch.setenv("PATH", "/nowhere")
    try:
        with pytest.raises(CannotPerform, match="sandbox level `bubblewrap` does not work here: "):
            room.run("", Level.BUBBLEWRAP)
    finally:
        forget_levels()
