"""`driven`, which the tests of flows rely on, treats a flow as the driver does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from driven import driven
from planforge.errors import GitFailed, PerformerFailed
from planforge.kernel.driver import Call, Driver
from planforge.kernel.effects import Effect, Flow, Note, Together
from planforge.kernel.events import RunParked
from planforge.kernel.ledger import Ledger


class Double(Effect[int], frozen=True, kw_only=True):
    number: int


def answer(effect: Effect[Any]) -> object:
    assert isinstance(effect, Double)
    if effect.number < 0:
        raise GitFailed(f"{effect.number} is below nought", "add something")
    return effect.number * 2


async def double(number: int) -> int:
    await Note(RunParked(run="run-001", reason=str(number)))
    return await Double(number=number)


async def several(*numbers: int) -> dict[str, int]:
    return await Together({f"{100 - number}": double(number) for number in numbers})


async def careful(flow: Flow[object]) -> object:
    try:
        return await flow
    except PerformerFailed as error:
        return (error.error, error.message, error.hint)


FLOWS: list[Callable[[], Flow[object]]] = [
    lambda: double(1),
    lambda: several(1, 2, 3),
    several,
    lambda: careful(double(-1)),
    lambda: careful(several(-1, 2, -3)),
    lambda: careful(several(-3, 2, -1)),
]


@pytest.mark.parametrize("flow", FLOWS)
def test_a_flow_comes_to_the_same_end_by_hand_and_by_the_driver(
    ledger: Ledger, flow: Callable[[], Flow[object]]
) -> None:
    performed: list[Effect[Any]] = []

    async def perform(effect: Effect[Any], _: Call) -> object:
        performed.append(effect)
        return answer(effect)

    performers: dict[Any, Any] = {Double: perform}
    by_driver = asyncio.run(Driver(ledger, "run-001", performers).drive(flow()))
    by_hand = driven(flow(), answer)
    noted = [item.event for item in ledger.stream("run-001") if isinstance(item.event, RunParked)]
    assert by_hand.result == by_driver
    assert sorted(map(repr, by_hand.effects)) == sorted(map(repr, performed))
    assert sorted(map(repr, by_hand.notes)) == sorted(map(repr, noted))


def test_flows_together_are_driven_in_order_of_name() -> None:
    flow = driven(several(1, 2, 3), answer)
    assert flow.effects == [Double(number=3), Double(number=2), Double(number=1)]
    assert flow.result == {"99": 2, "98": 4, "97": 6}


def test_a_failure_may_be_returned_or_raised() -> None:
    failure = PerformerFailed("AgentFailed", "it gave up")
    assert driven(careful(double(1)), lambda _: failure).result == ("AgentFailed", "it gave up", None)
    with pytest.raises(PerformerFailed, match="it gave up"):
        driven(double(1), lambda _: failure)


def test_an_error_that_is_no_outcome_comes_out_and_leaves_nothing_behind() -> None:
    def broken(_: Effect[Any]) -> object:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        driven(several(1, 2), broken)


def test_awaiting_anything_else_is_refused() -> None:
    with pytest.raises(TypeError, match="a flow may await effects only, not `NoneType`"):
        driven(asyncio.sleep(0), answer)
