"""The program's command line, its key, and a machine without the extra."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import planforge
from planforge import __version__
from planforge.agents import api
from planforge.agents.api import keys, options
from planforge.agents.api.options import Options


def test_it_says_its_version_without_loading_what_it_is_made_of() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "planforge.agents.api", "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert said.stdout == f"planforge {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--provider", "nobody"],
        ["--provider", "openai-compatible", "--model", "m"],
        ["--provider", "openai", "--requests", "0"],
        ["--provider", "openai", "--request-seconds", "0"],
        ["--provider", "openai", "--retries", "-1"],
        ["--provider", "openai", "--tools", "read", "--mode", "write"],
    ],
)
def test_a_command_line_that_makes_no_sense_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        options.parse(arguments)
    assert ended.value.code == 2
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("tools", "mode", "modes"),
    [
        ("none", "text", ("text",)),
        ("read", "read", ("text", "read")),
        ("all", "ask", ("text", "read", "ask", "write")),
    ],
)
def test_tools_say_what_modes_there_are(tools: str, mode: str, modes: tuple[str, ...]) -> None:
    chosen = options.parse(["--provider", "openai", "--tools", tools])
    assert (chosen.mode, chosen.modes) == (mode, modes)


def test_without_the_extra_it_says_how_to_get_it(tmp_path: Path) -> None:
    """Python without its installed packages, given back only those that Planforge itself starts with."""
    (tmp_path / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    path = f"{Path(planforge.__file__).parents[1]}{os.pathsep}{tmp_path}"
    ended = subprocess.run(
        [sys.executable, "-S", "-m", "planforge.agents.api", "--provider", "openai"],
        env={"PYTHONPATH": path, "OPENAI_API_KEY": "x"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 4
    assert ended.stderr.endswith('which is not installed; pip install "planforge[api]"\n')
    assert ended.stdout == ""


def test_with_the_extra_nothing_is_missing() -> None:
    api.require()


def test_what_may_be_seen_has_no_secret_in_it() -> None:
    environ = {
        "PATH": "/bin",
        "OPENAI_API_KEY": "k",
        "GITHUB_TOKEN": "t",
        "MY_SECRET": "s",
        "DB_PASSWORD": "p",
        "AWS_SESSION_TOKEN": "",
        "ODD": "o",
    }
    assert keys.harmless(environ, "ODD") == {"PATH": "/bin", "AWS_SESSION_TOKEN": ""}


def test_a_key_can_be_in_a_variable_of_any_name() -> None:
    assert keys.variables(Options(provider="openai-compatible", key_variable="ROUTER")) == ("ROUTER",)
    assert keys.variables(Options(provider="openai")) == ("OPENAI_API_KEY",)


def test_nothing_heavy_is_loaded_before_it_is_needed() -> None:
    heavy = ("pydantic_ai", "acp", "openai", "anthropic", "google.genai")
    code = f"import sys, planforge.agents.api.command; print([n for n in {heavy} if n in sys.modules])"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "[]\n"
