"""
Whether a command can be started: its program, and the tool that this program starts.

`python3 -m pytest` needs pytest and Python, `npx jest` needs jest. If Planforge cannot find out, the status
is unknown, never ok.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from planforge.actions import Action
from planforge.app.upkeep.doctor.findings import FAIL, OK, UNKNOWN, Finding
from planforge.workspace.processes import environment

PYTHON = re.compile(r"(python|pypy)[\d.]*")
ASK = "import importlib.util, sys; sys.exit(3 if importlib.util.find_spec(sys.argv[1]) is None else 0)"
MISSING = 3
PATIENCE = 20.0
NODE = {("npx",), ("bunx",), ("pnpm", "exec"), ("yarn", "exec")}
"""Commands that run a program of `node_modules`."""


def look(
    id_: str,
    command: Sequence[str],
    otherwise: str,
    root: Path,
    env: Mapping[str, str] | None = None,
    *,
    made: bool = False,
) -> Finding:
    """
    Whether `command` can be started for the project at `root`, with `env` in its environment.

    `made`: a setup command may install more in worktrees than in the person's checkout.
    """
    if not command:
        return Finding(id=id_, status=FAIL, evidence="the command is empty", fix=otherwise)
    words = [_filled(word, root) for word in command]
    told = {name: _filled(value, root) for name, value in (env or {}).items()}
    missing = _missing(words, root, told)
    if not missing:
        return Finding(id=id_, status=OK, evidence=" ".join(command))
    own = "/" in command[0] and not command[0].startswith(("/", "${root}"))
    later = made and (own or words[0] in {prefix[0] for prefix in NODE})
    return Finding(
        id=id_,
        status=UNKNOWN if later else FAIL,
        evidence=f"{missing}; `workspace.setup` may install it" if later else missing,
        fix=Action("evidence") if later else f"install it, or {otherwise}",
    )


def _filled(text: str, root: Path) -> str:
    """A text of a check, with its variables filled in for the person's checkout."""
    path = os.environ.get("PATH", os.defpath)
    for name, value in {"checkout": str(root), "reports": str(root), "root": str(root), "PATH": path}.items():
        text = text.replace(f"${{{name}}}", value)
    return text


def _missing(words: Sequence[str], root: Path, env: Mapping[str, str]) -> str:
    """What a command needs and this machine lacks; empty if nothing is known to be missing."""
    path = env.get("PATH", os.environ.get("PATH", os.defpath))
    program = shutil.which(str(root / words[0]) if "/" in words[0] else words[0], path=path)
    if program is None:
        if "/" not in words[0]:
            return f"`{words[0]}` is not on PATH"
        return f"`{words[0]}` {'cannot be executed' if (root / words[0]).exists() else 'does not exist'}"
    if PYTHON.fullmatch(Path(program).name) and "-m" in words[1:-1]:
        return _module(program, words[words.index("-m", 1) + 1], root, env)
    for prefix in NODE:
        rest = [word for word in words[len(prefix) :] if not word.startswith("-")]
        if tuple(words[: len(prefix)]) == prefix and rest:
            there = shutil.which(rest[0], path=str(root / "node_modules" / ".bin"))
            return "" if there else f"`{rest[0]}` is not installed in `node_modules`"
    return ""


def _module(python: str, module: str, root: Path, env: Mapping[str, str]) -> str:
    """Why a Python module cannot be run; empty if it can."""
    top = module.partition(".")[0]
    try:
        ended = subprocess.run(
            [python, "-c", ASK, top],
            cwd=root,
            env=environment(env),
            capture_output=True,
            check=False,
            timeout=PATIENCE,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"`{python}` cannot be started: {error}"
    if ended.returncode == MISSING:
        return f"`{top}` is not installed for `{python}`"
    said = ended.stderr.decode("utf-8", "replace").strip().splitlines()
    return f"`{python}` does not work: {said[-1] if said else ended.returncode}" if ended.returncode else ""
