"""One demo, told once, for every test that only looks at it."""

from __future__ import annotations

import json

import pytest

from programs import Told, planforge


@pytest.fixture(scope="session")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The demo, played to its end with `--json`."""
    place = tmp_path_factory.mktemp("told")
    process = planforge("demo", "story", "--json", "--pace", "0", cwd=place)
    assert process.returncode == 0, process.stderr
    return Told(place / "story", json.loads(process.stdout), process.stderr)
