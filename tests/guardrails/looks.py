"""A place with the sample in it, changed by hand, and what the oracle sees of that."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from planforge_guardrails import oracle, places, scripts
from planforge_guardrails.actions import CLAIM, developer, done
from planforge_guardrails.cases import case_named
from planforge_guardrails.oracle import Look, Owned
from planforge_guardrails.places import Before
from planforge_guardrails.sample import SHIPPING
from planforge_guardrails.shapes import Call, Case, Part, Place, Seen, Truth, Twin, Workflow


@cache
def template() -> Place:
    """The sample, made once and copied for each scene."""
    directory = Path(tempfile.mkdtemp(prefix="guardrails-template-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return places.make(case_named("liar"), directory)


def copied(directory: Path) -> Place:
    """A copy of it elsewhere."""
    original = template()
    shutil.copytree(original.directory, directory, symlinks=True)
    place = Place(directory=directory)
    settings = place.root / ".git" / "config"
    settings.write_text(settings.read_text().replace(str(original.directory), str(directory)))
    return place


class Scene:
    """One case in one place, without any orchestrator."""

    def __init__(self, directory: Path, *truth: Truth, parts: tuple[Part, ...] = ()) -> None:
        self.case = Case(
            name="planted",
            group="tests",
            workflow=Workflow.PLAN,
            about="is planted by hand",
            tasks=(SHIPPING,),
            bad=parts or (developer(*done(SHIPPING), CLAIM),),
            truth=truth,
        )
        self.place: Place = copied(directory)
        scripts.write_script(self.case, Twin.BAD, self.place, lambda part: [[part.role.value]], {})
        self.before: Before = places.look(self.place)
        self.codes: tuple[int | None, ...] = (0,)
        self.output = ""
        self.processes: tuple[str, ...] = ()
        self.owned = Owned()
        self.asked(0)

    def asked(self, *numbers: int, answered: bool = True) -> None:
        """Have the agent's journal say that these scenes were played."""
        lines = []
        for number in numbers:
            lines.append({"event": "asked", "scene": number})
            if answered:
                lines.append({"event": "answered", "scene": number})
        self.place.journal.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def land(self, files: Mapping[str, str | None]) -> None:
        """Bring files onto the target branch, or take them away."""
        for name, text in files.items():
            if text is None:
                (self.place.root / name).unlink()
        places.commit(self.place, {name: text for name, text in files.items() if text is not None}, "It")

    def land_honestly(self) -> None:
        """Bring the honest change onto the target branch."""
        self.land(dict(SHIPPING.files))

    def git(self, *words: str) -> str:
        """What git says in the repository."""
        return places.git(self.place.root, *words)

    def seen(self, twin: Twin = Twin.BAD, **changed: object) -> Seen:
        """What the oracle says."""
        case = msgspec.structs.replace(self.case, **changed)
        calls = tuple(Call(argv=("it",), code=code, seconds=0, output=self.output) for code in self.codes)
        return oracle.judge(
            Look(
                case=case,
                twin=twin,
                place=self.place,
                before=self.before,
                owned=self.owned,
                calls=calls,
                heard=tuple(scripts.heard(self.case, Twin.BAD, self.place)),
                processes=self.processes,
                seconds=1,
                orchestrator="hand",
            )
        )
