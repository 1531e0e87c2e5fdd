"""
The key of a model API, kept from everything that the model has started.

A program can read the environment that its parents were started with (`/proc/PID/environ`), whatever they
did to it since. So the program starts itself again without any secret in its environment, and hands itself
the key through a pipe that nobody else has.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from planforge.agents.api.options import Options, Provider
from planforge.errors import AgentUnavailable

FILE_VARIABLE = "PLANFORGE_API_KEY_FILE"
"""Names a file that holds the key. It is read and removed, so that no other process finds it."""

PIPE_VARIABLE = "PLANFORGE_API_KEY_PIPE"
"""The descriptor that the key can be read from, once."""

VARIABLES: dict[Provider, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "openai-compatible": ("PLANFORGE_API_KEY",),
}
"""Where each provider's key is looked for. A compatible server never gets the key of OpenAI."""

_SECRET = re.compile(r"API_?KEY|TOKEN|SECRET|PASSWORD|PASSPHRASE|CREDENTIAL", re.IGNORECASE)


def variables(options: Options) -> tuple[str, ...]:
    """The variables that may hold the key."""
    return (options.key_variable,) if options.key_variable else VARIABLES[options.provider]


def harmless(environ: Mapping[str, str], *also: str) -> dict[str, str]:
    """The variables that what a model starts may see."""
    return {
        name: value
        for name, value in environ.items()
        if name not in also and not (value and _SECRET.search(name))
    }


def take(options: Options) -> str:
    """The key, or nothing; returns only in a process whose environment has no secret."""
    handed = os.environ.pop(PIPE_VARIABLE, "")
    if handed.isdigit():
        with os.fdopen(int(handed), "rb") as pipe:
            return pipe.read().decode()
    names = variables(options)
    found = (value for name in names if (value := os.environ.get(name, "").strip()))
    key = _from_file(os.environ.get(FILE_VARIABLE, "")) or next(found, "")
    clean = harmless(os.environ, *names)
    if clean == dict(os.environ):
        return key
    return _again(key, clean)


def _from_file(name: str) -> str:
    if not name:
        return ""
    path = Path(name)
    try:
        key = path.read_text().strip()
        path.unlink()
    except (OSError, ValueError) as error:
        raise AgentUnavailable(f"the key in `{name}` cannot be taken: {error}") from error
    return key


def _again(key: str, environ: Mapping[str, str]) -> NoReturn:
    reading, writing = os.pipe()
    os.write(writing, key.encode()[:4096])  # fits into any pipe's buffer
    os.close(writing)
    os.set_inheritable(reading, True)
    os.execve(sys.executable, sys.orig_argv, {**environ, PIPE_VARIABLE: str(reading)})  # noqa: S606
