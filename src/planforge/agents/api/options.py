"""
What the program is told when it is started: whom to ask, with which tools, within which limits.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Literal, get_args

import msgspec

from planforge import __version__

Provider = Literal["openai", "anthropic", "google", "openai-compatible"]
Mode = Literal["text", "read", "ask", "write"]

MODES: tuple[Mode, ...] = get_args(Mode)
"""From the least to the most that a model may do."""

MOST: dict[str, Mode] = {"none": "text", "read": "read", "all": "write"}
"""The mode that each `--tools` allows at most."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How the program was started."""

    provider: Provider
    model: str = ""
    base_url: str = ""
    key_variable: str = ""
    mode: Mode = "ask"
    """The mode of a session that nobody has set another one for."""
    most: Mode = "write"
    """The mode that no session goes beyond."""
    requests: int = 100
    """How many requests to the model one turn may make."""
    retries: int = 2
    """How often a request is sent again if the service failed or was out of reach."""
    request_seconds: float = 600.0
    shell_seconds: float = 120.0
    output_tokens: int = 0
    """How long one response may be; 0 leaves it to the service."""

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes a session may have."""
        return MODES[: MODES.index(self.most) + 1]


def parse(arguments: Sequence[str]) -> Options:
    """The options that the command line says; ends the program if it makes no sense."""
    parser = _parser()
    said = parser.parse_args(arguments)
    most = MOST[said.tools]
    mode: Mode = said.mode or min("ask", most, key=MODES.index)
    if MODES.index(mode) > MODES.index(most):
        parser.error(f"--mode {mode} needs more than --tools {said.tools}")
    if said.provider == "openai-compatible" and not said.base_url:
        parser.error("--provider openai-compatible needs --base-url, such as http://127.0.0.1:11434/v1")
    taken = {name: value for name, value in vars(said).items() if name not in ("mode", "tools")}
    return Options(**taken, mode=mode, most=most)


def _parser() -> argparse.ArgumentParser:
    defaults = Options(provider="openai")
    parser = argparse.ArgumentParser(
        prog="python -m planforge.agents.api",
        description="A model API as an agent, on standard input and output.",
    )
    parser.add_argument("--version", action="version", version=f"planforge {__version__}")
    parser.add_argument("--provider", required=True, choices=get_args(Provider))
    parser.add_argument(
        "--model", default="", help="the model; a session's option `model` may say it instead"
    )
    parser.add_argument("--base-url", default="", help="another server, such as http://127.0.0.1:11434/v1")
    parser.add_argument("--key-variable", default="", metavar="NAME", help="the variable that holds the key")
    parser.add_argument("--tools", choices=tuple(MOST), default="all", help="the most that any session gets")
    parser.add_argument("--mode", choices=MODES, default=None, help="the mode of a new session")
    parser.add_argument("--requests", type=_positive, default=defaults.requests, metavar="N")
    parser.add_argument("--retries", type=_count, default=defaults.retries, metavar="N")
    parser.add_argument("--request-seconds", type=_seconds, default=defaults.request_seconds, metavar="S")
    parser.add_argument("--shell-seconds", type=_seconds, default=defaults.shell_seconds, metavar="S")
    parser.add_argument("--output-tokens", type=_count, default=defaults.output_tokens, metavar="N")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError
    return number


def _seconds(text: str) -> float:
    if not 0 < (number := float(text)) <= 86400:
        raise ValueError
    return number
