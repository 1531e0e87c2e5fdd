"""
Another SQLite client: the standard library's, as any other program would use it.

It runs in a process of its own, because two SQLite libraries in one process do not
see each other's locks.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any


def another_client(directory: Path, *statements: str, unguarded: bool = False) -> list[list[Any]]:
    """
    Execute statements on the ledger in `directory` in one transaction; the rows of the last one.

    If `unguarded`, the triggers are taken down before and put up again after.
    """
    request = json.dumps([str(directory / "ledger.db"), statements, unguarded])
    done = subprocess.run(
        [sys.executable, "-IS", __file__], input=request, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise sqlite3.DatabaseError(done.stderr.strip().splitlines()[-1])
    rows: list[list[Any]] = json.loads(done.stdout)
    return rows


def _main() -> None:
    path, statements, unguarded = json.load(sys.stdin)
    with closing(sqlite3.connect(path, isolation_level=None)) as client:
        client.execute("BEGIN IMMEDIATE")
        guards = client.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in guards if unguarded else ():
            client.execute(f"DROP TRIGGER {name}")
        rows: list[Any] = []
        for statement in statements:
            rows = client.execute(statement).fetchall()
        for _, guard in guards if unguarded else ():
            client.execute(guard)
        client.execute("COMMIT")
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    _main()
