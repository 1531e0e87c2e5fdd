"""Every command with each of its values replaced by an odd one: an error is one line and has done nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import oddities
from oddities import SAMPLES, Command, Walk, combinations, commands, few_combinations, sample
from rehearsals import Rehearsal, copied


@pytest.fixture(scope="module")
def prepared(two_texts: Rehearsal, tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    return oddities.prepare(copied(two_texts, tmp_path_factory.mktemp("odd")))


@pytest.fixture
def walk(
    prepared: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Walk:
    return Walk(prepared, tmp_path, monkeypatch, capsys)


def test_every_command_can_be_called_with_a_sample_of_its_arguments() -> None:
    known = {command.name for command in commands()}
    assert set(SAMPLES) <= known, f"no such command any more: {set(SAMPLES) - known}"
    for command in commands():
        assert sample(command)  # says what to add to SAMPLES for a command that is new


def test_one_odd_value_in_each_place_is_one_line_and_does_nothing(walk: Walk) -> None:
    faults = {str(each): fault for each in few_combinations() if (fault := walk.fault(each))}
    assert not faults


@pytest.mark.dear
@pytest.mark.parametrize("command", commands(), ids=lambda command: command.name)
def test_each_odd_value_in_each_place_is_one_line_and_does_nothing(
    walk: Walk, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    tried = list(combinations(command))
    faults = {str(each): fault for each in tried if (fault := walk.fault(each))}
    with capsys.disabled():
        print(f"\n{command.name}: {len(tried)} combinations", end="")  # noqa: T201
    assert not faults
