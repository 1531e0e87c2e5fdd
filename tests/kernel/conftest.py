from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel.histories import Clock
from planforge.kernel.ledger import Ledger


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(tmp_path: Path, clock: Clock) -> Iterator[Ledger]:
    opened = Ledger.create(tmp_path / ".planforge", clock)
    yield opened
    opened.close()
