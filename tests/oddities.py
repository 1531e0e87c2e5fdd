"""
Every command of the program with every one of its values replaced by an odd one.

The commands and their parameters are asked of click, so a new one is tried without being listed; a command
that needs arguments has a sample of them in `SAMPLES`. `Walk` calls each in a small repository and says what
is wrong with how it ended.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import re
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from calls import Said, caller
from planforge.app import lessons
from planforge.app.decisions import approvals
from planforge.app.plans import creation
from planforge.app.project import Project
from planforge.documents.imports import prose
from planforge.interfaces.cli.commands import planforge
from rehearsals import Rehearsal, copied
from repositories import commit
from texts import PLAN

KNOWN_CODES = {0, 1, 2, 3, 4, 5, 6, 7, 75, 130}

ODD: dict[str, str] = {
    "empty": "",
    "blank": " \t ",
    "not UTF-8": "caf\udce9",
    "a path that is not UTF-8": "caf\udce9/x.md",
    "two lines": "one\ntwo",
    "an escape": "\x1b]0;x\x07\x1b[2J",
    "reordered": "a\u202eb",
    "beyond the first plane": "💥",
    "huge": "x" * 100_000,
    "a long name": "n" * 300,
    "a dash": "-",
    "an option": "--nonsense=1",
    "zero": "0",
    "negative": "-1",
    "large": "99999999999",
    "larger than any": "1" + "0" * 30,
    "more digits than Python reads": "9" * 5000,
    "no number": "nan",
    "without end": "inf",
    "a digit that is none": "²",
    "digits of elsewhere": "\u0661",
    "a directory": "one",
    "a directory of devices": "/dev",
    "nothing there": "missing/nothing",
    "outside": "../outside/passwd",
    "no text": "odd.bin",
    "a link to itself": "loop",
    "a device": "/dev/full",
    "a glob": "[!",
    "a revision": "HEAD~99999",
    "a range": "HEAD..main@{-1}",
    "a plan with a large number": "plan-99999999999999999999",
    "a pair": "a=b=c",
    "a name": "name",
    "braces": "{0.__class__}%s%(x)s${HOME}",
}

IN_EVERY_BUILD = ("not UTF-8", "two lines", "larger than any", "empty")
"""The kinds of which each value gets one in every build."""

NOTES = "# Notes\n\nSome.\n"
REVIEW = "**Verdict:** Approved\n"

Sample = dict[str, str]

SAMPLES: dict[str, Sample] = {
    "agent add": {"name": "mine", "command": "true"},
    "agent remove": {"name": "spare"},
    "agent test": {"name": "nobody"},
    "backtest": {"run": "run-001"},
    "cancel": {"run": "run-001"},
    "check-proof": {"file": "odd.bin"},
    "demo": {"directory": "one"},
    "fix": {"request": "Correct a typo in one/old.txt"},
    "forge start": {"request": "1"},
    "gate approve": {"name": "gate-001", "--reason": "seen"},
    "gate check": {"--stage": "design", "--subject": "task-001"},
    "gate reject": {"name": "gate-001", "--reason": "seen"},
    "gate show": {"name": "gate-001"},
    "handoff show": {"name": "run-001"},
    "lease release": {"name": "lease-001", "--reason": "stuck"},
    "lesson add": {"text": "Lock the file before it is read"},
    "lesson promote": {"plan": "1"},
    "lesson show": {"name": "1"},
    "lesson stale": {"name": "1", "--reason": "changed"},
    "lesson supersede": {"old": "1", "--by": "2"},
    "link": {"item": "1"},
    "pipeline run": {"name": "bug-quick", "request": "Mend it"},
    "pipeline show": {"name": "default"},
    "plan approve": {"plan_id": "1"},
    "plan audit": {"plan": "1"},
    "plan cancel": {"plan_id": "1", "--reason": "no"},
    "plan close": {"plan_id": "1", "--reason": "done"},
    "plan create": {"description": "More texts"},
    "plan decompose": {"file": "docs/plans/plan-001-some-texts.md"},
    "plan diff": {"plan_id": "1"},
    "plan evidence": {"plan_id": "1"},
    "plan import": {"source_": "notes.md"},
    "plan land": {"plan_id": "1"},
    "plan phases": {"plan_id": "1"},
    "plan reopen": {"plan_id": "1", "--reason": "no"},
    "plan retry": {"plan_id": "1"},
    "plan run": {"plan_id": "2"},
    "plan run-one": {"plan_id": "2"},
    "plan run-phase": {"plan_id": "2", "phase": "phase-1"},
    "plan show": {"plan_id": "1"},
    "plan skip": {"plan_id": "2", "--reason": "no"},
    "plan skip-to": {"plan_id": "2", "phase": "phase-1", "--reason": "no"},
    "policy simulate": {"trajectory": "course.json", "--policy": "convergence"},
    "prove": {"run": "run-001", "--output": "proof.json"},
    "question answer": {"name": "question-001", "option": "yes"},
    "question show": {"name": "question-001"},
    "replay": {"run": "run-001"},
    "role show": {"name": "auditor"},
    "score": {"name": "plan-001/phase-1"},
    "task abandon": {"name": "task-001", "--reason": "no"},
    "task log": {"name": "task-001"},
    "task override": {"name": "task-001", "--stage": "design", "--reason": "no"},
    "task resume": {"name": "task-001"},
    "task show": {"name": "task-001"},
    "verdict": {"file": "review.md", "--kind": "review"},
    "why": {"step": "plan-001/phase-1"},
    "bench guardrails": {"--list": ""},
}
"""The arguments of a command, and the options without which it does nothing; a flag has no value."""

AGENTS_MAY_HAVE_WORKED = {
    "demo",
    "evidence",
    "fix",
    "forge start",
    "land",
    "pipeline run",
    "plan audit",
    "plan land",
    "plan retry",
    "plan run",
    "plan run-one",
    "plan run-phase",
    "resume",
    "task resume",
}
"""Those that may end with an error after work was done, which is on record then."""

NOTHING_DONE = {2, 3, 7}
"""The exit codes that nothing was done with, whatever the command."""


class Command(NamedTuple):
    """One command of the program."""

    name: str
    """As in `SAMPLES`."""
    words: tuple[str, ...]
    """As it is typed."""
    parameters: tuple[click.Parameter, ...]

    @property
    def reads_json(self) -> bool:
        """Whether it has `--json`."""
        return any("--json" in parameter.opts for parameter in self.parameters)


class Combination(NamedTuple):
    """One call: a command, which of its values is odd, and how."""

    command: Command
    parameter: str
    kind: str
    argv: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.command.name}: {self.parameter} is {self.kind}"


def commands() -> list[Command]:
    """All there are, hidden ones too."""
    return list(_beneath(planforge, ()))


def _beneath(command: click.Command, path: tuple[str, ...]) -> Iterator[Command]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        names = sorted({*command.list_commands(context), *command.commands})
        for name in names:
            found = command.get_command(context, name)
            assert found is not None
            yield from _beneath(found, (*path, name))
        return
    words = path[:-1] if path[-1] == "start" else path
    yield Command(" ".join(path), words, tuple(command.params))


def sample(command: Command, odd: click.Parameter | None = None, value: str = "") -> tuple[str, ...]:
    """The command with its sample values; `odd` has another one."""
    known = SAMPLES.get(command.name, {})
    arguments: list[str] = []
    options: list[str] = []
    for parameter in command.parameters:
        name = parameter.opts[-1] if isinstance(parameter, click.Option) else str(parameter.name)
        given = value if parameter is odd else known.get(name)
        if given is None:
            if parameter.required:
                raise LookupError(f"`{command.name}` needs {name}: add a sample of it to {__name__}.SAMPLES")
        elif isinstance(parameter, click.Argument):
            arguments.append(given)
        else:
            options.append(name if _is_flag(parameter) else f"{name}={given}")
    as_json = ["--json"] if command.reads_json and not _is_flag(odd) else []
    return (
        (*command.words, *options, *as_json, "--", *arguments)
        if arguments
        else (*command.words, *options, *as_json)
    )


def _is_flag(parameter: click.Parameter | None) -> bool:
    return isinstance(parameter, click.Option) and parameter.is_flag


def combinations(command: Command) -> Iterator[Combination]:
    """The command as it is meant, with each flag, and with each odd value in each place."""
    yield Combination(command, "nothing", "odd", sample(command))
    for parameter in command.parameters:
        name = parameter.opts[-1]
        if _is_flag(parameter):
            yield Combination(command, name, "given", sample(command, parameter))
            continue
        for kind, value in ODD.items():
            yield Combination(command, name, kind, sample(command, parameter, value))


def few_combinations() -> list[Combination]:
    """One odd value in each place that takes one."""
    places = [(each, value) for each in commands() for value in each.parameters if not _is_flag(value)]
    kinds = itertools.cycle(IN_EVERY_BUILD)
    return [
        Combination(command, parameter.opts[-1], kind, sample(command, parameter, ODD[kind]))
        for (command, parameter), kind in zip(places, kinds, strict=False)
    ]


def prepare(at: Rehearsal) -> Rehearsal:
    """Put in a plan that is approved, two lessons, odd files, and an agent that fails at once."""
    commit(at.root, {"notes.md": NOTES, "course.json": "[]", "review.md": REVIEW}, "more")
    (at.root / "odd.bin").write_bytes(bytes(range(256)))
    (at.root / "loop").symlink_to("loop")
    settings = at.root / "planforge.toml"
    profile = '\n[agents.profiles.broken]\ncommand = ["false"]\n'
    settings.write_text(settings.read_text().replace('default = "rehearsal"', 'default = "broken"') + profile)
    project = Project(at.root)
    creation.adopt(project, prose.read(PLAN.replace("Some texts", "Other texts").encode(), "a test"))
    approvals.approve(project, "2", actor="Ada Lovelace")
    for text in ("Lock the file before it is read", "Nothing is faster than what is not done"):
        lessons.add(project, lessons.New(text=text), actor="Ada Lovelace", today="2026-01-01")
    project.ledger.close()
    return at


class Walk:
    """Calls commands in a copy of a prepared repository, and has another copy once one has changed it."""

    def __init__(
        self,
        original: Rehearsal,
        place: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        spoil: Callable[[Path], object] = lambda _: None,
    ) -> None:
        self._spoil = spoil
        self._original = original
        self._place = place
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        self._copies = 0
        self._renew()

    def _renew(self) -> None:
        self._copies += 1
        self.at = copied(self._original, self._place / str(self._copies))
        self._call = caller(self.at.root, self._monkeypatch, self._capsys)
        self._spoil(self.at.root)
        self.before = contents(self.at.root.parent)

    def fault(self, combination: Combination, stdin: bytes = b"") -> str:
        """What is wrong with how the command ended; empty if nothing is."""
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        try:
            said = self._call(*combination.argv)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  (whatever it is, it is a traceback)
            self._capsys.readouterr()
            self._renew()
            return f"{type(error).__name__}: {str(error)[:300]}"
        problem = wrong(combination.argv, said)
        after = contents(self.at.root.parent)
        if after != self.before:
            changed = sorted(
                name for name in {*after, *self.before} if after.get(name) != self.before.get(name)
            )
            self._renew()
            if said.code and not self._may_have_done(combination.command, said.code):
                return (
                    problem
                    or f"exit code {said.code} and changed: {', '.join(changed)[:400]}\n{said.err[:300]}"
                )
        return problem

    @staticmethod
    def _may_have_done(command: Command, code: int) -> bool:
        return command.name in AGENTS_MAY_HAVE_WORKED and code not in NOTHING_DONE


def wrong(argv: tuple[str, ...], said: Said) -> str:
    """What is wrong with what a command has said; empty if nothing is."""
    everything = said.out + said.err
    if said.code not in KNOWN_CODES:
        return f"exit code {said.code}"
    if "Traceback" in everything:
        return said.err[-600:]
    if any(ord(letter) < 32 and letter not in "\n\t" for letter in everything):
        return f"control characters: {everything[:300]!r}"
    if said.code == 0:
        return ""
    found = re.search(r"^error: .*\Z", said.err, re.M | re.S)
    if found is None:
        return "" if said.out else f"exit code {said.code} without a word"
    if not re.fullmatch(r"error: [^\n]{1,2500}(\n\nhint: [^\n]{1,2500})?\n", found[0]):
        return f"not one line and a hint: {found[0][:500]!r}"
    return _wrong_document(said) if "--json" in argv else ""


def _wrong_document(said: Said) -> str:
    try:
        shown = said.document
    except ValueError:
        return f"no document: {said.out[:300]!r}"
    error = shown.get("error") if isinstance(shown, dict) else None
    if isinstance(error, dict) and {"code", "error", "message", "hint"} - set(error):
        return f"not all of an error: {said.out[:300]}"
    return ""


def contents(place: Path) -> dict[str, object]:
    """Everything that is on disk there, and how far the ledger has come."""
    found: dict[str, object] = {}
    for directory, names, files in os.walk(place):
        if directory.endswith("/.planforge"):
            names[:] = [name for name in names if name not in ("locks", "wakeups", "processes")]
        for name in files:
            path = Path(directory, name)
            shown = str(path.relative_to(place))
            if name.startswith(("ledger.db", ".programs.json")) or name.endswith(".lock"):
                continue
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                found[shown] = str(path.readlink())
            elif stat.S_ISREG(mode):
                found[shown] = hashlib.sha256(path.read_bytes()).hexdigest()
            else:
                found[shown] = mode
        for name in names:
            found[str(Path(directory, name).relative_to(place))] = "directory"
    for ledger in place.glob("*/.planforge/ledger.db"):
        if ledger.is_file():
            found["ledger"] = _length(ledger)
    return found


def _length(ledger: Path) -> object:
    try:
        with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT max(seq) FROM events").fetchone()
    except sqlite3.DatabaseError:
        return hashlib.sha256(ledger.read_bytes()).hexdigest()
