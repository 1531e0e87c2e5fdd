"""Making a repository ready: the state directory, and a `planforge.toml` with every setting in it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from planforge.app.project import Project
from planforge.errors import LedgerUnreadable

PYTEST = '["python3", "-m", "pytest", "--junitxml=junit.xml"]'
UNITTEST = (
    '["python3", "-m", "unittest", "discover", "--start-directory", "tests", "--top-level-directory", "."]'
)

TEMPLATE = """\
# Settings of Planforge for this repository. What is commented out is the default.

[agents]
# default = ""             # the agent for every role: claude, codex, gemini, opencode, or one of your own;
#                          # empty takes the first one that is installed
# seconds = 1800           # how long one answer may take
# [agents.roles]
# auditor = "codex"        # another agent for a role: drafter, auditor, reviser, developer
# [agents.profiles.mine]
# command = ["my-agent", "--acp"]   # any program that speaks the Agent Client Protocol

[forge]
# cap = 5                  # rounds of audit a plan gets
# plans = "docs/plans"     # where plan files are written

[run]
# attempts = 3             # how often a step may be tried
# jobs = 2                 # steps under way at once, with `planforge plan run --parallel`
# max_files = 5            # files one phase may span
# handoffs = 3             # how often an agent whose context fills up may hand over, in one attempt
# lease_seconds = 300      # how long files stay leased after Planforge was last heard of
# lease_patience = 3600    # how many seconds a step waits for files that another one has

"""


class Initialised(msgspec.Struct, frozen=True, kw_only=True):
    """What was made and what was found."""

    root: str
    settings: str
    settings_written: bool
    check: str
    """The test command that was found; empty if none was."""


def initialise(start: Path) -> Initialised:
    """Make the repository that `start` is in ready for Planforge. Files that exist are left alone."""
    project = Project.create(start)
    path = project.root / "planforge.toml"
    command, report = detect(project.root)
    written = not path.exists()
    if written:
        try:
            path.write_text(TEMPLATE + _check(command, report))
        except OSError as error:
            raise LedgerUnreadable(f"cannot write `{path}`: {error.strerror}") from error
    return Initialised(root=str(project.root), settings=path.name, settings_written=written, check=command)


def detect(root: Path) -> tuple[str, str]:
    """The test command of a project and the kind of report it leaves, if it can be told."""
    for name in ("pytest.ini", "conftest.py", "tests/conftest.py"):
        if (root / name).is_file():
            return PYTEST, "junit"
    for name in ("pyproject.toml", "setup.cfg", "tox.ini"):
        path = root / name
        if path.is_file() and "pytest" in path.read_text(encoding="utf-8", errors="replace"):
            return PYTEST, "junit"
    if any((root / "tests").glob("test*.py")):
        return UNITTEST, "unittest"
    return "", ""


def _check(command: str, report: str) -> str:
    if command:
        said = "# How a tree is checked. Only what passes this lands."
        return f'{said}\n[check]\ncommand = {command}\nreport = "{report}"\n# seconds = 600\n'
    return (
        "# How a tree is checked. Only what passes this lands, so nothing can land until it is set.\n"
        f'# [check]\n# command = {PYTEST}\n# report = "junit"   # or "unittest"\n'
    )
