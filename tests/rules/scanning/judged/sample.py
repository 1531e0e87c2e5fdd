"""
Draws a sample of the issues of a scan for people to judge: `python sample.py SEED < report.json`.

Up to `EACH` of every rule; then more of those with the most, until there are `LEAST`.
"""

from __future__ import annotations

import json
import random
import sys
from collections import defaultdict

EACH = 12
LEAST = 60


def drawn(issues: list[dict[str, object]], seed: int) -> list[tuple[str, str, int]]:
    """Rule, file and line of each issue in the sample."""
    by_rule: dict[str, list[tuple[str, str, int]]] = defaultdict(list)
    for issue in issues:
        rule, path, line = str(issue["rule"]), str(issue["path"]), int(str(issue["line"]))
        by_rule[rule].append((rule, path, line))
    source = random.Random(seed)
    shuffled = {rule: source.sample(sorted(found), len(found)) for rule, found in sorted(by_rule.items())}
    chosen = [item for found in shuffled.values() for item in found[:EACH]]
    rest = sorted((found[EACH:] for found in shuffled.values()), key=len, reverse=True)
    for found in rest:
        chosen.extend(found[: max(LEAST - len(chosen), 0)])
    return sorted(chosen)


if __name__ == "__main__":
    for item in drawn(json.load(sys.stdin)["issues"], int(sys.argv[1])):
        sys.stdout.write("\t".join(map(str, item)) + "\n")
