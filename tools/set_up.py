"""
Makes a virtual environment from a lock file; `make` runs it before whatever needs one.

It says what it does and how long that took. What pip or uv print is shown only if they fail. An environment
that is there is kept, so an interrupted run goes on, unless it was moved or is of another Python. Only the
standard library is there when this runs.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

LAST_LINES = 15
"""How much of a failed command's output is shown."""

OLDEST = (3, 11)

PROJECT = (".", "./benchmarks/guardrails")
"""The distributions of this repository."""

UNREACHABLE = re.compile(
    r"NewConnectionError|NameResolutionError|ConnectTimeout|Network is unreachable"  # pip
    r"|dns error|error sending request"  # uv
)
"""What pip and uv print if they reach no package index."""

TERMINAL = sys.stdout.isatty()


class Failed(Exception):
    """A command failed; what it printed."""


def main() -> None:
    """Make the environment, and leave a mark that it is complete."""
    parser = argparse.ArgumentParser(description="Make a virtual environment from a lock file.")
    parser.add_argument("environment", type=Path, help="the directory to make it in")
    parser.add_argument("lock", type=Path, help="the packages, with their hashes")
    parser.add_argument("--project", action="store_true", help="install this project, too, as it is here")
    arguments = parser.parse_args()
    if sys.version_info < OLDEST:
        sys.exit(f"planforge needs Python 3.11 or later; {sys.executable} is {_version()}")
    if os.pathsep in str(Path.cwd()):
        sys.exit(f"no Python can be set up in a directory whose path has a `{os.pathsep}`; move the clone")
    began = time.monotonic()
    print(f"Setting up {arguments.environment} with Python {_version()}: once, a minute or so", flush=True)
    try:
        set_up(arguments.environment, arguments.lock, project=arguments.project)
    except Failed as failed:
        sys.exit(f"{failed}\nset-up failed; `make` tries again and keeps what is there")
    except KeyboardInterrupt:
        sys.exit("\nset-up interrupted; `make` goes on with it")
    print(f"Ready in {time.monotonic() - began:.0f} s", flush=True)


def set_up(environment: Path, lock: Path, *, project: bool) -> None:
    """Make `environment` hold what `lock` names."""
    python = environment / "bin" / "python"
    uv = shutil.which("uv")
    pip = [uv, "pip", "install", "--python", str(python)] if uv else [str(python), "-m", "pip", "install"]
    pip += ["--compile-bytecode"] if uv else ["--disable-pip-version-check", "--no-input"]
    with _step("environment"):
        _make(environment, python, uv)
    number = sum(line[:1].isalnum() for line in lock.read_text().splitlines())
    with _step(f"up to {number} packages"):
        run([*pip, "--require-hashes", "-r", str(lock)], counted="Collecting ")
    if project:
        with _step("planforge itself"):
            editable = [word for place in PROJECT for word in ("--editable", place)]
            run([*pip, "--no-deps", "--no-build-isolation", *editable])
            run([str(python), "-m", "compileall", "-q", "src", "benchmarks/guardrails"])
    (environment / ".gitignore").write_text("*\n")
    (environment / "ready").write_text(f"{Path.cwd()}\n")


def _make(environment: Path, python: Path, uv: str | None) -> None:
    """Make an empty environment, or keep the one that works with this interpreter."""
    if _works(python):
        return
    if environment.exists():
        shutil.rmtree(environment)
    if uv:
        run([uv, "venv", "--python", sys.executable, str(environment)])
    else:
        run([sys.executable, "-m", "venv", str(environment)])


def _works(python: Path) -> bool:
    """Whether there is an environment in this very directory, of the Python version that runs now."""
    code = "import sys; print(sys.version_info[:2] == tuple(map(int, sys.argv[1:])))"
    version = map(str, sys.version_info[:2])
    try:
        asked = subprocess.run([python, "-c", code, *version], capture_output=True, text=True, check=False)
        script = (python.parent / "activate").read_text()
    except OSError:
        return False
    # Scripts name the directory that they were made in, so an environment that was moved is of no use.
    return asked.stdout.strip() == "True" and str(python.parents[1].absolute()) in script


def run(argv: Sequence[str], *, counted: str = "") -> None:
    """Run a command; on a terminal, count the lines that begin with `counted`."""
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    process = subprocess.Popen(
        argv,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout
    said: list[str] = []
    seen = 0
    for line in process.stdout:
        said.append(line.rstrip())
        if counted and line.startswith(counted):
            seen += 1
            _overwrite(f"  {seen}: {line.removeprefix(counted).split()[0][:50]}")
    if process.wait():
        failed = [f"`{argv[0]}` failed with {process.returncode}"]
        if UNREACHABLE.search("\n".join(said)):
            failed.append("the package index cannot be reached: is there a network, or a proxy to be set?")
        raise Failed("\n".join([*said[-LAST_LINES:], *failed]))


@contextmanager
def _step(name: str) -> Iterator[None]:
    """Say what is done, and how long it took."""
    began = time.monotonic()
    _overwrite(f"  {name} …")
    yield
    _overwrite("")
    print(f"  {name}: {time.monotonic() - began:.0f} s", flush=True)


def _overwrite(words: str) -> None:
    """Show something until the next line is shown, where somebody looks on."""
    if TERMINAL:
        print(f"\r\x1b[K{words}", end="", flush=True)


def _version() -> str:
    return ".".join(map(str, sys.version_info[:3]))


if __name__ == "__main__":
    main()
