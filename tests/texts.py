"""A small repository of texts and a plan for more of them, worked on in this process by rehearsed agents."""

from __future__ import annotations

import json
from pathlib import Path

from planforge.app import driver, forges
from planforge.app.project import Project
from planforge.kernel.events import RunEnded
from rehearsals import Actions, Rehearsal
from repositories import repository

Scene = tuple[tuple[str, ...], Actions]

CHECK = """\
number=0
for file in */*.txt; do
  number=$((number + 1))
  if grep -q wrong "$file"; then echo "not ok $number - $file"; else echo "ok $number - $file"; fi
done
echo "1..$number"
! grep -q wrong */*.txt
"""

SETTINGS = """\
[check]
command = ["sh", "check.sh"]
report = "tap"

[agents]
default = "rehearsal"

[agents.profiles.rehearsal]
writes = ["{place}/rehearsal"]

[agents.profiles.rehearsal.env]
PLANFORGE_REHEARSAL_SCRIPT = "{place}/rehearsal/script.json"
"""

PLAN = """\
# Plan: Some texts

## Objective

The project has a few texts more than before.

## Scope

New files beside the one that is there.

## Changes

- `one/a.txt` — a text.

## Risks

None that anybody could think of.

## Testing

`sh check.sh` looks at every text.
"""

BLOCKED = '{"maxSeverity": "blocking", "concerns": [{"title": "it is vague", "severity": "blocking"}]}'
CLEAN = '{"maxSeverity": "none", "concerns": []}'


def writes(*paths: str, text: str = "right\n") -> Actions:
    files: Actions = [{"write": {"path": path, "text": text}} for path in paths]
    return [*files, {"say": "It is in."}, {"usage": {"input": 100 + len(text), "output": 20}}]


def says(text: str) -> Actions:
    return [{"say": text}, {"usage": {"input": 300, "output": len(text)}}]


def scenes(second: str = "right\n") -> tuple[Scene, ...]:
    """The agents of a plan of two texts, of which the second may be wrong."""
    return (
        (("Role: developer", "one/a.txt"), writes("one/a.txt")),
        (("Role: developer", "two/b.txt"), writes("two/b.txt", text=second)),
        (("Role: auditor", "Step: "), says(CLEAN)),
    )


def forged(place: Path) -> Rehearsal:
    """A repository in which a plan was forged and nobody has approved it."""
    root = repository(place / "workshop", {"one/old.txt": "old\n", "check.sh": CHECK})
    (root / "planforge.toml").write_text(SETTINGS.format(place=place))
    (place / "rehearsal").mkdir()
    made = Rehearsal(root, place / "rehearsal" / "script.json")
    play(made, ((("Role: drafter",), says(PLAN)), (("Role: auditor",), says(CLEAN))))
    project = Project.create(root)
    assert drive(project, forges.begin_forge(project, "Some texts")).succeeded
    project.ledger.close()
    return made


def play(at: Rehearsal, scenes: tuple[Scene, ...]) -> None:
    """Have the agents do this and nothing else."""
    told = [{"when": list(when), "do": do} for when, do in scenes]
    at.script.write_text(json.dumps({"name": "it", "scenes": told}))


def drive(project: Project, run: str) -> RunEnded:
    """Drive a run before nobody."""
    return driver.drive(project, run, lambda _: None)


def name_files(at: Rehearsal, *files: str) -> None:
    """Edit the plan so that it is about these files."""
    path = next((at.root / "docs/plans").glob("plan-001-*.md"))
    items = "\n".join(f"- `{name}` — a text." for name in files)
    path.write_text(path.read_text().replace("- `one/a.txt` — a text.", items))
