"""A room in which scripts of the test are asked as if they were agents."""

from __future__ import annotations

from pathlib import Path

import pytest

from natives import Played


@pytest.fixture
def room(tmp_path: Path) -> Played:
    return Played(tmp_path)
