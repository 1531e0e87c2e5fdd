"""
A forge and run that is killed at any boundary and taken up again ends as one that was not.

Here every boundary of short acts is cut, and a few of the rest, spread over the whole story; `make crash`
cuts all of them.
"""

from __future__ import annotations

import pytest

from crash.boundaries import Cut
from crash.records import Record, differences
from crash.stories import FORGE_AND_RUN, Stage

LAND = len(FORGE_AND_RUN.acts) - 1
SHORT = (1, LAND)
"""The acts that are cut everywhere: an approval, which is no run, and a landing, which is one."""
SPREAD = 8
"""Into how many cuts of the others."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(FORGE_AND_RUN, tmp_path_factory.mktemp("crash"))


def sample(stage: Stage) -> list[Cut]:
    """Every boundary of the short acts, and of all other ways to cut the story every so many-th."""
    short = [cut for cut in stage.cuts if cut.act in SHORT and not cut.steps]
    others = [cut for cut in stage.cuts if cut not in short]
    return [*short, *others[5 :: len(others) // SPREAD]]


@pytest.mark.dear
def test_a_story_that_is_cut_anywhere_and_taken_up_ends_as_if_it_was_not(stage: Stage) -> None:
    found = {str(cut): differing for cut in sample(stage) if (differing := stage.cut(cut))}
    assert not found


@pytest.mark.dear
def test_the_boundaries_are_those_of_the_ledger(stage: Stage) -> None:
    stage.restore(LAND)
    before = len(stage.events())
    assert stage.command(*FORGE_AND_RUN.acts[LAND].words).code == 0
    here = [cut for cut in stage.cuts if cut.act == LAND]
    assert len([cut for cut in here if not cut.steps]) == len(stage.events()) - before
    halves = [cut for cut in here if cut.steps]
    assert halves
    assert all(cut.about for cut in halves), "only what is begun can be half done"
    assert {cut.about for cut in halves} >= {"Merge", "RunCheck"}


def whole() -> Record:
    return Record(
        refs={"refs/heads/main": "abc def subject"},
        documents={"plan-001.md": "**Status:** DONE"},
        left={"worktrees": ""},
        events={"run-001 /7/phase-1": ["/7/phase-1/1 StepStarted {}", "/7/phase-1/2 StepCompleted {}"]},
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"refs": {"refs/heads/main": "abd def subject"}}, "ref `refs/heads/main`"),
        ({"refs": {}}, "ref `refs/heads/main`"),
        ({"refs": {**whole().refs, "refs/heads/more": "abc"}}, "ref `refs/heads/more`"),
        ({"documents": {"plan-001.md": "**Status:** REVIEW"}}, "file `plan-001.md`"),
        ({"documents": {**whole().documents, ".plan-001.md.7.part": ""}}, "file `.plan-001.md.7.part`"),
        ({"left": {"worktrees": "run-001"}}, "left in `worktrees`"),
        ({"events": {"run-001 /7/phase-1": whole().events["run-001 /7/phase-1"][:1]}}, "StepCompleted"),
        ({"events": {"run-001 /7/phase-1": whole().events["run-001 /7/phase-1"][::-1]}}, "another order"),
        ({"events": {**whole().events, "plan-001": ["PhasesGenerated {}"]}}, "events of `plan-001`"),
    ],
)
def test_whatever_differs_is_said(changed: dict[str, dict[str, str]], said: str) -> None:
    (difference,) = differences(whole(), whole()._replace(**changed))  # type: ignore[arg-type]
    assert said in difference


def test_what_is_kept_of_an_interrupted_agent_is_no_difference() -> None:
    more = {**whole().refs, "refs/planforge/archive/run-001/phase-1-1.interrupted": "abc"}
    assert differences(whole(), whole()._replace(refs=more)) == []
