"""
How a module of ours is run by another process of this interpreter, wherever our packages come from.

A process that is confined gets a short environment and starts in a worktree. By itself it would miss what
`PYTHONPATH` named, and it would import what happens to lie in the worktree before anything else.
"""

from __future__ import annotations

import os
import sys

BOOT = (
    "import sys; count = int(sys.argv[1]) + 2; sys.path[:] = sys.argv[2:count]; module = sys.argv[count]; "
    "del sys.argv[1 : count + 1]; import runpy; runpy.run_module(module, None, '__main__', True)"
)


def running(module: str) -> tuple[str, ...]:
    """The command that runs a module, to which its arguments can be added."""
    found = dict.fromkeys(os.path.abspath(entry) for entry in sys.path)  # noqa: PTH100  (no link is followed)
    return (sys.executable, "-P", "-c", BOOT, str(len(found)), *found, module)
