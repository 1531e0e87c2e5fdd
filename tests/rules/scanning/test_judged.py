"""The numbers in the documentation are those of the judged sample."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

from planforge.rules.scanning.issues import RULES

SAMPLE = Path(__file__).parent / "judged" / "sample.csv"
PAGE = Path(__file__).parents[3] / "docs" / "scanning.md"


def judged() -> list[dict[str, str]]:
    with SAMPLE.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_judgement_says_what_where_and_why() -> None:
    rows = judged()
    assert len({(row["suite"], row["rule"], row["file"], row["line"]) for row in rows}) == len(rows)
    for row in rows:
        assert row["suite"] in ("stdlib", "django")
        assert row["rule"] in RULES
        assert row["verdict"] in ("true", "false")
        assert re.fullmatch(r"[a-z]+", row["reason"])
        assert int(row["line"]) > 0
    assert min(Counter(row["suite"] for row in rows).values()) >= 60


def counted(suite: str, rule: str) -> list[str]:
    rows = [row for row in judged() if row["suite"] == suite and rule in (row["rule"], "all")]
    if not rows:
        return ["", "", ""]
    wrong = sum(row["verdict"] == "false" for row in rows)
    deliberate = sum(row["reason"] == "deliberate" for row in rows)
    return [str(len(rows)), str(wrong), str(deliberate)]


def test_the_documented_rates_are_those_that_were_judged() -> None:
    table = re.findall(r"^\| `?([a-z-]+)`? \|((?: *\d* \|){8})$", PAGE.read_text(), re.MULTILINE)
    assert {rule for rule, _ in table} == {row["rule"] for row in judged()} | {"all"}
    for rule, cells in table:
        told = [cell.strip() for cell in cells.strip("|").split("|")]
        assert told[1:4] == counted("stdlib", rule), rule
        assert told[5:8] == counted("django", rule), rule


def test_every_rule_is_documented_with_its_severity() -> None:
    page = PAGE.read_text()
    for rule in RULES.values():
        assert (
            f"| `{rule.name}` | {rule.criterion}{' ' if rule.criterion else ''}| {rule.severity.value} |"
            in page
        )
