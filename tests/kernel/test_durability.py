"""What was acknowledged outlasts `kill -9`, whenever it comes."""

from __future__ import annotations

import random
import time
from pathlib import Path

from kernel.ledger_contract import started, tables
from kernel.writers import acknowledged, writing
from planforge.kernel.ledger import Ledger
from tries import tries

KILLS = tries(200)

LONGEST = 0.02
"""Seconds that a writer is left alive at most, from its start or from its first append."""

PATIENCE = 30


def test_no_acknowledged_event_is_lost_to_kill_9_at_any_moment(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path)
    ledger.append("run-001", [started("run-001")], expected=0)
    ledger.close()
    total = 0
    moments = random.Random(200)
    for attempt in range(KILLS):
        with writing(tmp_path) as (process, heard):
            if attempt % 4:  # every fourth is killed while it starts
                assert heard.poll(PATIENCE)
            time.sleep(moments.uniform(0, LONGEST))
            process.kill()
            said = acknowledged(heard)
        after = time.perf_counter()
        ledger = Ledger.open(tmp_path)
        head = ledger.head()
        opened = time.perf_counter() - after
        assert max(said, default=0) <= head
        assert sorted(said) == sorted(set(said))
        assert list(ledger.faults()) == []
        assert opened < PATIENCE
        ledger.close()
        total += len(said)
    ledger = Ledger.open(tmp_path)
    assert total > KILLS
    assert [item.seq for item in ledger.since()] == list(range(1, ledger.head() + 1))
    before = tables(ledger)
    ledger.rebuild()
    assert tables(ledger) == before
    ledger.close()
