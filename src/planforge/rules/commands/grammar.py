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
from typing import TypeAlias

import msgspec

from planforge.rules.commands import shapes
from planforge.rules.commands.shapes import Command

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
STATUSES = ("DRAFT", "REVIEW", "APPROVED", "IMPLEMENTING", "AUDITING", "DONE", "CLOSED", "CANCELLED")


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


def _plan(rest: str) -> Parsed:
    if not rest:
        return shapes.PlanHelp()
    sub, arguments = _first(rest)
    if sub in PLAN:
        return _with_arguments(*PLAN[sub], arguments, f"!plan {sub}", rest)
    return _describing(rest, shapes.PlanCreate, lambda text: shapes.PlanCreate(description=text), "plan")


def _forge(rest: str) -> Parsed:
    if not rest:
        return shapes.ForgeHelp()
    sub, arguments = _first(rest)
    if sub in FORGE:
        return _with_arguments(*FORGE[sub], arguments, f"!forge {sub}", rest)
    if looks_like_a_plan(rest):
        return shapes.ForgeResume(plan=_plan_or_task([rest]))
    return _describing(rest, shapes.ForgeCreate, lambda text: shapes.ForgeCreate(description=text), "forge")


def _fix(rest: str) -> Parsed:
    return _describing(rest, shapes.Fix, lambda text: shapes.Fix(description=text), "")


def _bare(kind: type[shapes.Status | shapes.Help], word: str) -> Callable[[str], Parsed]:
    return lambda rest: _with_arguments(kind, _nothing(kind), rest, f"!{word}", "")


def _stop(rest: str) -> Parsed:
    del rest  # whoever stops something need not be exact
    return shapes.Stop()


def _resume(rest: str) -> Parsed:
    return _with_arguments(shapes.Resume, _resumed, rest, "!resume", "")


# Descriptions


def _describing(rest: str, kind: type[Command], made: Callable[[str], Command], word: str) -> Parsed:
    """A command whose argument is whatever follows, or what stands in quotation marks."""
    description = _unquoted(rest)
    if not description:
        return Misused(problem="it says nothing", usage=shapes.usage(kind))
    first = rest.split(maxsplit=1)[0]
    if description == rest and FLAG.match(first) and _flag(first).startswith("--"):
        return Misused(
            problem=f"there is no `{_flag(first)}` here",
            usage=shapes.usage(kind),
            hint="a description that begins like that goes in quotation marks",
        )
    if word == "plan" and description == rest and looks_like_a_plan(rest):
        plan = _plan_or_task([rest])
        return Misused(
            problem=f"`{rest}` is the id of a plan and no description",
            usage=shapes.usage(kind),
            hint=f"see it with `!plan show {plan}`",
        )
    return made(description)


def _unquoted(text: str) -> str:
    for opening, closing in QUOTES:
        if len(text) > 1 and text.startswith(opening) and text.endswith(closing):
            return text[1:-1].strip()
    return text


# Arguments

Reader: TypeAlias = Callable[[list[str]], Command]


def _with_arguments(kind: type[Command], reader: Reader, arguments: str, words: str, rest: str) -> Parsed:
    try:
        return reader(arguments.split())
    except _Wrong as error:
        misused = Misused(problem=error.problem, usage=shapes.usage(kind), hint=error.hint)
    if rest and not misused.hint:
        misused = msgspec.structs.replace(
            misused,
            hint=f"a description that begins with `{words.split()[1]}` goes in quotation marks: "
            f'`{words.split(maxsplit=1)[0]} "..."`',
        )
    return misused


def _nothing(kind: Callable[[], Command]) -> Reader:
    def read(words: list[str]) -> Command:
        _require_no_more(words)
        return kind()

    return read


def _one_plan(kind: Callable[..., Command]) -> Reader:
    def read(words: list[str]) -> Command:
        plan = _plan_or_task(words)
        _require_no_more(words[1:])
        return kind(plan=plan)

    return read


def _listed(words: list[str]) -> Command:
    if not words:
        return shapes.PlanList()
    status = words[0].upper()
    if FLAG.match(words[0]) or status not in STATUSES:
        _refuse_flag(words[0])
        raise _Wrong(
            f"`{words[0]}` is no status of a plan; they are {', '.join(each.lower() for each in STATUSES)}"
        )
    _require_no_more(words[1:])
    return shapes.PlanList(status=status)


def _closed(words: list[str]) -> Command:
    return shapes.PlanClose(plan=_plan_or_task(words), reason=_reason(words[1:]))


def _cancelled(words: list[str]) -> Command:
    if not words:
        return shapes.PlanCancel()
    return shapes.PlanCancel(plan=_plan_or_task(words), reason=_reason(words[1:]))


def _phases(words: list[str]) -> Command:
    flags = {"--regenerate": False, "--keep-done": False}
    others = []
    for word in words:
        name = _flag(word)
        if name in flags:
            flags[name] = True
        else:
            _refuse_flag(word)
            others.append(word)
    plan = _plan_or_task(others)
    _require_no_more(others[1:])
    if flags["--keep-done"] and not flags["--regenerate"]:
        raise _Wrong(
            "`--keep-done` says what stays when phases are made anew, so it needs `--regenerate`",
            f"type `!plan phases --regenerate --keep-done {plan}`",
        )
    return shapes.PlanPhases(plan=plan, regenerate=flags["--regenerate"], keep_done=flags["--keep-done"])


def _run_phase(words: list[str]) -> Command:
    plan, phase = _plan_or_task(words), _phase(words[1:])
    _require_no_more(words[2:])
    return shapes.PlanRunPhase(plan=plan, phase=phase)


def _skipped(words: list[str]) -> Command:
    plan, (phase, rest) = _plan_or_task(words), _maybe_phase(words[1:])
    return shapes.PlanSkip(plan=plan, phase=phase, reason=_reason(rest))


def _skipped_to(words: list[str]) -> Command:
    plan, phase = _plan_or_task(words), _phase(words[1:])
    return shapes.PlanSkipTo(plan=plan, phase=phase, reason=_reason(words[2:]))


def _retried(words: list[str]) -> Command:
    plan = _plan_or_task(words)
    phase = _phase(words[1:]) if words[1:] else ""
    _require_no_more(words[2:])
    return shapes.PlanRetry(plan=plan, phase=phase)


def _resumed(words: list[str]) -> Command:
    if not words:
        return shapes.Resume()
    _refuse_flag(words[0])
    found = RUN_ID.fullmatch(_plain(words[0]))
    if found is None:
        raise _Wrong(f"`{words[0]}` is not the id of a run", "write it like `run-003` or `3`")
    _require_no_more(words[1:])
    return shapes.Resume(run=f"run-{int(found['number']):03}")


# Words


def _first(rest: str) -> tuple[str, str]:
    """The first word, as a reserved one is written, and the rest."""
    word, _, arguments = rest.replace("\n", " ").replace("\t", " ").partition(" ")
    return _plain(word).lower(), arguments


def _plan_or_task(words: list[str]) -> str:
    if not words:
        raise _Wrong("it does not say which plan")
    _refuse_flag(words[0])
    plain = _plain(words[0])
    if found := PLAN_ID.fullmatch(plain):
        return f"plan-{int(found['number']):03}"
    if TASK_ID.fullmatch(plain) and not PLAN_ID.match(plain):
        return plain
    raise _Wrong(f"`{words[0]}` is not the id of a plan or a task")


def _phase(words: list[str]) -> str:
    if not words:
        raise _Wrong("it does not say which phase", "write it like `phase-2`")
    _refuse_flag(words[0])
    plain = _plain(words[0])
    if found := PHASE_ID.fullmatch(plain) or NUMBER.fullmatch(plain):
        return f"phase-{int(found['number'])}"
    if STEP_ID.fullmatch(plain):
        return plain
    raise _Wrong(f"`{words[0]}` is not the id of a phase", "write it like `phase-2`")


def _maybe_phase(words: list[str]) -> tuple[str, list[str]]:
    """A phase where a reason might stand as well: only what is written like one."""
    if words and PHASE_ID.fullmatch(_plain(words[0])):
        return _phase(words), words[1:]
    return "", words


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


PLAN: Mapping[str, tuple[type[Command], Reader]] = {
    "help": (shapes.PlanHelp, _nothing(shapes.PlanHelp)),
    "list": (shapes.PlanList, _listed),
    "show": (shapes.PlanShow, _one_plan(shapes.PlanShow)),
    "approve": (shapes.PlanApprove, _one_plan(shapes.PlanApprove)),
    "close": (shapes.PlanClose, _closed),
    "cancel": (shapes.PlanCancel, _cancelled),
    "phases": (shapes.PlanPhases, _phases),
    "run": (shapes.PlanRun, _one_plan(shapes.PlanRun)),
    "run-one": (shapes.PlanRunOne, _one_plan(shapes.PlanRunOne)),
    "run-phase": (shapes.PlanRunPhase, _run_phase),
    "skip": (shapes.PlanSkip, _skipped),
    "skip-to": (shapes.PlanSkipTo, _skipped_to),
    "audit": (shapes.PlanAudit, _one_plan(shapes.PlanAudit)),
    "retry": (shapes.PlanRetry, _retried),
    "land": (shapes.PlanLand, _one_plan(shapes.PlanLand)),
    "diff": (shapes.PlanDiff, _one_plan(shapes.PlanDiff)),
}
"""The words that are reserved after `!plan`; the last three are ours."""

FORGE: Mapping[str, tuple[type[Command], Reader]] = {
    "help": (shapes.ForgeHelp, _nothing(shapes.ForgeHelp)),
    "status": (shapes.ForgeStatus, _nothing(shapes.ForgeStatus)),
    "cancel": (shapes.ForgeCancel, _nothing(shapes.ForgeCancel)),
    "audit": (shapes.ForgeAudit, _one_plan(shapes.ForgeAudit)),
}
"""The words that are reserved after `!forge`."""

WORDS: Mapping[str, Callable[[str], Parsed]] = {
    "plan": _plan,
    "forge": _forge,
    "fix": _fix,
    "status": _bare(shapes.Status, "status"),
    "stop": _stop,
    "resume": _resume,
    "help": _bare(shapes.Help, "help"),
}


# And back


def written(command: Command) -> str:
    """The command as a person types it; what was said around a description is not part of that."""
    match command:
        case shapes.PlanCreate(description=text):
            return _described("!plan", text, shapes.PlanCreate(description=text))
        case shapes.ForgeCreate(description=text):
            return _described("!forge", text, shapes.ForgeCreate(description=text))
        case shapes.Fix(description=text):
            return _described("!fix", text, command)
        case shapes.ForgeResume(plan=plan):
            return f"!forge {plan}"
        case shapes.PlanPhases(plan=plan, regenerate=regenerate, keep_done=keep_done):
            flags = ("--regenerate " if regenerate else "") + ("--keep-done " if keep_done else "")
            return f"!plan phases {flags}{plan}"
    words = [str(getattr(command, name)) for name in command.__struct_fields__]
    return " ".join([f"!{command.__struct_config__.tag}", *filter(None, words)])


def _described(words: str, text: str, meant: Command) -> str:
    plain = f"{words} {text}"
    return plain if parse(plain) == meant else f'{words} "{text}"'
