from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts programs of these names on PATH, and nothing else but the system's."""

    def put(*names: str) -> None:
        place = tmp_path / "bin"
        place.mkdir(exist_ok=True)
        for name in names:
            (place / name).write_text("#!/bin/sh\n")
            (place / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{place}{os.pathsep}/usr/bin{os.pathsep}/bin")

    return put
