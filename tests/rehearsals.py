"""A workshop with approved plans, made once and copied; its script and its settings can be changed."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from planforge.app.demo import story
from planforge.app.project import Project
from planforge.kernel.events import Event
from planforge.kernel.ledger import Ledger
from programs import planforge, started
from workshops import workshop

Actions = list[dict[str, object]]


class Rehearsal(NamedTuple):
    """A repository with approved plans, and the script beside it that its agent plays."""

    root: Path
    script: Path

    def scene(self, *when: str, do: Actions) -> None:
        """Play this before all other scenes where it fits."""
        scenes = json.loads(self.script.read_text())["scenes"]
        self.script.write_text(
            json.dumps({"name": "changed", "scenes": [{"when": list(when), "do": do}, *scenes]})
        )

    def as_it_was(self) -> None:
        """Play the story again and nothing else."""
        self.script.write_text(story.script(0))

    def settings(self, text: str) -> None:
        """Put more settings into `planforge.toml`, in the place of those that were put there before."""
        path = self.root / "planforge.toml"
        path.write_text(path.read_text().partition("\n# more\n")[0] + f"\n# more\n{text}")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command and do not wait for it."""
        return started(*arguments, cwd=self.root)

    @property
    def ledger(self) -> Ledger:
        """The ledger, as another process sees it."""
        return Project(self.root).ledger

    def events(self, *kinds: type[Event]) -> list[Any]:
        """What is on record, of these kinds."""
        ledger = self.ledger
        try:
            return [item.event for item in ledger.since() if isinstance(item.event, kinds or Event)]
        finally:
            ledger.close()


def rehearsal(place: Path, plans: int = 1) -> Rehearsal:
    """Plans that were forged and approved; they all change the same files."""
    root = workshop(place)
    for number in range(1, plans + 1):
        forged = planforge("forge", story.REQUEST, cwd=root)
        assert forged.returncode == 0, forged.stderr
        assert planforge("plan", "approve", str(number), cwd=root).returncode == 0
    return Rehearsal(root, place / "rehearsal" / "script.json")


def copied(original: Rehearsal, place: Path) -> Rehearsal:
    """The same at another place."""
    before = original.root.parent
    shutil.copytree(before, place, symlinks=True, dirs_exist_ok=True)  # homes of agents link to toolchains
    copy = Rehearsal(place / original.root.name, place / original.script.relative_to(before))
    settings = copy.root / "planforge.toml"
    settings.write_text(settings.read_text().replace(str(before), str(place)))
    return copy


def eventually(holds: Callable[[], object], seconds: float = 60) -> None:
    """Wait until it holds; it must do so soon enough."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)
