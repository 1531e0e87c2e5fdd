"""
Reviews as SARIF: read from tools that check a change, and written for tools that show a review.

Reading, an error sends the work back, and warnings and notes do not. A tool that did not look, did not run to
its end, or leaves something for a person to decide has not approved anything. Writing, what is read back
never comes to a better verdict: a review that sends the work back has an error in it, and one that nobody
could read says of itself that it failed.
"""

from __future__ import annotations

from collections.abc import Iterator

from planforge.rules import sarif
from planforge.rules.findings import Evidence, Finding, Severity, names_a_file, worst
from planforge.rules.sarif import LEVELS, Descriptor, Result, Run, Text
from planforge.rules.verdicts.answers import plain
from planforge.rules.verdicts.judgement import Judgement, Verdict, judged, unknown

SEVERITIES = {
    "error": Severity.BLOCKING,
    "warning": Severity.MEDIUM,
    "note": Severity.MINOR,
    "none": Severity.SUGGESTION,
}
OWN = "finding/"
"""Rules that are not rules: findings of a review, each by its fingerprint."""
FINGERPRINT = "planforge/finding/v1"


def parse_sarif(text: str) -> Judgement:
    """Decide what a tool says; never raises, and never guesses."""
    try:
        log = sarif.read(text)
    except sarif.InvalidSarif as error:
        return unknown(f"it is not SARIF: {error}")
    found = [each for run in log.runs for each in _found(run)]
    findings = tuple(dict.fromkeys(each for each in found if isinstance(each, Finding)))
    if fault := next(filter(None, (run.fault for run in log.runs)), "" if log.runs else "no tool was run"):
        return unknown(fault, findings)
    if worst(findings) is Severity.BLOCKING:
        return judged(Verdict.REVISION, _counted(findings), findings)
    if doubt := next((each for each in found if isinstance(each, str)), ""):
        return unknown(doubt, findings)
    return judged(Verdict.APPROVED, _counted(findings) if findings else "no result", findings)


def _counted(findings: tuple[Finding, ...]) -> str:
    levels = [LEVELS[each.severity] for each in findings]
    known = sorted(set(levels), key=list(SEVERITIES).index)
    return ", ".join(f"{levels.count(level)} {level}{'s' * (levels.count(level) > 1)}" for level in known)


def _found(run: Run) -> Iterator[Finding | str]:
    """The findings of one run; a doubt for a result that cannot be one."""
    rules = [rule for part in (run.tool.driver, *run.tool.extensions) for rule in part.rules]
    for result in run.results or ():
        if not result.is_open:
            continue
        rule = _rule(result, run, rules)
        level = result.level or _level(result, rule, run)
        severity = SEVERITIES.get(level)
        if severity is None:
            yield f"`{level[:40]}` is not a level"
            continue
        if result.kind != "fail":
            yield f"a result is for a person to decide: {_message(result, rule)[:100]}"
        yield _finding(result, rule, severity)


def _rule(result: Result, run: Run, rules: list[Descriptor]) -> Descriptor:
    """The rule that a result names; by its place only where it has no name."""
    name = result.rule_id or result.rule.id
    if not name and 0 <= result.rule_index < len(run.tool.driver.rules):
        return run.tool.driver.rules[result.rule_index]
    beneath = name.rpartition("/")[0] or name
    named = [rule for wanted in (name, beneath) for rule in rules if rule.id == wanted]
    return named[0] if named else Descriptor(id=name)


def _level(result: Result, rule: Descriptor, run: Run) -> str:
    """What counts for a result without a level: its rule, as it was set for the run; else it warns."""
    if result.kind != "fail":
        return "none"
    for call in run.invocations:
        for override in call.rule_configuration_overrides:
            if override.descriptor.id == rule.id and override.configuration.level:
                return override.configuration.level
    return (rule.default_configuration.level if rule.default_configuration else "") or "warning"


def _message(result: Result, rule: Descriptor) -> str:
    said = result.message if result.message.text else rule.message_strings.get(result.message.id, Text())
    short = rule.short_description.text if rule.short_description else ""
    return plain(said.text) or plain(said.markdown) or plain(short)


def _finding(result: Result, rule: Descriptor, severity: Severity) -> Finding:
    title, _, detail = _message(result, rule).partition("\n")
    ours = result.properties.planforge
    told = f"{rule.id}: {title}" if title and rule.id and not rule.id.startswith(OWN) else title or rule.id
    exact = Severity.parse(ours.severity) if ours else None
    fix = next((fix.description.text for fix in result.fixes if fix.description.text), "")
    return Finding(
        # A more exact word counts only if it is one for the same level.
        severity=exact if exact and LEVELS[exact] == LEVELS[severity] else severity,
        title=plain(told) or "untitled finding",
        detail=plain(detail),
        location=plain(sarif.place(result.locations)),
        recommendation=plain(ours.recommendation if ours else fix or (rule.help.text if rule.help else "")),
        evidence=(Evidence.parse(ours.evidence) if ours else None) or Evidence.EXECUTED,
    )


def log(judgement: Judgement, version: str) -> sarif.Log:
    """A review as a document for tools."""
    findings = judgement.findings
    if judgement.verdict is Verdict.REVISION and worst(findings) is not Severity.BLOCKING:
        findings = (*findings, Finding(severity=Severity.BLOCKING, title=judgement.reason))
    rules = {each.fingerprint: _described(each) for each in reversed(findings)}
    names = list(rules)
    approves = judgement.verdict is not Verdict.UNKNOWN
    trouble = () if approves else (sarif.Notification(level="error", message=Text(text=judgement.reason)),)
    call = sarif.Invocation(execution_successful=approves, tool_execution_notifications=trouble)
    results = (_result(each, names.index(each.fingerprint)) for each in findings)
    return sarif.of_planforge(version, rules.values(), results, (call,))


def _described(finding: Finding) -> Descriptor:
    return Descriptor(
        id=OWN + finding.fingerprint,
        short_description=Text(text=" ".join(finding.title.split())),
        help=Text(text=finding.recommendation) if finding.recommendation else None,
        default_configuration=sarif.Configuration(level=LEVELS[finding.severity]),
    )


def _result(finding: Finding, index: int) -> Result:
    title = " ".join(finding.title.split())
    return Result(
        rule_id=OWN + finding.fingerprint,
        rule_index=index,
        level=LEVELS[finding.severity],
        message=Text(text=f"{title}\n\n{finding.detail}" if finding.detail else title),
        locations=sarif.placed(finding.location, is_file=names_a_file(finding.location)),
        partial_fingerprints={FINGERPRINT: finding.fingerprint},
        properties=sarif.Properties(
            planforge=sarif.Ours(
                severity=finding.severity.value,
                evidence=finding.evidence.value,
                recommendation=finding.recommendation,
            )
        ),
    )
