"""`python -m planforge.testing.model_server SCRIPT [--port PORT]`: serve until interrupted."""

from __future__ import annotations

import argparse
import signal
import sys
import threading

from planforge.testing.model_server import ModelServer, ScriptError


def main() -> int:
    """Say where it listens, and serve until a signal ends it."""
    parser = argparse.ArgumentParser(prog="python -m planforge.testing.model_server", description=__doc__)
    parser.add_argument("script", help="a script as the rehearsal agent plays it")
    parser.add_argument("--port", type=int, default=0, help="where to listen on loopback; 0 takes a free one")
    arguments = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        with ModelServer(arguments.script, port=arguments.port) as server:
            sys.stdout.write(f"{server.url}\n")
            sys.stdout.flush()
            ended.wait()
    except (ScriptError, OSError, OverflowError) as error:
        sys.stderr.write(f"model server: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
