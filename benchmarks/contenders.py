"""
One contender in a process of its own: `contenders.py NAME DIRECTORY`.

It says `ready`, then for every line `COUNT THREADS` on its standard input it takes that
many durable steps and says how many seconds they took, and how many of the processor. A
step is a small fact that is on disk before the next one begins.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Thread

NOTE = "y" * 240
"""What a step has to say; with all that is stored beside it, about 330 bytes."""

PRODUCERS = 64
"""How many append at once where many do."""

Take = Callable[[int], None]


def raw(directory: Path) -> Take:
    """The least that SQLite can do: one row of 330 bytes, one commit with `synchronous=FULL`."""
    import apsw

    database = apsw.Connection(str(directory / "raw.db"))
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE IF NOT EXISTS facts(seq INTEGER PRIMARY KEY, body BLOB)")
    body = b"y" * 330

    def take(count: int) -> None:
        for _ in range(count):
            database.execute("BEGIN IMMEDIATE")
            database.execute("INSERT INTO facts(body) VALUES (?)", (body,))
            database.execute("COMMIT")

    return take


def planforge(directory: Path) -> Take:
    """An event, typed, checked, chained, at an expected version, folded into a table, in one commit."""
    from planforge.kernel.events import Payload, RunParked, RunStarted
    from planforge.kernel.ledger import Ledger

    ledger = Ledger.create(directory / "planforge")
    if not ledger.head():
        begun = RunStarted(run="run-001", flow="f", flow_version=1, subject="", request=Payload())
        ledger.append("run-001", [begun], expected=0)
    version = ledger.version("run-001")

    def take(count: int) -> None:
        nonlocal version
        for _ in range(count):
            ledger.append("run-001", [RunParked(run="run-001", reason=NOTE)], expected=version)
            version += 1

    return take


def outcome(directory: Path) -> Take:
    """The recorded outcome of an effect, which is what the peers keep of a step; no table is about it."""
    from msgspec import Raw

    from planforge.kernel.events import EffectCompleted, Payload
    from planforge.kernel.ledger import Ledger
    from planforge.kernel.objects import encode

    ledger = Ledger.create(directory / "outcome")
    version = ledger.version("run-001")

    def take(count: int) -> None:
        nonlocal version
        for _ in range(count):
            done = EffectCompleted(effect="RunAgent", outcome=Payload(inline=Raw(encode(NOTE))))
            ledger.append("run-001", [done], expected=version)
            version += 1

    return take


def producers(directory: Path) -> Take:
    """The same for threads that do not know of each other."""
    from planforge.kernel.events import RunParked
    from planforge.kernel.ledger import Ledger

    ledger = Ledger.create(directory / "producers")

    def take(count: int) -> None:
        for _ in range(count):
            ledger.append("all", [RunParked(run="run-001", reason=NOTE)], expected=None)

    return take


def tasks(directory: Path) -> Take:
    """The same for tasks of one event loop; they come as one thread that starts `PRODUCERS` of them."""
    import asyncio

    from planforge.kernel.events import RunParked
    from planforge.kernel.ledger import Ledger

    ledger = Ledger.create(directory / "tasks")

    async def produce(count: int) -> None:
        for _ in range(count):
            await ledger.append_async("all", [RunParked(run="run-001", reason=NOTE)], expected=None)

    async def all_of_them(count: int) -> None:
        await asyncio.gather(*(produce(count // PRODUCERS) for _ in range(PRODUCERS)))

    return lambda count: asyncio.run(all_of_them(count))


def langgraph(directory: Path) -> Take:
    """A node that goes round in a graph, with a checkpoint in SQLite after every round (`sync`)."""
    import sqlite3
    from typing import Any, TypedDict

    from langgraph.checkpoint.sqlite import (  # type: ignore[import-not-found, unused-ignore]
        SqliteSaver,
    )
    from langgraph.graph import END, StateGraph  # type: ignore[import-not-found, unused-ignore]

    class State(TypedDict):
        left: int
        note: str

    def step(state: Any) -> dict[str, object]:
        return {"left": state["left"] - 1, "note": NOTE}

    graph: Any = StateGraph(State)
    graph.add_node("step", step)
    graph.set_entry_point("step")
    graph.add_conditional_edges("step", lambda state: "step" if state["left"] > 0 else END)
    saver = SqliteSaver(sqlite3.connect(directory / "langgraph.db", check_same_thread=False))
    compiled = graph.compile(checkpointer=saver)
    taken = 0

    def take(count: int) -> None:
        nonlocal taken
        taken += 1
        config = {"configurable": {"thread_id": f"run-{taken}"}, "recursion_limit": count + 10}
        compiled.invoke({"left": count, "note": ""}, config, durability="sync")

    return take


def dbos(directory: Path) -> Take:
    """Steps of one workflow, with DBOS's own settings for SQLite."""
    import logging
    from typing import Any

    from dbos import DBOS  # type: ignore[import-not-found, unused-ignore]

    logging.disable(logging.CRITICAL)
    config: Any = {"name": "bench", "system_database_url": f"sqlite:///{directory / 'dbos.sqlite'}"}
    DBOS(config=config)

    def step(number: int) -> str:
        return f"{number}{NOTE}"

    durable = DBOS.step()(step)

    @DBOS.workflow()  # type: ignore[untyped-decorator, unused-ignore]
    def work(count: int) -> int:
        for number in range(count):
            durable(number)
        return count

    def take(count: int) -> None:
        work(count)

    DBOS.launch()
    return take


CONTENDERS: dict[str, Callable[[Path], Take]] = {
    contender.__name__: contender
    for contender in (raw, planforge, outcome, producers, tasks, langgraph, dbos)
}


def timed(take: Take, count: int, threads: int) -> tuple[float, float]:
    """Seconds for `count` steps, shared out to so many threads, and seconds of the processor."""
    ready = Barrier(threads)
    began: list[tuple[float, float]] = []

    def work() -> None:
        ready.wait()
        began.append((time.perf_counter(), time.process_time()))
        take(count // threads)

    workers = [Thread(target=work) for _ in range(threads - 1)]
    for worker in workers:
        worker.start()
    work()
    for worker in workers:
        worker.join()
    wall, processor = min(began)
    return time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    """Take steps as asked, until nobody asks any more."""
    name, directory = sys.argv[1:3]
    take = CONTENDERS[name](Path(directory))
    print("ready", flush=True)
    for line in sys.stdin:
        count, threads = map(int, line.split())
        print(*timed(take, count, threads), flush=True)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
