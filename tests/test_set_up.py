"""The first thing a newcomer meets: which Python is taken, and what set-up says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FIND = ROOT / "tools" / "find-python"
SET_UP = ROOT / "tools" / "set_up.py"


def found(place: Path, **pythons: str) -> subprocess.CompletedProcess[str]:
    """What `find-python` says where these are on PATH, each a script."""
    for name, script in pythons.items():
        program = place / name.replace("_", ".")
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    path = f"{place}{os.pathsep}/usr/bin{os.pathsep}/bin"
    return subprocess.run([FIND], env={"PATH": path}, capture_output=True, text=True, check=False)


def test_python3_is_taken_if_it_is_new_enough(tmp_path: Path) -> None:
    assert found(tmp_path, python3="exit 0", python3_14="exit 0").stdout == "python3\n"


def test_a_python3_that_is_too_old_or_cannot_be_started_is_passed_over(tmp_path: Path) -> None:
    assert found(tmp_path, python3="exit 1", python3_14="exit 0").stdout == "python3.14\n"


def test_only_uv_can_do_without_venv(tmp_path: Path) -> None:
    debian = 'case "$*" in *ensurepip*) exit 1;; *) exit 0;; esac'
    assert found(tmp_path, python3=debian, python3_14="exit 0").stdout == "python3.14\n"
    assert found(tmp_path, python3=debian, python3_14="exit 0", uv="exit 0").stdout == "python3\n"


@pytest.mark.dear
def test_a_set_up_that_fails_says_why_and_the_next_one_goes_on_with_it(tmp_path: Path) -> None:
    environment, lock = tmp_path / "an environment", tmp_path / "lock"
    lock.write_text(f"there-is-no-such-package==1.0 \\\n    --hash=sha256:{'0' * 64}\n")

    def set_up() -> subprocess.CompletedProcess[str]:
        env = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "PIP_NO_INDEX": "1",
            "PIP_CONFIG_FILE": os.devnull,
        }
        argv = [sys.executable, str(SET_UP), str(environment), str(lock)]
        return subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)

    failed = set_up()
    assert failed.returncode == 1
    assert "No matching distribution found for there-is-no-such-package==1.0" in failed.stderr
    assert failed.stderr.endswith("set-up failed; `make` tries again and keeps what is there\n")
    assert not (environment / "ready").exists()
    (environment / "kept").touch()
    lock.write_text("# nothing\n")
    ready = set_up()
    assert (ready.returncode, ready.stderr) == (0, "")
    assert [line.split(":")[0] for line in ready.stdout.splitlines()[1:-1]] == [
        "  environment",
        "  up to 0 packages",
    ]
    assert (environment / "ready").read_text() == f"{tmp_path}\n"
    assert (environment / "kept").exists()
    moved = environment.rename(tmp_path / "moved")
    (moved / "kept").touch()
    environment = moved
    assert set_up().returncode == 0
    assert not (environment / "kept").exists()
