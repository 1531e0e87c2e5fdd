from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

import tries  # noqa: F401  (has the profile that the soak is made with)
from rehearsals import Rehearsal, copied, rehearsal

# Before anything imports it: tests of several folders do.
pytest.register_assert_rewrite("kernel.ledger_contract")

# What a version manager has for `python3` is a script that looks for one at each call, and takes longer for
# that than most programs of the tests do. They get the one that it would find: the one that is running.
# So they do where there is none on PATH that they may run.
found = shutil.which("python3")
if found is None:
    place = Path(tempfile.mkdtemp(prefix="planforge-python-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    (place / "python3").symlink_to(Path(sys.executable).resolve())
    os.environ["PATH"] = f"{place}{os.pathsep}{os.environ['PATH']}"
elif Path(found).read_bytes().startswith(b"#!"):
    os.environ["PATH"] = f"{Path(sys.base_prefix) / 'bin'}{os.pathsep}{os.environ['PATH']}"


# A shell starts a background job with SIGINT and SIGQUIT ignored, and `nohup` does the same with SIGHUP.
# Programs that the tests start would inherit that: no test of Ctrl-C or of signal masks could pass.
for ignored, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, handler)


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A directory that every user can enter. Each pytest that starts closes `tmp_path`."""
    with tempfile.TemporaryDirectory(prefix="planforge-open-") as name:
        place = Path(name).resolve()
        place.chmod(0o755)
        yield place


def pytest_collection_finish() -> None:
    """What tests import stays to the end, so no garbage collection need look at it again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test that is dear for each of its parameters, those that `but` names stay in `make test`."""
    for item in items:
        kept = [mark.kwargs["but"] for mark in item.own_markers if mark.name == "dear" and mark.kwargs]
        if kept and isinstance(item, pytest.Function) and fnmatchcase(item.callspec.id, *kept):
            item.own_markers = [mark for mark in item.own_markers if mark.name != "dear"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--nothing-skipped",
        action="store_true",
        help="fail if a test was skipped",
    )


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A skipped test is not a passed one where everything is there that tests need."""
    if (
        exitstatus == pytest.ExitCode.OK
        and session.config.option.nothing_skipped
        and _skipped(session.config)
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which tests could not run on this machine, and what they need."""
    skipped = _skipped(config)
    if not skipped:
        return
    number = sum(map(len, skipped.values()))
    terminalreporter.section(f"{number} test{'s' * (number != 1)} could not run on this machine")
    for reason, names in sorted(skipped.items()):
        terminalreporter.write_line(f"{len(names)}: {reason}")
        for name in sorted(names):
            terminalreporter.write_line(f"    {name}")
    if config.option.nothing_skipped:
        terminalreporter.write_line("FAILED: nothing may be skipped here (--nothing-skipped)", red=True)


def _skipped(config: pytest.Config) -> dict[str, list[str]]:
    """The tests that were skipped, by what they need; only the process that reports them knows."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    found = defaultdict(list)
    for report in reporter.stats.get("skipped", ()) if reporter else ():
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        found[reason.removeprefix("Skipped: ")].append(report.nodeid)
    return found


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
