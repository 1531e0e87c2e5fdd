"""
The `planforge` command: where a call goes, and how a failure looks.

A read command in its plain form is answered without click, which costs more to
load than the answer; everything else, help and mistakes included, goes through
click. Every failure is one line, a hint, and an exit code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module

from planforge import __version__
from planforge.errors import PlanforgeError, StaleView

QUICK: dict[str, dict[str, tuple[str, Callable[[str], object] | None]]] = {
    "status": {"--json": ("as_json", None)},
    "log": {
        "-n": ("last", int),
        "--last": ("last", int),
        "--run": ("streams", str),
        "--stream": ("streams", str),
        "--kind": ("kinds", str),
        "--plan": ("plan", str),
        "--since": ("since", int),
        "-f": ("follow", None),
        "--follow": ("follow", None),
        "--json": ("as_json", None),
    },
}
"""The read commands that have a quick way, and which argument each option is, with the type of its value."""

DEFAULTS: dict[str, dict[str, object]] = {
    "status": {"as_json": False},
    "log": {
        "as_json": False,
        "last": None,
        "streams": (),
        "kinds": (),
        "plan": None,
        "since": 0,
        "follow": False,
    },
}
"""An option whose default is a tuple may be given more than once."""


def run() -> None:
    """The entry point: turn every failure into a line, a hint and an exit code."""
    try:
        code = _dispatch(sys.argv[1:])
    except PlanforgeError as error:
        code = fail(error, error.exit_code)
    except BrokenPipeError:  # whoever read our output has seen enough
        from planforge.interfaces.cli.printing import hush

        hush(sys.stdout)
        code = 0
    sys.exit(code)


def _dispatch(words: list[str]) -> int:
    if words == ["--version"]:
        print(f"planforge {__version__}")
        return 0
    if (arguments := plain_form(words)) is not None:
        _answer_quickly(words[0], arguments)
        return 0
    from planforge.interfaces.cli.commands import call

    return call(words)


def _answer_quickly(command: str, arguments: dict[str, object]) -> None:
    following = bool(arguments.get("follow"))
    try:
        _load_quickly()
        view: Callable[..., Iterator[str]] = getattr(import_module("planforge.interfaces.cli.views"), command)
        for text in view(**arguments):
            print(text, flush=following)
        sys.stdout.flush()
    except KeyboardInterrupt:
        if not following:  # which has no other end
            raise


def _load_quickly() -> None:
    # msgspec takes `typing_extensions` if it can have it and does without it otherwise. A read command
    # needs none of it, and it is a sixth of the time such a command takes.
    absent = "typing_extensions" not in sys.modules
    if absent:
        sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    import_module("msgspec")
    if absent:
        del sys.modules["typing_extensions"]


def plain_form(words: list[str]) -> dict[str, object] | None:
    """The arguments of a read command in its plain form, or None if click has to look at it."""
    if not words or words[0] not in QUICK:
        return None
    arguments = dict(DEFAULTS[words[0]])
    rest = iter(words[1:])
    for word in rest:
        name, read = QUICK[words[0]].get(word, ("", None))
        if not name:
            return None
        try:
            value = read(next(rest)) if read else True
        except (StopIteration, ValueError):
            return None
        before = arguments[name]
        arguments[name] = (*before, value) if isinstance(before, tuple) else value
    return arguments


def fail(error: PlanforgeError, code: int) -> int:
    """Say what went wrong and what to do about it."""
    hint = f"\n\nhint: {error.hint}" if error.hint else ""
    print(f"error: {error.message}{hint}", file=sys.stderr)
    if "--json" in sys.argv:
        from planforge.interfaces.cli.printing import as_document

        name = type(error).__name__
        said: dict[str, object] = {"code": code, "error": name, "message": error.message, "hint": error.hint}
        if isinstance(error, StaleView):
            said["current"] = error.current
        print(as_document({"error": said}))
    return code
