"""`python -m planforge.agents.api`."""

from __future__ import annotations

import os
import sys

from planforge.agents.api.command import main

if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # To take down all that was loaded takes a second, which a client that has gone may not grant.
    os._exit(code)
