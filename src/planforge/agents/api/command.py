"""
The program: its options, its key, then the protocol until the client is gone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from planforge.agents.api import keys, options, require
from planforge.errors import PlanforgeError


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve one client on standard input and output; the exit code."""
    chosen = options.parse(sys.argv[1:] if arguments is None else arguments)
    try:
        require()
        key = keys.take(chosen)
    except PlanforgeError as error:
        hint = f"; {error.hint}" if error.hint else ""
        os.write(2, f"planforge.agents.api: {error.message}{hint}\n".encode())
        return error.exit_code
    from planforge.agents.api.server import run

    return run(chosen, key)
