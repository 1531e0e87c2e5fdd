"""
The entry point of the `planforge` command.

`status` and `log` with plain options are answered without click, because click
takes longer to load than the answer. Everything else, with help and usage errors,
goes through click. Every failure is one line, a hint, and an exit code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from planforge import __version__
from planforge.errors import Interrupted, InvalidInput, NotFound, PlanforgeError, StaleView

if TYPE_CHECKING:
    from typing import Any

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
"""The read commands that need no click. Each option names its argument and the type of its value."""

REPEATED = ("streams", "kinds")
"""The arguments whose options can be given more than once."""

VIEWS = {"status": "status_page", "log": "log_lines"}
"""The module that answers each of them, with a function of the same name."""

WRITTEN_OUT = "backslashreplace"
"""How a character is printed that the terminal, or UTF-8, does not have."""


def run() -> None:
    """The entry point: turn every failure into a line, a hint and an exit code."""
    _open_streams()
    _settle_home()
    try:
        words = sys.argv[1:]
        _require_text(words)
        code = _dispatch(words)
    except PlanforgeError as error:
        code = fail(error, error.exit_code)
    except KeyboardInterrupt:
        code = fail(Interrupted("stopped"), Interrupted.exit_code)
    except BrokenPipeError:  # the reader of our output has seen enough
        _hush_output()
        code = 0
    except OSError as error:
        refused = _unprinted() or _refused(error)
        code = fail(refused, refused.exit_code)
    if (lost := _unprinted()) is not None:
        code = fail(lost, code or lost.exit_code)
    sys.exit(code)


def _open_streams() -> None:
    """Make the standard streams usable: a closed one is empty, and any text can be printed."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        # No file that is opened later may get the number of a standard stream: others would write into it.
        while (number := os.open(os.devnull, os.O_RDWR)) < 3:
            pass
        os.close(number)
        for name, descriptor, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
            if getattr(sys, name) is None:
                setattr(sys, name, open(descriptor, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    for stream, errors in (
        (sys.stdin, "surrogateescape"),
        (sys.stdout, WRITTEN_OUT),
        (sys.stderr, WRITTEN_OUT),
    ):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=errors)


def _require_text(words: list[str]) -> None:
    """Refuse an argument that is not UTF-8: it could not be recorded, stored or sent to an agent."""
    if all(map(str.isascii, words)):
        return
    from planforge.interfaces.cli.streams import is_text

    for number, word in enumerate(words):
        if is_text(word):
            continue
        named, _, value = word.rpartition("=") if word.startswith("-") else ("", "", word)
        named = named or (words[number - 1] if number else "")
        is_option = named.startswith("-") and named.strip("-")
        shown = os.fsencode(value).decode("utf-8", WRITTEN_OUT)
        raise InvalidInput(
            f"{f'`{named}`' if is_option else f'argument {number + 1}'} is not UTF-8: `{shown}`",
            "use UTF-8; rename a file whose name is in another encoding",
        )


def _refused(error: OSError) -> PlanforgeError:
    """An error of the operating system as an error of ours."""
    try:
        os.getcwd()  # noqa: PTH109  (which is loaded)
    except OSError:
        return NotFound("the current directory is gone", "change to an existing directory: `cd`")
    what = f"`{os.fsdecode(error.filename)}` cannot be used" if error.filename else "the system refuses"
    reason = error.strerror or str(error) or type(error).__name__
    return PlanforgeError(f"{what}: {reason}", "find the cause: `planforge doctor`")


def _unprinted() -> PlanforgeError | None:
    """The error if standard output cannot be written; None if it can."""
    try:
        _say(flush=True)
    except BrokenPipeError:
        _hush_output()
    except PlanforgeError as error:
        return error
    return None


def _hush_output() -> None:
    from planforge.interfaces.cli.streams import hush

    hush(sys.stdout)


def _settle_home() -> None:
    """Set `HOME` if it is missing: a container may have neither `HOME` nor an account."""
    if not os.environ.get("HOME"):
        known = os.path.expanduser("~")  # noqa: PTH111  (which says so instead of raising)
        os.environ["HOME"] = known if known.startswith("/") else "/"


def _dispatch(words: list[str]) -> int:
    if words == ["--version"]:
        print(f"planforge {__version__}")
        return 0
    if (arguments := plain_form(words)) is not None:
        _answer_quickly(words[0], arguments)
        return 0
    from planforge.interfaces.cli.commands import call

    return call(words)


def _answer_quickly(command: str, arguments: dict[str, Any]) -> None:
    following = bool(arguments.get("follow"))
    try:
        _load_quickly()
        module = import_module(f"planforge.interfaces.cli.{VIEWS[command]}")
        view: Callable[..., Iterator[str]] = getattr(module, command)
        for text in view(**arguments):
            _say(text, flush=following)
        _say(flush=True)
    except KeyboardInterrupt:
        if not following:  # Ctrl-C is how following ends
            raise


def _say(text: str = "", *, flush: bool) -> None:
    try:
        print(text, end="\n" if text else "", flush=flush)
    except BrokenPipeError:
        raise
    except OSError as error:
        from planforge.interfaces.cli.streams import unprinted

        raise unprinted(sys.stdout, error) from error


def _load_quickly() -> None:
    # msgspec takes `typing_extensions` if it can have it and does without it otherwise. A read command
    # needs none of it, and it is a sixth of the time such a command takes.
    absent = "typing_extensions" not in sys.modules
    if absent:
        sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    import_module("msgspec")
    if absent:
        del sys.modules["typing_extensions"]


def plain_form(words: list[str]) -> dict[str, Any] | None:
    """The arguments of a read command in its plain form; `None` if click has to parse the words."""
    if not words or words[0] not in QUICK:
        return None
    arguments: dict[str, Any] = {}
    rest = iter(words[1:])
    for word in rest:
        name, read = QUICK[words[0]].get(word, ("", None))
        if not name:
            return None
        try:
            value = read(next(rest)) if read else True
        except (StopIteration, ValueError):
            return None
        arguments[name] = (*arguments.get(name, ()), value) if name in REPEATED else value
    return arguments


def fail(error: PlanforgeError, code: int) -> int:
    """Say what went wrong and what to do about it."""
    from planforge.interfaces.cli import typed
    from planforge.interfaces.cli.layout import visible
    from planforge.interfaces.cli.streams import as_document, hush

    advice = typed.text(error.hint) or None
    hint = f"\n\nhint: {visible(advice)}" if advice else ""
    try:
        print(f"error: {visible(error.message)}{hint}", file=sys.stderr, flush=True)
    except OSError:  # nobody reads it; the exit code remains
        hush(sys.stderr)
    if "--json" in sys.argv:
        name = type(error).__name__
        said: dict[str, object] = {"code": code, "error": name, "message": error.message, "hint": advice}
        if isinstance(error, StaleView):
            said["current"] = error.current
        try:
            print(as_document({"error": said}), flush=True)
        except OSError:
            _hush_output()
    return code
