"""Making a repository ready: the state directory, and a `planforge.toml` with the usual settings."""

from __future__ import annotations

from pathlib import Path

import msgspec

from planforge.app.project import Project
from planforge.errors import LedgerUnreadable
from planforge.kernel.evidence import TESTS
from planforge.workspace.detection import detect

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
# constraints = ".context/project.md"   # a file with what every plan has to keep to
# auto_implement = false   # whether a plan that is forged clean is approved in your name and carried out
# research = "auto"        # whether a drafter first chooses files to plan from: auto, always, never
# heartbeat_seconds = 45.0 # after how many seconds there is a sign of life; 0 for never
# progress_seconds = 3.0   # how long what is shown of an agent at work stays at least

[run]
# attempts = 3             # how often a step may be tried
# jobs = 2                 # steps under way at once, with `planforge plan run --parallel`
# max_files = 5            # files one phase may span
# handoffs = 3             # how often an agent whose context fills up may hand over, in one attempt
# lease_seconds = 300      # how long files stay leased after Planforge was last heard of
# lease_patience = 3600    # how many seconds a step waits for files that another one has
# escalate_after = 2       # attempts without progress after which the next one gets a heavy model
# parallel = false         # cut plans so that phases can run side by side
# fixes = 3                # how often what the last audit finds may be mended
# tasks = "docs/tasks"     # where the documents of tasks are written

[sandbox]
# level = "auto"           # bubblewrap, landlock, processes or none; auto takes the firmest that works here
# network = false          # whether checks may use the network; agents always may

[workspace]
# setup = []               # a command that installs what the project needs, run in each worktree
# smoke = []               # a command that must end with 0 before an agent starts

[protect]
# add = []                 # paths that need a person, besides CI files, dependencies, hooks and the like
# remove = []              # those that do not after all

[land]
# branch = ""              # the branch that finished plans land on; empty is the one that is checked out
# tries = 5                # how often a plan is merged anew because the branch has moved meanwhile

"""


CHECKS = """\
# How a tree is checked; only what passes lands. Without this, checks are detected from the project's files:
# `planforge evidence --detect` shows which.
# [checks.tests]
# command = ["python3", "-m", "pytest", "--junitxml=junit.xml"]
# report = "junit"         # or text, unittest, go, tap, jest, mocha
# seconds = 600
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
    tests = project.settings.check or detect(project.root).checks.get(TESTS)
    written = not path.exists()
    if written:
        try:
            path.write_text(TEMPLATE + CHECKS)
        except OSError as error:
            raise LedgerUnreadable(f"cannot write `{path}`: {error.strerror}") from error
    command = " ".join(tests.command).replace("${root}/", "") if tests else ""
    return Initialised(root=str(project.root), settings=path.name, settings_written=written, check=command)
