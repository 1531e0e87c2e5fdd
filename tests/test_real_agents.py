"""The tool behind `make test-agents`: what cannot be installed is not run, and is never passed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from programs import PYTHON_SCRIPT

TOOL = Path(__file__).parents[1] / "tools" / "real_agents.py"

NPM = """\
{first}\
# Installs as npm would, but for one package that the registry does not have.
import json, pathlib, sys
wanted = json.loads(pathlib.Path("package.json").read_text())["dependencies"]
if "opencode-ai" in wanted:
    sys.exit("npm error code ETARGET")
names = {{"@anthropic-ai/claude-code": "claude", "@openai/codex": "codex"}}
place = pathlib.Path("node_modules/.bin")
place.mkdir(parents=True)
for package in wanted:
    pathlib.Path("node_modules", package).mkdir(parents=True)
for name in ("node", *filter(None, map(names.get, wanted))):
    (place / name).write_text("#!/bin/sh\\necho 22.0.0\\n")
    (place / name).chmod(0o755)
"""


def run(tmp_path: Path, *words: str, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(TOOL), *words],
        env={"PATH": path, "HOME": str(tmp_path), "PLANFORGE_AGENTS_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def path(tmp_path: Path) -> str:
    """PATH with a registry that lacks much."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "npm").write_text(NPM.format(first=PYTHON_SCRIPT))
    (programs / "npm").chmod(0o755)
    return f"{programs}{os.pathsep}{os.environ['PATH']}"


def test_without_npm_nothing_is_run_and_that_is_a_failure(tmp_path: Path) -> None:
    told = run(tmp_path, path=str(tmp_path / "nowhere"))
    assert told.returncode == 1
    assert told.stdout.count("is NOT RUN: there is no `npm`") == 8
    assert "nothing was tested" in told.stdout


def test_that_nothing_is_run_passes_only_if_it_was_asked_for(tmp_path: Path) -> None:
    assert run(tmp_path, "--allow-none", path=str(tmp_path / "nowhere")).returncode == 0


def test_one_program_that_cannot_be_had_does_not_keep_the_others_away(tmp_path: Path, path: str) -> None:
    told = run(tmp_path, "--only-install", path=path)
    assert told.returncode == 0, told.stderr
    assert "agents: claude, codex in " in told.stdout
    assert "opencode is NOT RUN: `npm install` failed with 1: npm error code ETARGET" in told.stdout
    assert "gemini is NOT RUN: `@google/gemini-cli` holds no program `gemini`" in told.stdout


def test_what_is_installed_is_used_again(tmp_path: Path, path: str) -> None:
    run(tmp_path, "--only-install", path=path)
    (tmp_path / "programs" / "npm").unlink()
    told = run(tmp_path, "--only-install", path=f"{tmp_path}{os.pathsep}/usr/bin-without-npm")
    assert "agents: claude, codex in " in told.stdout
    assert "gemini is NOT RUN: there is no `npm`" in told.stdout
