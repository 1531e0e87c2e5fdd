"""
How long a read command takes, against a bare interpreter in the same run.

Each round runs every contender once, in shuffled order, so that a busy moment of
the machine hits all of them; what counts is the median of the ratios of a round.
Targets: at most 5 times `python -c pass`, and under 100 ms.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 25
BARE = "python -c pass"
TARGET_RATIO = 5.0
TARGET_MILLISECONDS = 100.0


def main() -> None:
    """Play a demo, then time reading it."""
    program = str(Path(sys.executable).with_name("planforge"))
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "demo"
        subprocess.run([program, "demo", str(root), "--pace", "0"], check=True, capture_output=True)
        contenders = {
            BARE: [sys.executable, "-c", "pass"],
            "planforge --version": [program, "--version"],
            "planforge status --json": [program, "status", "--json"],
            "planforge log -n 20": [program, "log", "-n", "20"],
            "planforge --help": [program, "--help"],
            "rehearsal agent, to its first answer": [],
        }
        agent = [sys.executable, "-m", "planforge.agents.rehearsal"]
        taken = measure(contenders, agent, root)
    print(f"{'':<38}{'median':>10}{'ratio':>9}   (ratio of each round to `{BARE}`, median of {ROUNDS})")
    for name, seconds in taken.items():
        ratio = statistics.median(one / bare for one, bare in zip(seconds, taken[BARE], strict=True))
        milliseconds = statistics.median(seconds) * 1000
        met = ratio <= TARGET_RATIO and milliseconds < TARGET_MILLISECONDS
        aimed = name in ("planforge --version", "planforge status --json", "planforge log -n 20")
        verdict = ("   met" if met else "   MISSED") if aimed else ""
        print(f"{name:<38}{milliseconds:>7.1f} ms{ratio:>8.1f}x{verdict}")


def measure(contenders: dict[str, list[str]], agent: list[str], root: Path) -> dict[str, list[float]]:
    """Seconds of every round for every contender."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        names = list(contenders)
        random.shuffle(names)
        for name in names:
            started = time.perf_counter()
            if contenders[name]:
                subprocess.run(contenders[name], cwd=root, check=True, stdout=subprocess.DEVNULL)
            else:
                greet(agent)
            taken[name].append(time.perf_counter() - started)
    return taken


def greet(agent: list[str]) -> None:
    """Start the rehearsal agent and wait for its first answer."""
    request = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
    with subprocess.Popen(agent, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request)
        process.stdin.flush()
        assert b"protocolVersion" in process.stdout.readline()
        process.stdin.close()


if __name__ == "__main__":
    main()
