from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tries  # noqa: F401  (has the profile that the soak is made with)
from rehearsals import Rehearsal, copied, rehearsal

# Before anything imports it: tests of several folders do.
pytest.register_assert_rewrite("kernel.ledger_contract")

# What a version manager has for `python3` is a script that looks for one at each call, and takes longer for
# that than most programs of the tests do. They get the one that it would find: the one that is running.
if (found := shutil.which("python3")) and Path(found).read_bytes().startswith(b"#!"):
    os.environ["PATH"] = f"{Path(sys.base_prefix) / 'bin'}{os.pathsep}{os.environ['PATH']}"


# A shell starts what goes on in its background with these ignored, and whatever that starts ignores them too:
# no test of Ctrl-C could pass.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@pytest.fixture(scope="session")
def one_plan(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    return rehearsal(tmp_path_factory.mktemp("one") / "plan")


@pytest.fixture
def plan(one_plan: Rehearsal, tmp_path: Path) -> Rehearsal:
    """An approved plan; the run of forging it is `run-001`."""
    return copied(one_plan, tmp_path / "here")


@pytest.fixture
def running() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that do not survive the test."""
    found: list[subprocess.Popen[str]] = []
    yield found
    for process in found:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.communicate()
