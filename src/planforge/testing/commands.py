"""The command that starts the rehearsal agent, for programs that start agents."""

from __future__ import annotations

import sys
from pathlib import Path

from planforge.testing import script as scripts


def rehearsal_command(
    script: Path | str, journal: Path | str | None = None, *, sessions: Path | str | None = None
) -> list[str]:
    """The command of an agent that plays the script, which is checked here and now.

    `journal` is a file that gets a line for every prompt, `sessions` a directory for the conversations that
    are to outlive their process.
    """
    scripts.load(str(script))
    argv = [sys.executable, "-m", "planforge.testing.rehearsal"]
    for option, path in (("--journal", journal), ("--sessions", sessions)):
        if path is not None:
            argv += [option, str(Path(path).absolute())]
    return [*argv, str(Path(script).absolute())]
