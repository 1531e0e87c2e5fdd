"""Calls the `planforge` command within the process of the tests, where starting one would only take time."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from planforge.interfaces.cli import commands, main
from programs import environment


class Said(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What it printed, with `--json`."""
        return json.loads(self.out)

    @property
    def current(self) -> dict[str, Any]:
        """What is so now, as a program is told whose decision was refused."""
        shown: dict[str, Any] = self.document["error"]["current"]
        return shown


Command = Callable[..., Said]


def every_command() -> dict[tuple[str, ...], click.Command]:
    """All commands by the words that call them; groups too."""
    found: dict[tuple[str, ...], click.Command] = {}
    left: list[tuple[tuple[str, ...], click.Group]] = [((), commands.planforge)]
    while left:
        path, group = left.pop()
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            found[*path, name] = command
            if isinstance(command, click.Group):
                left.append(((*path, name), command))
    return found


def caller(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """A function that calls a command in `root` and returns its exit code and what it printed."""
    monkeypatch.chdir(root)
    for name, value in environment().items():
        monkeypatch.setenv(name, value)

    def called(*words: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["planforge", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main.run()
        return Said(int(ended.value.code or 0), *capsys.readouterr())

    return called
