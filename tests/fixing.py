"""A small repository of texts in which small changes are asked for, worked on in this process."""

from __future__ import annotations

from pathlib import Path

from planforge.app.plans import fixes
from planforge.app.project import Project
from rehearsals import Rehearsal
from repositories import repository
from texts import CHECK, SETTINGS, Scene, drive, play, writes

ADA = "Ada <ada@example.org>"
REQUEST = "Say `right` in one/a.txt"


def prepared(place: Path, *scenes: Scene) -> Rehearsal:
    """A repository, ready, whose agents play these scenes; otherwise a developer writes `one/a.txt`."""
    root = repository(place / "workshop", {"one/old.txt": "old\n", "check.sh": CHECK})
    (root / "planforge.toml").write_text(SETTINGS.format(place=place))
    (place / "rehearsal").mkdir()
    made = Rehearsal(root, place / "rehearsal" / "script.json")
    play(made, scenes or ((("Role: developer",), writes("one/a.txt")),))
    Project.create(root).ledger.close()
    return made


def fixed(at: Rehearsal, request: str = REQUEST, *, anyway: bool = False) -> tuple[str, int]:
    """A small change, asked for and driven to its end: its run and the exit code."""
    project = Project(at.root)
    run = fixes.begin(project, request, actor=ADA, anyway=anyway)
    code = drive(project, run).exit_code
    project.ledger.close()
    return run, code
