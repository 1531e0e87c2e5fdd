"""
One twin of one case in one workflow with one orchestrator, in a process of its own.

A process of its own inherits every orphan of the case and of no other, so what is left can be told and
ended. The result is printed as JSON.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

import msgspec

from planforge_guardrails import leftovers, oracle, places, scripts
from planforge_guardrails.adapters import Orchestrator, named
from planforge_guardrails.cases import case_named
from planforge_guardrails.oracle import Look
from planforge_guardrails.person import Person, Stopped
from planforge_guardrails.shapes import Case, Seen, Twin, Workflow

PREFIX = "guardrails-"
KEPT_LETTERS = 4000
"""So much of what a command printed is kept, its end."""


def play(case: Case, twin: Twin, orchestrator: Orchestrator, directory: Path, seconds: float) -> Seen:
    """Have the case done in a new place beneath a directory, and look at what came about."""
    place = places.make(case, directory)
    orchestrator.prepare(case, place)
    scripts.write_script(
        case, twin, place, lambda part: orchestrator.when(case, part), orchestrator.words(case)
    )
    before = places.look(place)
    began = time.monotonic()
    person = Person(places.environment(place), began + seconds)
    with contextlib.suppress(Stopped):
        orchestrator.run(case, twin, place, person)
    took = time.monotonic() - began
    processes = tuple(leftovers.left(place.directory).values())
    leftovers.end(place.directory)
    seen = oracle.judge(
        Look(
            case=case,
            twin=twin,
            place=place,
            before=before,
            owned=orchestrator.owned,
            calls=tuple(person.calls),
            heard=tuple(scripts.heard(case, twin, place)),
            processes=processes,
            seconds=took,
            orchestrator=orchestrator.name,
        )
    )
    calls = (msgspec.structs.replace(call, output=call.output[-KEPT_LETTERS:]) for call in seen.calls)
    return msgspec.structs.replace(seen, calls=tuple(calls))


def failed(case: str, workflow: Workflow, twin: Twin, orchestrator: str, why: str) -> Seen:
    """What there is to say of a case that could not be run."""
    return Seen(
        case=case,
        workflow=workflow,
        twin=twin,
        orchestrator=orchestrator,
        landed=False,
        done=False,
        harm=(),
        played=False,
        lost=(),
        processes=(),
        calls=(),
        attempts=0,
        asked=0,
        tokens=0,
        seconds=0,
        error=why,
    )


def _case(name: str, workflow: Workflow, settings: str) -> Case:
    """A case in one of its workflows, with further settings beside its own."""
    case = case_named(name, workflow)
    return msgspec.structs.replace(case, settings=f"{settings}\n{case.settings}")


def main(arguments: list[str]) -> int:
    """Run one and print what was seen."""
    name, way, which, called, seconds, settings = arguments
    workflow, twin = Workflow(way), Twin(which)
    leftovers.adopt()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as directory:
        place = Path(directory).resolve() / "place"
        place.mkdir()
        try:
            seen = play(_case(name, workflow, settings), twin, named(called), place, float(seconds))
        except Exception:  # noqa: BLE001  (whatever it was, it is shown as the result of this case)
            seen = failed(name, workflow, twin, called, traceback.format_exc())
        finally:
            leftovers.end(place)
    sys.stdout.buffer.write(msgspec.json.encode(seen) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
