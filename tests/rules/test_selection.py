"""Which phase is next, which may be run by name, what skipping leaves out, what need not be done again."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planforge.errors import InvalidInput, NotFound, RefusedByGate
from planforge.interfaces.cli.typed import text
from planforge.kernel.work.lifecycle.tables import PHASE
from planforge.rules import selection
from planforge.rules.selection import MET, Candidate

LETTERS = {"p": "pending", "i": "in-progress", "d": "done", "f": "failed", "s": "skipped"}


def phases(*said: str) -> list[Candidate]:
    """Phases as `d` or, with the numbers of those they depend on, `p 1 2`."""
    return [
        Candidate(
            id=f"phase-{number}",
            status=LETTERS[each.split()[0]],
            depends_on=tuple(f"phase-{other}" for other in each.split()[1:]),
        )
        for number, each in enumerate(said, 1)
    ]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param(["p", "f", "i"], "phase-3", id="what is in progress comes first"),
        pytest.param(["p", "f", "p"], "phase-2", id="then what failed"),
        pytest.param(["d", "p 1", "p 1"], "phase-2", id="then the first that is pending"),
        pytest.param(["p 2", "p"], "phase-2", id="whose dependencies are met"),
        pytest.param(["s", "p 1"], "phase-2", id="a skipped one counts as met"),
        pytest.param(["d", "s", "p 1 2"], "phase-3", id="all of them must be met"),
        pytest.param(["i", "i"], "phase-1", id="the first of several in progress"),
        pytest.param(["f", "f"], "phase-1", id="the first of several that failed"),
        pytest.param(["p", "f 1"], "phase-1", id="what failed waits for what was reopened before it"),
        pytest.param(["p", "i 1"], "phase-1", id="so does what is in progress"),
        pytest.param(["d", "s"], None, id="nothing is left"),
        pytest.param([], None, id="there are none"),
        pytest.param(["p 2", "p 1"], None, id="none can be"),
    ],
)
def test_the_next_phase(said: list[str], expected: str | None) -> None:
    found = selection.next_phase(phases(*said))
    assert (found.id if found else None) == expected


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (["p", "p 9"], "`phase-2` depends on `phase-9`, which there is not"),
        (["p 1"], "phases wait for each other: phase-1"),
        (["p", "p 3", "p 2", "p 3"], "phases wait for each other: phase-2, phase-3, phase-4"),
    ],
)
def test_a_graph_that_cannot_be_is_refused(said: list[str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        selection.check(phases(*said))


def test_two_phases_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidInput, match="there is more than one `phase-1`"):
        selection.check([*phases("p"), *phases("d")])


@pytest.mark.parametrize("said", [[], ["p"], ["p 2", "p 3", "p"], ["p", "p 1", "p 1", "p 2 3"]])
def test_a_graph_that_can_be_is_let_pass(said: list[str]) -> None:
    selection.check(phases(*said))


@pytest.mark.parametrize("name", ["phase-2", "2", "02"])
def test_a_phase_is_found_by_its_id_or_its_number(name: str) -> None:
    assert selection.named(phases("p", "p"), name).id == "phase-2"


@pytest.mark.parametrize("name", ["phase-3", "3", "0", "-1", "", "Phase-2", "²", "phase-02", "9" * 5000])
def test_a_phase_that_there_is_not_is_told_with_those_that_there_are(name: str) -> None:
    with pytest.raises(NotFound) as caught:
        selection.named(phases("p", "p"), name)
    assert text(caught.value.hint) == "there are `phase-1`, `phase-2`"


@pytest.mark.parametrize(
    ("said", "name", "message"),
    [
        (["d"], "1", "`phase-1` is done already"),
        (["s"], "1", "`phase-1` is skipped already"),
        (["p", "f", "p 1 2"], "3", "`phase-3` waits for `phase-1`, `phase-2`"),
        (["p 9"], "1", "`phase-1` waits for `phase-9`"),
    ],
)
def test_a_phase_that_cannot_run_now_is_refused_by_name(said: list[str], name: str, message: str) -> None:
    with pytest.raises(RefusedByGate, match=message):
        selection.target(phases(*said), name)


@pytest.mark.parametrize("status", ["p", "i", "f"])
def test_a_phase_that_can_run_is_had_by_name_whatever_else_would_come_first(status: str) -> None:
    assert selection.target(phases("i", "d", f"{status} 2"), "3").id == "phase-3"


def test_the_first_that_failed_is_what_is_tried_again() -> None:
    assert selection.failed(phases("i", "f", "f")).id == "phase-2"
    with pytest.raises(RefusedByGate, match="no phase has failed"):
        selection.failed(phases("i", "d", "p", "s"))


@pytest.mark.parametrize(
    ("said", "expected"),
    [(["p", "i", "f"], "phase-2"), (["d", "f", "i"], "phase-2"), (["s", "i"], "phase-2")],
)
def test_the_first_in_progress_or_failed_is_what_is_skipped(said: list[str], expected: str) -> None:
    assert selection.skippable(phases(*said)).id == expected


def test_nothing_is_skipped_that_was_not_begun() -> None:
    with pytest.raises(RefusedByGate, match="no phase is in progress or has failed"):
        selection.skippable(phases("p", "d", "s"))


@pytest.mark.parametrize(
    ("said", "name", "expected"),
    [
        pytest.param(["d", "f", "p", "p"], "4", ["phase-2", "phase-3"], id="all before it that is not met"),
        pytest.param(["p", "p 3", "p 4", "s"], "2", ["phase-1", "phase-3"], id="and all that it depends on"),
        pytest.param(["p 2", "p 3", "p"], "1", ["phase-2", "phase-3"], id="directly or not"),
        pytest.param(["d", "p 1"], "2", [], id="nothing if it can run already"),
        pytest.param(["p", "p", "p"], "1", [], id="nothing that comes later"),
    ],
)
def test_skipping_to_a_phase_leaves_out(said: list[str], name: str, expected: list[str]) -> None:
    assert list(selection.skipped_to(phases(*said), name)) == expected


@pytest.mark.parametrize(("said", "name"), [(["d"], "1"), (["p", "s"], "2")])
def test_one_cannot_skip_to_what_is_over(said: list[str], name: str) -> None:
    with pytest.raises(RefusedByGate, match="already"):
        selection.skipped_to(phases(*said), name)


@st.composite
def graphs(draw: st.DrawFn) -> list[Candidate]:
    """Phases that do not wait for each other, in any order."""
    count = draw(st.integers(0, 7))
    made = [
        Candidate(
            id=f"phase-{number}",
            status=draw(st.sampled_from(sorted(LETTERS.values()))),
            depends_on=tuple(
                f"phase-{other}"
                for other in sorted(
                    draw(st.sets(st.integers(1, number - 1), max_size=3)) if number > 1 else ()
                )
            ),
        )
        for number in range(1, count + 1)
    ]
    return draw(st.permutations(made))


@given(graphs())
def test_the_next_phase_can_run_and_no_other_comes_before_it(found: list[Candidate]) -> None:
    selection.check(found)
    chosen = selection.next_phase(found)
    able = [phase for phase in found if phase.status not in MET and not selection.unmet(found, phase)]
    assert (chosen is None) == (not able)
    if chosen:
        assert selection.target(found, chosen.id) == chosen
        order = ("in-progress", "failed", "pending")
        assert chosen == min(able, key=lambda phase: (order.index(phase.status), found.index(phase)))


@given(graphs())
def test_doing_what_is_next_again_and_again_does_everything_once(found: list[Candidate]) -> None:
    done: list[str] = []
    while phase := selection.next_phase(found):
        done.append(phase.id)
        found = [msgspec.structs.replace(each, status="done") if each == phase else each for each in found]
    assert len(done) == len(set(done))
    assert all(phase.status in MET for phase in found)


@given(graphs(), st.integers(1, 7))
def test_after_skipping_to_a_phase_it_can_run_and_nothing_after_it_is_touched(
    found: list[Candidate], number: int
) -> None:
    try:
        left_out = set(selection.skipped_to(found, str(number)))
    except (NotFound, RefusedByGate):
        return
    wanted = f"phase-{number}"
    assert wanted not in left_out
    assert all(phase.status not in MET for phase in found if phase.id in left_out)
    skipped = [
        msgspec.structs.replace(phase, status="skipped") if phase.id in left_out else phase for phase in found
    ]
    assert selection.target(skipped, wanted).id == wanted
    place = [phase.id for phase in found].index(wanted)
    assert all(phase.status in MET for phase in skipped[:place])


@given(graphs(), st.sampled_from(["phase-1", "phase-3", "phase-7"]))
def test_a_way_around_is_always_seen(found: list[Candidate], name: str) -> None:
    around = [
        msgspec.structs.replace(phase, depends_on=(*phase.depends_on, phase.id))
        if phase.id == name
        else phase
        for phase in found
    ]
    if around != found:
        with pytest.raises(InvalidInput, match="wait for each other"):
            selection.check(around)


def test_the_statuses_are_those_of_the_table() -> None:
    assert set(MET) | set(selection.ORDER) == set(PHASE.states)


class Signed(NamedTuple):
    """A phase by what it says."""

    id: str
    signature: str
    status: str
    depends_on: tuple[str, ...]


def kept(before: list[Signed], after: list[Signed]) -> dict[str, str]:
    return selection.kept(
        {phase.id: phase.signature for phase in before if phase.status in MET},
        {phase.id: phase.signature for phase in after},
        {phase.id: phase.depends_on for phase in after},
    )


def signed(*said: str) -> list[Signed]:
    """Phases as `letter status`, with the numbers of those they depend on."""
    return [
        Signed(
            id=f"phase-{number}",
            signature=each.split()[0],
            status=LETTERS[each.split()[1]],
            depends_on=tuple(f"phase-{other}" for other in each.split()[2:]),
        )
        for number, each in enumerate(said, 1)
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(["a d", "b p 1"], ["a p", "b p 1"], {"phase-1": "phase-1"}, id="what is done is kept"),
        pytest.param(["a s"], ["a p"], {"phase-1": "phase-1"}, id="and what was skipped"),
        pytest.param(["a f", "b i", "c p"], ["a p", "b p", "c p"], {}, id="nothing else is"),
        pytest.param(["a d"], ["x p", "a p"], {"phase-2": "phase-1"}, id="whatever its number"),
        pytest.param(["a d"], ["changed p"], {}, id="what says something else is done again"),
        pytest.param(["a d", "b d 1"], ["x p", "b p 1"], {}, id="so is what depends on something new"),
        pytest.param(["a d"], ["a p", "a p"], {"phase-1": "phase-1"}, id="each is kept once"),
        pytest.param(
            ["a d", "b d"], ["b p", "a p 1"], {"phase-1": "phase-2", "phase-2": "phase-1"}, id="moved"
        ),
        pytest.param(["a d"], ["a p 9"], {}, id="a dependency that is not there holds it back"),
        pytest.param([], ["a p"], {}, id="nothing was there"),
    ],
)
def test_what_is_kept_when_phases_are_made_anew(
    before: list[str], after: list[str], expected: dict[str, str]
) -> None:
    assert kept(signed(*before), signed(*after)) == expected


SIGNED = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.sampled_from(sorted(LETTERS)), st.sets(st.integers(1, 5), max_size=2)
    ),
    max_size=5,
).map(lambda drawn: signed(*(" ".join([a, b, *map(str, sorted(c))]) for a, b, c in drawn)))


@given(SIGNED, SIGNED)
def test_what_is_kept_was_done_says_the_same_and_stands_on_what_is_kept(
    before: list[Signed], after: list[Signed]
) -> None:
    found = kept(before, after)
    old, new = ({phase.id: phase for phase in each} for each in (before, after))
    assert len(set(found.values())) == len(found)
    for name, source in found.items():
        assert old[source].status in MET
        assert old[source].signature == new[name].signature
        assert set(new[name].depends_on) <= found.keys()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param(["p", "p", "p 2"], "213", id="who is waited for comes first"),
        pytest.param(["p", "p 1", "p", "p 3", "p 4"], "31425", id="the longer row first"),
        pytest.param(["p", "p", "p"], "123", id="among equals as they stand"),
        pytest.param(["p", "p 1", "p 1", "p 2 3"], "1234", id="a diamond"),
        pytest.param(["p 9", "p"], "12", id="what there is not makes nobody urgent"),
        pytest.param([], "", id="none"),
    ],
)
def test_whoever_most_phases_in_a_row_wait_for_is_most_urgent(said: list[str], expected: str) -> None:
    found = selection.most_urgent_first(phases(*said))
    assert "".join(name.removeprefix("phase-") for name in found) == expected


@given(graphs())
def test_every_phase_is_as_urgent_as_it_is_and_before_all_that_wait_for_it(found: list[Candidate]) -> None:
    order = selection.most_urgent_first(found)
    assert sorted(order) == sorted(phase.id for phase in found)
    for phase in found:
        assert all(order.index(name) < order.index(phase.id) for name in phase.depends_on)
