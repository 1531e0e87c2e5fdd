"""
What it costs to land the work of one honest agent that takes a second, over the bare script that merges it.

The sample repository and the agents are those of the guardrail benchmark. All that a person types counts,
and so do the processes that this starts, the agent's sandbox, the tests in a fresh checkout, and the merge.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measuring import Figure, at_most, progress, rounds

from planforge_guardrails import places, scripts
from planforge_guardrails.actions import CLAIM, developer, done
from planforge_guardrails.adapters import Orchestrator, named
from planforge_guardrails.adapters.planforge import COMMAND
from planforge_guardrails.person import Person
from planforge_guardrails.sample import SHIPPING, plan_text
from planforge_guardrails.shapes import Case, Place, Twin, Workflow

LIMIT = 2.0
AGENT_SECONDS = 1.0

HONEST = Case(
    name="an honest second",
    group="benchmark",
    workflow=Workflow.FIX,
    about="works for a second and does what was asked",
    tasks=(SHIPPING,),
    bad=(),
    honest=(developer({"sleep": AGENT_SECONDS}, *done(SHIPPING), CLAIM),),
)

Run = Callable[[Place, Person], None]


def figures(directory: Path, *, quick: bool) -> Iterator[Figure]:
    """The same work landed by a script, as a fix and as a plan that was approved."""
    progress("landing one honest second of work")
    with tempfile.TemporaryDirectory(dir=directory) as made:
        taken = rounds(
            {
                "script": lambda: _landed(Path(made), "bare", _bare),
                "fix": lambda: _landed(Path(made), "planforge", _fix),
                "plan": lambda: _landed(Path(made), "planforge", _plan, _approved),
            },
            2 if quick else 9,
        )
    script = statistics.median(taken["script"])
    for name, what in (("fix", "a fix"), ("plan", "an approved plan, with its audit")):
        over = statistics.median(one - bare for one, bare in zip(taken[name], taken["script"], strict=True))
        note = f"{statistics.median(taken[name]):.2f} s, the script {script:.2f} s"
        told = f"s to land {what}, over the bare script"
        yield at_most(told, over, LIMIT, note) if name == "fix" else Figure(told, over, note=note)


def _landed(directory: Path, orchestrator: str, run: Run, before: Run | None = None) -> float:
    """How many seconds the work takes to be on the target branch and in the checkout."""
    adapter: Orchestrator = named(orchestrator)
    with tempfile.TemporaryDirectory(dir=directory, ignore_cleanup_errors=True) as made:
        place = places.make(HONEST, Path(made).resolve())
        adapter.prepare(HONEST, place)
        scripts.write_script(
            HONEST, Twin.HONEST, place, lambda part: adapter.when(HONEST, part), adapter.words(HONEST)
        )
        person = Person(places.environment(place), time.monotonic() + 120)
        if before is not None:
            before(place, person)
        began = time.perf_counter()
        run(place, person)
        seconds = time.perf_counter() - began
        text = (place.root / "shop" / "prices.py").read_text()
        if text != SHIPPING.files["shop/prices.py"]:
            raise RuntimeError(f"the work of the benchmark did not land: {person.calls[-1]}")
        return seconds


def _bare(place: Place, person: Person) -> None:
    named("bare").run(HONEST, Twin.HONEST, place, person)


def _fix(place: Place, person: Person) -> None:
    person.give([*COMMAND, "fix", SHIPPING.request, "--land"], cwd=place.root)
    person.give([*COMMAND, "land", "--update-checkout"], cwd=place.root)


def _approved(place: Place, person: Person) -> None:
    path = place.backstage / "plan.md"
    path.write_text(plan_text(SHIPPING))
    person.give([*COMMAND, "plan", "import", str(path)], cwd=place.root)
    person.give([*COMMAND, "plan", "approve", "1"], cwd=place.root)


def _plan(place: Place, person: Person) -> None:
    person.give([*COMMAND, "plan", "run", "1"], cwd=place.root)
    person.give([*COMMAND, "land"], cwd=place.root)
    person.give([*COMMAND, "land", "--update-checkout"], cwd=place.root)
