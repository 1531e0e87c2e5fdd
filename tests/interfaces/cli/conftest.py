"""What is made once: a demo for every test that only looks at it, a plan for those that go on from there."""

from __future__ import annotations

import json

import pytest

from programs import Told, planforge
from rehearsals import Rehearsal
from texts import forged, name_files


@pytest.fixture(scope="session")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The demo, played to its end with `--json`."""
    place = tmp_path_factory.mktemp("told")
    process = planforge("demo", "story", "--json", "--pace", "0", cwd=place)
    assert process.returncode == 0, process.stderr
    return Told(place / "story", json.loads(process.stdout), process.stderr)


@pytest.fixture(scope="session")
def two_texts(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    """A forged plan of two texts, in two phases and an audit; to be copied."""
    at = forged(tmp_path_factory.mktemp("texts"))
    name_files(at, "one/a.txt", "two/b.txt")
    return at
