"""What an agent costs when Planforge asks it, over the same program asked by nobody but a pipe."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import msgspec
from benchmarks.measuring import Figure, at_most, progress, rounds

from planforge.agents import homes
from planforge.agents.profiles import REHEARSAL
from planforge.agents.protocol import Place, Task, ToolRequest
from planforge.agents.roster import every
from planforge.app import compose
from planforge.app.agents.calls import adapter
from planforge.app.agents.casting import Cast
from planforge.app.project import Project
from planforge.app.runs.leasing import Leasing
from planforge.app.settings import AgentSettings, Settings
from planforge.kernel.driver import Call
from planforge.kernel.effects import Access, OpenWorktree, RunAgent
from planforge.workspace import processes
from planforge.workspace.git import Git

TARGET_MILLISECONDS = 50.0
TARGET_MEGABYTES = 30.0
AGENTS = 8
"""How many are at work at once where memory is measured."""
PAUSE = 0.1
"""Until an agent's home is removed, which happens behind the run's back, and its server has hung up."""
HELPERS = ("bwrap",)
"""Programs that stand between us and an agent."""
EPOCH = "1970-01-01T00:00:00+00:00"
SCRIPT = {
    "name": "benchmark",
    "scenes": [
        {"when": ["wait"], "do": [{"write": {"path": "begun", "text": ""}}, {"sleep": 600}]},
        {"when": [], "do": [{"say": "Here is the answer."}]},
    ],
}
PROMPT = "answer"


def figures(*, quick: bool) -> Iterator[Figure]:
    """Time single calls, then look at the memory of many."""
    progress("asking agents with and without Planforge")
    with asyncio.Runner() as runner, tempfile.TemporaryDirectory() as directory:
        yield from _rehearsed(runner, Path(directory).resolve(), quick=quick)
        for name in ("codex-cli", "claude-cli"):
            place = Path(directory).resolve() / name
            place.mkdir()
            yield from _real(runner, place, name, quick=quick)
        yield _memory(runner, Path(directory).resolve() / "memory")


# The same program with and without us


def _rehearsed(runner: asyncio.Runner, place: Path, *, quick: bool) -> Iterator[Figure]:
    with _project(place / "project") as project:
        contenders = {
            "bare": lambda: _bare_acp(project),
            "adapter": lambda: runner.run(_adapter(project)),
            "whole": _whole(runner, project, None),
        }
        rounds(contenders, 3)
        taken = rounds(contenders, 5 if quick else 40, pause=PAUSE)
    note = f"{_quiet(taken['bare']) * 1000:.0f} ms by itself"
    yield Figure("ms per call over a bare pipe: rehearsal, adapter alone", _over(taken, "adapter"), note=note)
    what = "ms per call over a bare pipe: rehearsal, all of it"
    yield at_most(what, _over(taken, "whole"), TARGET_MILLISECONDS, note)


def _real(runner: asyncio.Runner, place: Path, name: str, *, quick: bool) -> Iterator[Figure]:
    what = f"ms per call over a bare pipe: {name}, all of it"
    program = every({})[name].program
    if shutil.which(program) is None:
        yield Figure(what, None, f"<= {TARGET_MILLISECONDS:g}", note=f"`{program}` is not installed")
        return
    with _project(place / "project") as project, _server(place) as url:
        contenders = {
            "bare": lambda: _bare_native(project, name, url, anew=True),
            "lived in": lambda: _bare_native(project, name, url, anew=False),
            "whole": _whole(runner, project, Cast(agent=name, endpoint=url)),
        }
        rounds(contenders, 1)
        taken = rounds(contenders, 2 if quick else 30, pause=PAUSE)
    note = f"{_quiet(taken['bare']) * 1000:.0f} ms by itself"
    yield at_most(what, _over(taken, "whole"), TARGET_MILLISECONDS, note)
    yield Figure(f"ms that a new home costs {name} itself", _over(taken, "bare", "lived in"))


def _over(taken: dict[str, list[float]], name: str, other: str = "bare") -> float:
    """How much longer one takes than another, in milliseconds, when little else happens on the machine."""
    return (_quiet(taken[name]) - _quiet(taken[other])) * 1000


def _quiet(taken: Sequence[float]) -> float:
    """These figures are times, and a busy moment only adds to them."""
    return statistics.quantiles(taken, n=10)[0]


def _bare_acp(project: Project) -> float:
    """A conversation by hand, to the end of the program."""
    began = time.perf_counter()
    cwd = str(project.root)
    requests: list[tuple[str, dict[str, object]]] = [
        ("initialize", {"protocolVersion": 1, "clientCapabilities": {}}),
        ("session/new", {"cwd": cwd, "mcpServers": []}),
        ("session/prompt", {"prompt": [{"type": "text", "text": PROMPT}]}),
    ]
    with subprocess.Popen(
        list(every({})[REHEARSAL].command),
        cwd=cwd,
        env=processes.environment(_rehearsing(project)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        session: dict[str, str] = {}
        for number, (method, params) in enumerate(requests):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, **session}}
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            while "result" not in (answer := json.loads(process.stdout.readline())):
                pass
            if method == "session/new":
                session = {"sessionId": answer["result"]["sessionId"]}
        process.stdin.close()
    return time.perf_counter() - began


def _bare_native(project: Project, name: str, url: str, *, anew: bool) -> float:
    """The program by itself, in a home as we furnish it: a new one, or one that it has been in before."""
    home = project.state / ("new" if anew else "lived-in") / name
    if anew:
        shutil.rmtree(home, ignore_errors=True)
    furnished = homes.prepare(
        home,
        every({})[name],
        access=Access.READ,
        root=project.root,
        cwd=project.root,
        model="scripted-1",
        endpoint=url,
    )
    began = time.perf_counter()
    # One takes its prompt as an argument; on standard input both do.
    words = () if name.startswith("claude") else ("-",)
    done = subprocess.run(
        [*furnished.argv, *words],
        cwd=project.root,
        env=processes.environment(furnished.env),
        input=PROMPT.encode(),
        capture_output=True,
        check=False,
    )
    taken = time.perf_counter() - began
    assert b"Here is the answer." in done.stdout, (done.stdout[-2000:], done.stderr[-2000:])
    return taken


async def _adapter(project: Project) -> float:
    """The same by the client that we use, without a sandbox, a home or a watch."""
    began = time.perf_counter()
    profile = every({})[REHEARSAL]

    async def launch(argv: object, *, env: object, cwd: Path) -> asyncio.subprocess.Process:
        assert isinstance(argv, tuple | list)
        assert isinstance(env, dict)
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *argv, cwd=cwd, env=processes.environment(env), stdin=pipe, stdout=pipe, stderr=pipe
        )

    async def permit(request: ToolRequest) -> bool:
        del request
        return True

    answer = await adapter("acp")(
        REHEARSAL,
        profile,
        Task(prompt=PROMPT, access=Access.WRITE),
        Place(
            cwd=project.root,
            home=project.root,
            argv=profile.command,
            env=_rehearsing(project),
            launch=launch,
            end=processes.end,
            permit=permit,
            heard=lambda _: None,
        ),
    )
    assert answer.text == "Here is the answer."
    return time.perf_counter() - began


def _whole(runner: asyncio.Runner, project: Project, cast: Cast | None) -> Callable[[], float]:
    """The performer of a run: role, budget, home, sandbox, adapter, a look at what was done outside."""
    worker = _worker(project, cast)
    numbers = count(1)
    base = project.git.ref("refs/heads/main")
    assert base is not None
    runner.run(_opened(worker, "call", base))

    async def asked() -> float:
        effect = RunAgent(role="drafter", access=Access.READ, worktree="call", base=base, prompt=PROMPT)
        began = time.perf_counter()
        answer = await worker.run_agent(effect, _call(next(numbers)))
        taken = time.perf_counter() - began
        assert "Here is the answer." in answer.text
        return taken

    return lambda: runner.run(asked())


# Memory


def _memory(runner: asyncio.Runner, place: Path) -> Figure:
    """What we and our helpers hold more of when many agents are at work, for each of them."""
    what = f"MB resident per running agent, {AGENTS} at once"
    with _project(place) as project:
        worker = _worker(project, None)
        base = project.git.ref("refs/heads/main")
        assert base is not None
        more = runner.run(_held(worker, project, base))
    return at_most(what, more / AGENTS / 1024 / 1024, TARGET_MEGABYTES, "Planforge and its sandbox")


async def _held(worker: compose.Worker, project: Project, base: str) -> int:
    def asked(name: str, prompt: str, number: int) -> RunAgent:
        del number
        return RunAgent(role="developer", access=Access.WRITE, worktree=name, base=base, prompt=prompt)

    for number in range(AGENTS):
        await _opened(worker, f"w{number}", base)
    await worker.run_agent(asked("w0", PROMPT, 0), _call(0))
    await _opened(worker, "w0", base)
    before = _resident()
    tasks = [
        asyncio.create_task(worker.run_agent(asked(f"w{number}", "wait", number), _call(number + 1)))
        for number in range(AGENTS)
    ]
    try:
        for number in range(AGENTS):
            begun = project.state / "worktrees" / RUN / f"w{number}" / "begun"
            while not begun.exists():
                assert not any(task.done() for task in tasks), tasks
                await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        return _resident() - before
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _resident() -> int:
    """The memory of our own process and of the helpers that we started, in bytes."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (directory / "stat").read_text().partition(") ")
        except OSError:
            continue
        parents[int(directory.name)] = int(rest.split()[1])
        names[int(directory.name)] = name.partition("(")[2]
    total = _pages(os.getpid())
    for pid, name in names.items():
        ancestor = pid
        while ancestor in parents and ancestor != os.getpid():
            ancestor = parents[ancestor]
        if ancestor == os.getpid() and pid != os.getpid() and name in HELPERS:
            total += _pages(pid)
    return total


def _pages(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


# Where it happens

RUN = "run-001"


@contextmanager
def _project(root: Path) -> Iterator[Project]:
    root.mkdir(parents=True)
    git = Git(root / ".git", root)
    git.run("init", "--quiet", "--initial-branch=main", str(root), work_tree=root)
    (root / "README.md").write_text("# A project\n")
    project = Project.create(root)
    git.run("add", "--", "README.md", work_tree=root)
    commit = git.commit_tree(git.line("write-tree", work_tree=root), [], "A project\n", EPOCH)
    git.move_ref("refs/heads/main", commit, git.ref("refs/heads/main"))
    script = root.parent / f"{root.name}.json"
    script.write_text(json.dumps(SCRIPT))
    known = every({})[REHEARSAL]
    profile = msgspec.structs.replace(
        known, env=known.env | _rehearsing(project), reads=(*known.reads, str(script))
    )
    project.settings = Settings(agents=AgentSettings(default=REHEARSAL, profiles={REHEARSAL: profile}))
    try:
        yield project
    finally:
        project.ledger.close()


def _rehearsing(project: Project) -> dict[str, str]:
    return {"PLANFORGE_REHEARSAL_SCRIPT": str(project.root.parent / f"{project.root.name}.json")}


@contextmanager
def _server(place: Path) -> Iterator[str]:
    """The scripted model in a process of its own, so that it takes no turns with us."""
    script = place / "model.json"
    script.write_text(json.dumps(SCRIPT))
    argv = [sys.executable, "-m", "planforge.testing.model_server", str(script)]
    with ExitStack() as stack:
        process = stack.enter_context(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
        stack.callback(process.terminate)
        assert process.stdout is not None
        yield process.stdout.readline().strip()


def _worker(project: Project, cast: Cast | None) -> compose.Worker:
    return compose.Worker(project, RUN, "plan-001", Leasing(project, RUN), cast=cast)


def _call(number: int) -> Call:
    return Call(run=RUN, key=f"/{number}", intended_at=EPOCH, resumed=False)


async def _opened(worker: compose.Worker, name: str, base: str) -> None:
    await worker.open_worktree(OpenWorktree(name=name, commit=base), _call(0))
