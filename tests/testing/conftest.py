"""A room to work in and a script to play."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from testing.wires import Message


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """The session's directory, with room around it to escape into."""
    room = tmp_path / "around" / "room"
    room.mkdir(parents=True)
    return room


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Path]:
    def write(*scenes: Message, **agent: object) -> Path:
        path = tmp_path / "script.json"
        path.write_text(json.dumps({"name": "test", "scenes": list(scenes), "agent": agent}))
        return path

    return write
