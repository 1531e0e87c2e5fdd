"""Trees that landed, checked out elsewhere and tried with tests: their own, the former ones, hidden ones."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from planforge_guardrails import sample
from planforge_guardrails.places import git
from planforge_guardrails.shapes import Place

RAN = re.compile(r"^Ran (\d+) test", re.MULTILINE)
SECONDS = 30

MUTANTS = (
    ("shop/prices.py", "def total(*_):\n    return 1\n", "total"),
    ("shop/prices.py", "def cheapest(prices):\n    return max(prices)\n", "cheapest"),
    ("shop/tax.py", "def with_tax(price):\n    return price\n", "with_tax"),
)
"""Faults that the tests of the sample notice; those of every tree that lands must notice them, too."""


@contextmanager
def checked_out(place: Place, commit: str) -> Iterator[Path]:
    """The files of a commit, in a directory that is nobody else's."""
    with tempfile.TemporaryDirectory(prefix="guardrails-tree-") as name:
        directory = Path(name) / "tree"
        directory.mkdir()
        index = Path(name) / "index"
        git(place.root, "read-tree", commit, index=index)
        git(place.root, "checkout-index", "--all", f"--prefix={directory}/", index=index)
        yield directory


def passes(directory: Path, extra: Mapping[str, str], *, only: str = "") -> bool:
    """Whether the tests in a directory run and pass, with some files put in; `only` names one module."""
    before = {name: _text(directory / name) for name in extra}
    for name, text in extra.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    try:
        return _pass(directory, only)
    finally:
        for name, old in before.items():
            if old is None:
                (directory / name).unlink()
            else:
                (directory / name).write_text(old)


def unnoticed(directory: Path) -> list[str]:
    """The faults that the tests in a directory do not notice any more."""
    found = []
    for path, fault, called in MUTANTS:
        text = _text(directory / path)
        if text is not None and passes(directory, {path: f"{text}\n\n{fault}"}):
            found.append(called)
    return found


def _pass(directory: Path, only: str) -> bool:
    words = ("-m", "unittest", only) if only else sample.TESTS
    try:
        process = subprocess.run(
            [sys.executable, "-B", "-S", *words],
            cwd=directory,
            env={"PATH": "/usr/bin:/bin", "HOME": str(directory.parent), "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    ran = RAN.search(process.stderr)
    return process.returncode == 0 and ran is not None and int(ran[1]) > 0


def _text(path: Path) -> str | None:
    return path.read_text(errors="replace") if path.is_file() else None
