"""Issues as SARIF 2.1.0, the format that code hosts and editors read."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from planforge.rules.sarif import (
    LEVELS,
    Configuration,
    Descriptor,
    Location,
    Log,
    Physical,
    Region,
    Result,
    Suppression,
    Tags,
    Text,
    artifact,
    of_planforge,
)
from planforge.rules.scanning.issues import RULES, Issue, Rule


def log(issues: Sequence[Issue], version: str) -> Log:
    """A document with all issues; those that are waived are in it, as suppressed."""
    names = list(RULES)
    results = (_result(issue, names.index(issue.rule)) for issue in issues)
    return of_planforge(version, map(_rule, RULES.values()), results)


def _rule(rule: Rule) -> Descriptor:
    return Descriptor(
        id=rule.name,
        short_description=Text(text=rule.summary),
        help=Text(text=f"{rule.summary} Instead: {rule.instead}."),
        default_configuration=Configuration(level=LEVELS[rule.severity]),
        properties=Tags(tags=("tests", rule.criterion) if rule.criterion else ("tests",)),
    )


def _result(issue: Issue, index: int) -> Result:
    mark = hashlib.sha256("\0".join((issue.rule, issue.path, issue.snippet)).encode()).hexdigest()
    region = Region(start_line=issue.line, start_column=issue.column, snippet=Text(text=issue.snippet))
    return Result(
        rule_id=issue.rule,
        rule_index=index,
        level=LEVELS[issue.severity],
        message=Text(text=issue.message),
        locations=(
            Location(physical_location=Physical(artifact_location=artifact(issue.path), region=region)),
        ),
        partial_fingerprints={"planforge/v1": mark},
        suppressions=(Suppression(kind="external", justification=issue.waived),) if issue.waived else (),
    )
