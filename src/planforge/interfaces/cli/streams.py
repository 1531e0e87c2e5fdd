"""The standard streams of a command, and JSON documents for them. Nothing here loads click."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

from planforge.errors import PlanforgeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from planforge.actions import Hint


def hush(stream: TextIO) -> None:
    """Point a stream without a reader at /dev/null, so that it cannot fail again, not even at exit."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)


def unprinted(stream: TextIO, error: OSError) -> PlanforgeError:
    """The error if standard output cannot be written, as on a full disk; it is not tried again."""
    hush(stream)
    return PlanforgeError(
        f"standard output cannot be written: {error.strerror}",
        "the command is done, only its output is missing: see `planforge status`",
    )


def is_text(word: str) -> bool:
    """Whether an argument was UTF-8: Python turns other bytes into surrogates."""
    return word.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in word)


def is_read(stream: TextIO) -> bool:
    """Whether a pipe still has a reader; True for anything else."""
    from select import POLLERR, poll

    poller = poll()
    poller.register(stream, 0)
    return not any(event & POLLERR for _, event in poller.poll(0))


def as_document(value: object) -> str:
    """A structure as one indented JSON document."""
    import msgspec

    return msgspec.json.format(encoded(value), indent=2).decode()


def encoded(value: object, say: Callable[[Hint], str] | None = None) -> bytes:
    """A structure as JSON on one line; `say` writes hints, by default as commands of a shell."""
    import msgspec

    from planforge.actions import Action, Advice
    from planforge.interfaces.cli.typed import line

    def hook(found: object) -> str:
        if isinstance(found, Action | Advice):
            return (say or line)(found)
        raise NotImplementedError(f"`{type(found).__name__}` has no place in a document")

    try:
        return msgspec.json.encode(value, enc_hook=hook)
    except UnicodeEncodeError:  # file names can be in any encoding, a document is UTF-8
        return msgspec.json.encode(_in_unicode(msgspec.to_builtins(value, enc_hook=hook)))


def _in_unicode(value: object) -> object:
    """The same value with bytes escaped that are not UTF-8."""
    if isinstance(value, str):
        return os.fsencode(value).decode("utf-8", "backslashreplace")
    if isinstance(value, dict):
        return {_in_unicode(key): _in_unicode(each) for key, each in value.items()}
    return list(map(_in_unicode, value)) if isinstance(value, list | tuple) else value
