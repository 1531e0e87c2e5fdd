"""
The rehearsal agent: a program that speaks the Agent Client Protocol and plays a script.

Only the standard library is imported, and little of that before it is needed:
tests start this program thousands of times.
"""

import sys


def main() -> int:
    """Play the script named by the argument or by the environment, until the client is gone."""
    from planforge.testing.rehearsal.agent import play

    return play(sys.argv[1:])
