from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooms import PATIENCE, Room, members


@pytest.fixture
def room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> Iterator[Room]:
    directory = tmp_path / "worktree"
    directory.mkdir()
    room = Room(directory)
    began = time.monotonic()
    yield room
    assert time.monotonic() - began < 2 * PATIENCE
    while left := members(room.started):
        assert time.monotonic() - began < 2 * PATIENCE, left
    assert room.unhandled == []
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")
