"""The import contract is kept, and it can fail: a new folder or a wrong arrow is refused."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def contract(place: Path, changes: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Check the contract on a copy of the source with `changes` added to the end of files."""
    shutil.copytree(ROOT / "src", place / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", place)
    for name, text in changes.items():
        path = place / "src" / "planforge" / name
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as file:
            file.write(text)
    program = (
        "import sys\n"
        "sys.path.insert(0, 'src')\n"
        "from importlinter.cli import lint_imports\n"
        "sys.exit(lint_imports(no_cache=True))\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program], cwd=place, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_source_keeps_its_contract(tmp_path: Path) -> None:
    process = contract(tmp_path, {})
    assert process.returncode == 0, process.stdout
    assert "0 broken" in process.stdout


@pytest.mark.parametrize(
    "changes",
    [
        {"helpers/__init__.py": "X = 1\n"},
        {"kernel/ledger/__init__.py": "import planforge.rules.findings\n"},
        {"workflows/forge.py": "import planforge.agents.profiles\n"},
        {"app/items/plans.py": "import planforge.interfaces.cli.event_words\n"},
        {"agents/acp/wire.py": "import acp\n"},
        {"agents/profiles.py": "import planforge.agents.roster\n"},
        {"app/runs.py": "import pydantic\n"},
        {"interfaces/cli/commands/bench.py": "import planforge_guardrails.command\n"},
        {"workflows/step.py": "import time\n"},
        {"workspace/sandbox/policy.py": "import planforge.workspace.processes\n"},
        {"rules/loops.py": "import pathlib\n"},
    ],
    ids=lambda changes: next(iter(changes.items()))[0].replace("/", "."),
)
def test_a_new_folder_or_a_wrong_arrow_breaks_it(tmp_path: Path, changes: dict[str, str]) -> None:
    process = contract(tmp_path, changes)
    assert process.returncode == 1, process.stdout
    assert "1 broken" in process.stdout
