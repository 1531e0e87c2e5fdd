"""
Records the histories in this directory anew, with the real program: `python tests/histories/record.py PLACE`.

PLACE must not exist. What checks print names it, and what is recorded of an agent names the Python that runs
this, so both should name nobody's machine (a link will do), and `HOME` should have no git identity.
More words name recorders; without any, all record.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from planforge.app.demo import story
from planforge.app.history.proofs import prove
from planforge.app.project import Project
from programs import COMMAND, environment, planforge
from workshops import workshop

HERE = Path(__file__).parent
SOURCE = Path(__file__).parents[2] / "src"

Scene = tuple[str, list[dict[str, object]]]

LIE: list[dict[str, object]] = [
    {"write": {"path": "wordcount/frequency.py", "text": story.WRONG_FREQUENCY}},
    {"write": {"path": "tests/test_frequency.py", "text": story.FREQUENCY_TEST}},
    {"say": story.LIE},
]
OUTSIDE: list[dict[str, object]] = [
    {"write": {"path": "README.md", "text": "# Mine now\n"}},
    {"say": "Done, and I tidied up a little."},
]


def rewrite(place: Path, *scenes: Scene) -> None:
    path = place / "rehearsal" / "script.json"
    found = json.loads(path.read_text())["scenes"]
    new = [{"when": when.split("|"), "do": do} for when, do in scenes]
    path.write_text(json.dumps({"name": "changed", "scenes": [*new, *found]}))


def keep(root: Path, run: str, name: str) -> None:
    made = prove(Project.find(root), run, HERE / f"{name}.proof", force=True)
    print(f"{made.file}: {made.events} events, {made.size} bytes")  # noqa: T201


def ready(place: Path, source: Path = SOURCE) -> Path:
    """A workshop with an approved plan, made by the program in `source`."""
    place.mkdir(parents=True)
    root = workshop(place)
    extra = {"PYTHONPATH": str(source)}
    assert planforge("forge", story.REQUEST, cwd=root, extra=extra).returncode == 0
    assert planforge("plan", "approve", "1", cwd=root, extra=extra).returncode == 0
    return root


def run(root: Path, source: Path, code: int) -> None:
    process = planforge("plan", "run", "1", cwd=root, extra={"PYTHONPATH": str(source)})
    assert process.returncode == code, process.stderr


def demo(place: Path) -> None:
    """The demo, which is a forge and a plan run in one."""
    process = planforge("demo", str(place), "--pace", "0", cwd=HERE)
    assert process.returncode == 0, process.stderr
    keep(place, "run-001", "demo")


def retries(place: Path) -> None:
    """Attempts that are rejected for what they change and for what the check says, then one that lands."""
    root = ready(place)
    rewrite(place, ("Step: phase-1|Attempt: 1", OUTSIDE), ("Step: phase-1|Attempt: 2", LIE))
    run(root, SOURCE, 0)
    keep(root, "run-001", "forged-after-a-revision")
    keep(root, "run-002", "done-after-retries-and-rejections")


def failed(place: Path) -> None:
    """A step that uses up its attempts."""
    root = ready(place)
    rewrite(place, ("Step: phase-1", LIE))
    run(root, SOURCE, 1)
    keep(root, "run-002", "failed-after-three-lies")


def capped(place: Path) -> None:
    """A plan that stays blocked until the rounds are used up."""
    place.mkdir(parents=True)
    root = workshop(place)
    audit: list[dict[str, object]] = [{"say": story.FIRST_AUDIT}]
    rewrite(place, ("Role: auditor", audit), ("Role: reviser", [{"say": story.REVISED}]))
    assert planforge("forge", story.REQUEST, "--cap", "2", cwd=root).returncode == 6
    keep(root, "run-001", "forge-stopped-by-its-cap")


def interrupted(place: Path) -> None:
    """A run whose process was killed while two steps were under way."""
    root = ready(place)
    with subprocess.Popen(
        [*COMMAND, "plan", "run", "1", "--parallel"], cwd=root, env=environment()
    ) as process:
        until = time.monotonic() + 60
        while "PatchProposed" not in planforge("log", "-n", "0", "--json", cwd=root).stdout:
            assert time.monotonic() < until
        process.kill()
    keep(root, "run-002", "interrupted-by-kill-9")


def composed(place: Path) -> None:
    """A developer that crashes, is asked once more in short, lies, and is right the next time."""
    root = ready(place)
    crash: list[dict[str, object]] = [{"exit": 3}]
    first = "Step: phase-1|Attempt: 1"
    rewrite(place, (f"{first}|You must produce a result", LIE), (first, crash))
    run(root, SOURCE, 0)
    keep(root, "run-002", "composed-with-a-second-try")


def changed(place: Path, file: str, old: str, new: str) -> Path:
    """The program with one thing in it changed."""
    source = place.with_name(f"{place.name}-source")
    shutil.copytree(SOURCE, source)
    path = source / "planforge" / file
    text = path.read_text()
    assert text.count(old) == 1, (file, old)
    path.write_text(text.replace(old, new))
    return source


def diverged_prompt(place: Path) -> None:
    source = changed(place, "workflows/prompts.py", "Work only inside", "Be brief. Work only inside")
    root = ready(place, source)
    run(root, source, 0)
    keep(root, "run-002", "diverged-because-agents-were-told-otherwise")


def diverged_score(place: Path) -> None:
    source = changed(place, "kernel/scores.py", "ROLLBACKS = 700, 150", "ROLLBACKS = 750, 100")
    root = ready(place, source)
    run(root, source, 0)
    keep(root, "run-002", "diverged-because-scores-were-made-kinder")


def diverged_rule(place: Path) -> None:
    source = changed(
        place,
        "rules/attempts.py",
        "if evidence.outcome is Outcome.PASS:",
        "if evidence.outcome is not Outcome.CANNOT_TELL:",
    )
    root = ready(place, source)
    rewrite(place, ("Step: phase-1", LIE))
    run(root, source, 0)
    keep(root, "run-002", "diverged-because-a-failing-check-was-let-pass")


def diverged_version(place: Path) -> None:
    now = "request=PlanRunRequest,\n        version=2,"
    source = changed(place, "workflows/flows.py", now, now.replace("2", "1"))
    root = ready(place, source)
    run(root, source, 0)
    keep(root, "run-002", "diverged-because-version-1-of-the-flow-recorded-it")


RECORDERS: tuple[Callable[[Path], None], ...] = (
    demo,
    retries,
    failed,
    capped,
    interrupted,
    composed,
    diverged_prompt,
    diverged_score,
    diverged_rule,
    diverged_version,
)


def main() -> None:
    place = Path(sys.argv[1])
    wanted = sys.argv[2:]
    for recorder in RECORDERS:
        if not wanted or recorder.__name__ in wanted:
            recorder(place / recorder.__name__.replace("_", "-"))


if __name__ == "__main__":
    os.umask(0o022)
    main()
