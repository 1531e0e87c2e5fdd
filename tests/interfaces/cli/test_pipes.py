"""A pipe in the place of a file: nobody waits for what will never be written to it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from calls import Command, caller
from repositories import repository


@pytest.fixture(autouse=True)
def soon() -> Iterator[None]:
    """A test that waits for a pipe fails, and does not hang."""

    def late(*_: object) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "here")


@pytest.fixture
def call(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return caller(root, monkeypatch, capsys)


def test_settings_are_read_from_a_file_alone(call: Command, root: Path) -> None:
    assert call("init").code == 0
    (root / "planforge.toml").unlink()
    os.mkfifo(root / "planforge.toml")
    for words in (("agent", "list"), ("plan", "create", "count lines"), ("scan",)):
        said = call(*words)
        assert said.code == 2, words
        assert "planforge.toml`: not a file but a pipe or a device" in said.err
    assert "not a file but a pipe or a device" in "".join(call("doctor")[1:])
    assert call("status").code == 0


@pytest.mark.parametrize("words", [("check-proof",), ("plan", "decompose")])
def test_a_file_that_is_given_is_a_file(call: Command, root: Path, words: tuple[str, ...]) -> None:
    os.mkfifo(root / "pipe")
    said = call(*words, "pipe")
    assert said.code == 2
    assert "not a file but a pipe or a device" in said.err
