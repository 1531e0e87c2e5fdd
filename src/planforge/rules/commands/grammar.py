"""
Text to a command, and a command back to text.

A command is a line that begins with `!` and a known word, whatever its case, with white space or nothing
after it: `!forge it` is one, `!forging` is not. What follows `!plan` or `!forge` is a description unless its
first word is reserved; in quotation marks it is always a description. Ids are `plan-017`, `plan-17`, `17`,
or a task's, such as `ws-12`. Where a keyboard has made one long dash of two, or a curved quotation mark of
a straight one, it is read as it was meant. `parse` never raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from planforge.kernel.work.lifecycle.tables import PLAN
from planforge.rules.commands.shapes import FORMS, TABLE, Command, Form

DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
LONGEST = 20_000
"""Nobody means a command that is longer; it is refused, not cut."""

FIRST = re.compile(r"\s*!(?P<word>[A-Za-z]+)(?P<rest>\s.*|)\Z", re.DOTALL)
PLAN_ID = re.compile(r"(?:plan-)?0*(?P<number>[1-9]\d{0,8})", re.IGNORECASE | re.ASCII)
TASK_ID = re.compile(r"[a-z][a-z0-9_]*(?:-[a-z0-9_]+)*-\d{1,9}", re.IGNORECASE | re.ASCII)
RUN_ID = re.compile(r"(?:run-)?0*(?P<number>[1-9]\d{0,8})", re.IGNORECASE | re.ASCII)
PHASE_ID = re.compile(r"phase-0*(?P<number>[1-9]\d{0,8})", re.IGNORECASE | re.ASCII)
STEP_ID = re.compile(r"[a-z][\w.-]*", re.IGNORECASE | re.ASCII)
NUMBER = re.compile(r"0*(?P<number>[1-9]\d{0,8})", re.ASCII)
FLAG = re.compile(rf"[-{DASHES}]+\w")
QUOTES = (('"', '"'), ("\u201c", "\u201d"), ("\u201e", "\u201c"), ("\u00ab", "\u00bb"))


class NoCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What a person said to somebody else."""

    text: str
    unknown: str = ""
    """The word after `!`, if it looks like a command that there is not."""


class Misused(msgspec.Struct, frozen=True, kw_only=True):
    """A command that is not written as it must be; nothing was done."""

    problem: str
    usage: str
    hint: str = ""


Parsed: TypeAlias = Command | NoCommand | Misused
Word: TypeAlias = Callable[[str], Parsed]
"""What follows the first word of a command, read."""


class _Wrong(Exception):
    """What is wrong with a command."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


def looks_like_a_plan(text: str) -> bool:
    """Whether it is the id of a plan: all digits, or `plan-` and digits."""
    return PLAN_ID.fullmatch(_plain(text)) is not None


def parse(text: str) -> Parsed:
    """What a text says: a command, how a command should have been written, or nothing of the kind."""
    found = FIRST.match(text)
    if found is None:
        return NoCommand(text=text)
    word, rest = found["word"].lower(), found["rest"].strip()
    reader = WORDS.get(word)
    if reader is None:
        return NoCommand(text=text, unknown=word)
    if len(text) > LONGEST:
        return Misused(
            problem=f"a command of {len(text)} characters is too long: at most {LONGEST}",
            usage=f"!{word} ...",
        )
    return reader(rest)


# One word each


def _reserving(word: str) -> Word:
    """A word that a reserved one may follow; nothing after it asks for help, anything else describes."""
    created, reserved = FORMS[f"{word} create"], RESERVED[word]

    def read(rest: str) -> Parsed:
        sub, arguments = _first(rest or "help")
        if sub in reserved:
            hint = f'a description that begins with `{sub}` goes in quotation marks: `!{word} "..."`'
            return _with_arguments(reserved[sub], arguments, hint)
        if looks_like_a_plan(rest):
            return _naming_a_plan(rest)
        return _describing(rest, created)

    def _naming_a_plan(rest: str) -> Parsed:
        plan = _plan_or_task(rest)
        if word == "forge":
            return Command(name="forge resume", plan=plan)
        return Misused(
            problem=f"`{rest}` is the id of a plan and no description",
            usage=created.usage,
            hint=f"see it with `!plan show {plan}`",
        )

    return read


def _bare(name: str) -> Word:
    return lambda rest: _with_arguments(FORMS[name], rest)


def _stop(rest: str) -> Parsed:
    del rest  # whoever stops something need not be exact
    return Command(name="stop")


# Descriptions


def _describing(rest: str, form: Form) -> Parsed:
    """A command whose argument is whatever follows, or what stands in quotation marks."""
    description = _unquoted(rest)
    if not description:
        return Misused(problem="it says nothing", usage=form.usage)
    first = rest.split(maxsplit=1)[0]
    if description == rest and FLAG.match(first) and _flag(first).startswith("--"):
        return Misused(
            problem=f"there is no `{_flag(first)}` here",
            usage=form.usage,
            hint="a description that begins like that goes in quotation marks",
        )
    return Command(name=form.name, description=description)


def _unquoted(text: str) -> str:
    for opening, closing in QUOTES:
        if len(text) > 1 and text.startswith(opening) and text.endswith(closing):
            return text[1:-1].strip()
    return text


# Arguments


def _with_arguments(form: Form, arguments: str, hint: str = "") -> Parsed:
    try:
        return _read(form, arguments.split())
    except _Wrong as error:
        return Misused(problem=error.problem, usage=form.usage, hint=error.hint or hint)


def _read(form: Form, words: list[str]) -> Command:
    """The command with what its fields take from the words, one after the other, and nothing left."""
    given: dict[str, Any] = {}
    if flags := form.flags:
        given |= {flags[_flag(word)]: True for word in words if _flag(word) in flags}
        words = [word for word in words if _flag(word) not in flags]
        for word in words:
            _refuse_flag(word)
    for field, needed in form.takes.items():
        if field == "reason":
            given[field], words = _reason(words), []
        elif not words:
            if needed:
                raise _Wrong(f"it does not say which {field}", LIKE.get(field, ""))
        elif form.name != "plan skip" or field != "phase" or PHASE_ID.fullmatch(_plain(words[0])):
            # A reason may stand there when a phase is skipped, so a phase is only what is written like one.
            _refuse_flag(words[0])
            given[field], words = TAKES[field](words[0]), words[1:]
    _require_no_more(words)
    return _checked(Command(name=form.name, **given))


def _checked(command: Command) -> Command:
    if command.keep_done and not command.regenerate:
        raise _Wrong(
            "`--keep-done` says what stays when phases are made anew, so it needs `--regenerate`",
            f"type `!plan phases --regenerate --keep-done {command.plan}`",
        )
    return command


# Words


def _first(rest: str) -> tuple[str, str]:
    """The first word, as a reserved one is written, and the rest."""
    word, _, arguments = rest.replace("\n", " ").replace("\t", " ").partition(" ")
    return _plain(word).lower(), arguments


def _plan_or_task(word: str) -> str:
    plain = _plain(word)
    if found := PLAN_ID.fullmatch(plain):
        return f"plan-{int(found['number']):03}"
    if TASK_ID.fullmatch(plain) and not PLAN_ID.match(plain):
        return plain
    raise _Wrong(f"`{word}` is not the id of a plan or a task")


def _phase(word: str) -> str:
    plain = _plain(word)
    if found := PHASE_ID.fullmatch(plain) or NUMBER.fullmatch(plain):
        return f"phase-{int(found['number'])}"
    if STEP_ID.fullmatch(plain):
        return plain
    raise _Wrong(f"`{word}` is not the id of a phase", LIKE["phase"])


def _status(word: str) -> str:
    if word.upper() not in PLAN.states:
        known = ", ".join(each.lower() for each in PLAN.states)
        raise _Wrong(f"`{word}` is no status of a plan; they are {known}")
    return word.upper()


def _run(word: str) -> str:
    found = RUN_ID.fullmatch(_plain(word))
    if found is None:
        raise _Wrong(f"`{word}` is not the id of a run", LIKE["run"])
    return f"run-{int(found['number']):03}"


TAKES: Mapping[str, Callable[[str], str]] = {
    "plan": _plan_or_task,
    "phase": _phase,
    "status": _status,
    "run": _run,
}
"""What reads the word for each field that takes one; a reason takes all words that are left."""

LIKE = {"phase": "write it like `phase-2`", "run": "write it like `run-003` or `3`"}


def _reason(words: list[str]) -> str:
    while words and not _plain(words[0]).strip("-"):
        words = words[1:]  # `close 17 — it has landed`
    if words:
        _refuse_flag(words[0])
    return " ".join(words)


def _require_no_more(words: Iterable[str]) -> None:
    for word in words:
        _refuse_flag(word)
        raise _Wrong(f"`{word}` is more than it takes")


def _flag(word: str) -> str:
    """A flag as it was meant: a long dash is two."""
    bare = word.lstrip("-" + DASHES)
    dashes = word[: len(word) - len(bare)]
    if not dashes:
        return ""
    return f"--{_plain(bare)}" if dashes == "--" or dashes != "-" * len(dashes) else f"{dashes}{bare}"


def _refuse_flag(word: str) -> None:
    if FLAG.match(word):
        raise _Wrong(f"there is no `{_flag(word)}` here")


def _plain(word: str) -> str:
    """A word with the dashes of a typewriter."""
    return re.sub(f"[{DASHES}]", "-", word)


WITHOUT_WORD = ("plan create", "forge create", "forge resume")
"""Commands that are known by what they name or describe."""

RESERVED: Mapping[str, Mapping[str, Form]] = {
    word: {
        form.name.partition(" ")[2]: form
        for form in TABLE
        if form.name.startswith(f"{word} ") and form.name not in WITHOUT_WORD
    }
    for word in ("plan", "forge")
}
"""The words that are reserved after another one, with the commands that they make."""

WORDS: Mapping[str, Word] = {
    "plan": _reserving("plan"),
    "forge": _reserving("forge"),
    "fix": lambda rest: _describing(rest, FORMS["fix"]),
    "status": _bare("status"),
    "stop": _stop,
    "resume": _bare("resume"),
    "help": _bare("help"),
}


# And back


def written(command: Command) -> str:
    """The command as a person types it; what was said around a description is not part of that."""
    form = command.form
    if command.description:
        word, meant = form.usage.split()[0], Command(name=form.name, description=command.description)
        plain = f"{word} {command.description}"
        return plain if parse(plain) == meant else f'{word} "{command.description}"'
    begins = "!forge" if form.name == "forge resume" else f"!{form.name}"
    flags = [flag for flag, field in form.flags.items() if getattr(command, field)]
    words = [getattr(command, field) for field in form.takes]
    return " ".join([begins, *flags, *filter(None, words)])
