"""Looking for the first place that fails, by looking at few."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planforge.kernel.evidence import Outcome
from planforge.rules.bisection import most_looks, next_place, span

PASS, FAIL, CANNOT_TELL = Outcome.PASS, Outcome.FAIL, Outcome.CANNOT_TELL


def search(places: int, look: Callable[[int], Outcome]) -> tuple[range, int]:
    """The places that are left over, and how many were looked at."""
    seen = {places - 1: FAIL}
    looks = 0
    while looks < most_looks(places) and (place := next_place(seen)) is not None:
        seen[place] = look(place)
        looks += 1
    passes, fails = span(seen)
    return range(passes + 1, fails + 1), looks


@given(places=st.integers(1, 500), data=st.data())
def test_the_first_place_that_fails_is_found_in_few_looks(places: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, places - 1))
    left, looks = search(places, lambda place: FAIL if place >= first else PASS)
    assert list(left) == [first]
    assert looks <= places.bit_length()


@given(places=st.integers(1, 60), data=st.data())
def test_what_cannot_be_told_leaves_several_and_the_right_one_is_among_them(
    places: int, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, places - 1))
    silent = data.draw(st.sets(st.integers(0, places - 1)))
    left, looks = search(
        places, lambda place: CANNOT_TELL if place in silent else FAIL if place >= first else PASS
    )
    assert first in left
    assert looks <= most_looks(places)


@pytest.mark.parametrize(
    ("seen", "place"),
    [
        ({0: FAIL}, None),
        ({1: FAIL}, 0),
        ({8: FAIL}, 3),
        ({8: FAIL, 3: CANNOT_TELL}, 2),
        ({8: FAIL, 3: PASS}, 5),
        ({8: FAIL, 3: FAIL}, 1),
        ({2: FAIL, 0: CANNOT_TELL, 1: CANNOT_TELL}, None),
    ],
)
def test_the_next_look_is_nearest_to_the_middle(seen: dict[int, Outcome], place: int | None) -> None:
    assert next_place(seen) == place
