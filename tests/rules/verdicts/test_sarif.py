"""What tools say, and reviews as tools read them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planforge.rules import sarif
from planforge.rules.findings import Evidence, Finding, Severity
from planforge.rules.verdicts import Judgement, Verdict, parse_sarif
from planforge.rules.verdicts.judgement import judged
from planforge.rules.verdicts.sarif import FINGERPRINT, log

A, R, U = Verdict.APPROVED, Verdict.REVISION, Verdict.UNKNOWN
RAN = {"executionSuccessful": True}


def document(*results: object, **run: object) -> str:
    return json.dumps(
        {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "lint"}}, "results": results} | run]}
    )


def result(level: str | None = "error", **more: object) -> dict[str, object]:
    said: dict[str, object] = {"ruleId": "X1", "message": {"text": "it is wrong"}} | more
    return said if level is None else said | {"level": level}


def rules(level: str, **more: object) -> dict[str, object]:
    return {"driver": {"rules": [{"id": "X1", "defaultConfiguration": {"level": level}} | more]}}


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (document(), A),
        (document(invocations=[RAN]), A),
        ("\ufeff" + document(), A),
        (document(result("error")), R),
        (document(result("warning")), A),
        (document(result("note")), A),
        (document(result("none")), A),
        (document(result("fatal")), U),
        (document(result("fatal"), result("error")), R),
        # A result without a level has that of its rule, as it was set for the run; else it warns.
        (document(result(None)), A),
        (document(result(None), tool=rules("error")), R),
        (document(result(None), tool=rules("note")), A),
        (document(result(None, ruleId="X1/sub"), tool=rules("error")), R),
        (document(result(None, ruleId="", ruleIndex=0), tool=rules("error")), R),
        (document(result(None, ruleId="", rule={"id": "X1"}), tool=rules("error")), R),
        (document(result(None), tool={"driver": {}, "extensions": [rules("error")["driver"]]}), R),
        (
            document(
                result(None),
                invocations=[
                    RAN
                    | {
                        "ruleConfigurationOverrides": [
                            {"descriptor": {"id": "X1"}, "configuration": {"level": "error"}}
                        ]
                    }
                ],
            ),
            R,
        ),
        # What is passed, gone or waived is no finding; what is waived by some and not by others is one.
        (document(result(kind="pass")), A),
        (document(result(kind="notApplicable")), A),
        (document(result(baselineState="absent")), A),
        (document(result(baselineState="unchanged")), R),
        (document(result(suppressions=[{"kind": "inSource"}])), A),
        (document(result(suppressions=[{"kind": "external", "status": "accepted"}])), A),
        (document(result(suppressions=[])), R),
        (document(result(suppressions=[{"kind": "external", "status": "rejected"}])), R),
        (document(result(suppressions=[{"kind": "external", "status": "underReview"}])), R),
        (
            document(result(suppressions=[{"kind": "inSource"}, {"kind": "external", "status": "rejected"}])),
            R,
        ),
        # What is for a person to decide is for a person to decide.
        (document(result(None, kind="review")), U),
        (document(result(None, kind="open")), U),
        (document(result(None, kind="open"), result("error")), R),
        # A tool that did not run to its end approves nothing.
        (document(invocations=[{"executionSuccessful": False}]), U),
        (document(result("error"), invocations=[{"executionSuccessful": False}]), U),
        (document(invocations=[RAN, {"executionSuccessful": False}]), U),
        (document(invocations=[{}]), U),
        (document(invocations=[RAN | {"exitSignalName": "SIGKILL"}]), U),
        (document(invocations=[RAN | {"processStartFailureMessage": "not found"}]), U),
        (
            document(
                invocations=[
                    RAN | {"toolExecutionNotifications": [{"level": "error", "message": {"text": "x"}}]}
                ]
            ),
            U,
        ),
        (
            document(
                invocations=[
                    RAN | {"toolConfigurationNotifications": [{"level": "error", "message": {"text": "x"}}]}
                ]
            ),
            U,
        ),
        (document(invocations=[RAN | {"toolExecutionNotifications": [{"message": {"text": "slow"}}]}]), A),
        (document(results=None), U),
        ('{"version": "2.1.0", "runs": [{"tool": {}}]}', U),
        (document(externalPropertyFileReferences={"results": [{"location": {"uri": "more.sarif"}}]}), U),
        ('{"version": "2.1.0", "runs": []}', U),
        # What is not the format is nothing.
        ("", U),
        ("[]", U),
        ("{}", U),
        ("approved", U),
        ('{"version": "2.0.0", "runs": [{"results": []}]}', U),
        ('{"version": "2.1.0", "runs": [{"results": {}}]}', U),
        ('{"version": "2.1.0", "runs": [{"results": [3]}]}', U),
        ('{"version": "2.1.0", "runs": [{"results": []}]', U),
        ('{"version": "2.1.0", "runs": [{"results": [{"level": "error"}], "results": []}]}', U),
        (f"```json\n{document()}\n```", U),
        (f"> {document()}", U),
        ("[" * 100_000, U),
        (" " * 20_000_001, U),
    ],
    ids=lambda value: value[-60:] if isinstance(value, str) else value,
)
def test_each_thing_a_tool_can_say(text: str, verdict: Verdict) -> None:
    judgement = parse_sarif(text)
    assert judgement.verdict is verdict, judgement.reason
    assert judgement.reason


def test_a_finding_has_the_rule_the_message_the_place_and_what_the_rule_says_to_do() -> None:
    where = {
        "physicalLocation": {
            "artifactLocation": {"uri": "src/a%20b.py", "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": 3, "startColumn": 7},
        }
    }
    text = document(
        result("error", locations=[where], message={"text": "No check\nof the id"}),
        tool=rules("error", help={"text": "check it"}),
    )
    judgement = parse_sarif(text)
    assert judgement.findings == (
        Finding(
            severity=Severity.BLOCKING,
            title="X1: No check",
            detail="of the id",
            location="src/a b.py:3:7",
            recommendation="check it",
            evidence=Evidence.EXECUTED,
        ),
    )
    assert judgement.reason == "1 error"


def test_a_message_may_be_one_of_its_rule() -> None:
    text = document(
        result("note", message={"id": "default"}, ruleId="X1"),
        tool=rules("note", messageStrings={"default": {"text": "too long"}}),
    )
    assert [finding.title for finding in parse_sarif(text).findings] == ["X1: too long"]


def test_what_a_real_linter_writes_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os\n")
    ruff = str(Path(sys.executable).with_name("ruff"))
    argv = [ruff, "check", "--isolated", "--no-cache", "--select=F401", "--output-format=sarif", "."]
    shown = subprocess.run(argv, cwd=tmp_path, check=False, timeout=60, capture_output=True, text=True)
    judgement = parse_sarif(shown.stdout)
    assert judgement.verdict is R
    (finding,) = judgement.findings
    assert finding.title.startswith("F401: ")
    assert finding.location.endswith("a.py:1:8")
    (tmp_path / "a.py").write_text("")
    shown = subprocess.run(argv, cwd=tmp_path, check=False, timeout=60, capture_output=True, text=True)
    assert parse_sarif(shown.stdout).verdict is A


# Out, and in again

WORDS = st.text(alphabet='ab Zé:/.#"<>&\\%`*\n', max_size=12)
FINDINGS = st.builds(
    Finding,
    severity=st.sampled_from(Severity),
    title=WORDS.map(lambda text: " ".join(text.split())).filter(bool),
    detail=WORDS.map(str.strip),
    location=st.sampled_from(
        ["", "src/a.py", "src/a b.py:3", "/etc/x.conf:3:1", "a.py:9-12", "a.py:0", "## Changes", "é.py:1"]
    ),
    recommendation=WORDS.map(str.strip),
    evidence=st.sampled_from(Evidence),
)
JUDGEMENTS = st.builds(
    judged,
    st.sampled_from(Verdict),
    st.just("because"),
    st.lists(FINDINGS, max_size=3, unique=True).map(tuple),
)


def written(judgement: Judgement) -> str:
    return msgspec.json.encode(log(judgement, "1.0")).decode()


@settings(deadline=None)
@given(judgement=JUDGEMENTS)
def test_what_is_written_is_read_back_and_never_as_a_better_verdict(judgement: Judgement) -> None:
    again = parse_sarif(written(judgement))
    blocked = judgement.max_severity is Severity.BLOCKING
    expected = R if judgement.verdict is A and blocked else judgement.verdict
    assert again.verdict is expected
    assert again.findings[: len(judgement.findings)] == judgement.findings
    assert [each.fingerprint for each in again.findings[: len(judgement.findings)]] == [
        each.fingerprint for each in judgement.findings
    ]


def test_a_revision_without_findings_is_still_one_for_tools() -> None:
    again = parse_sarif(written(judged(R, "it says `revision`")))
    assert (again.verdict, [finding.title for finding in again.findings]) == (R, ["it says `revision`"])


def test_an_unknown_verdict_is_a_run_that_failed_and_says_why() -> None:
    run = sarif.read(written(judged(U, "two verdicts disagree"))).runs[0]
    assert run.invocations[0].execution_successful is False
    assert run.fault == "the tool does not say that it ran to its end"
    assert run.invocations[0].tool_execution_notifications[0].message.text == "two verdicts disagree"


def test_a_result_carries_the_fingerprint_its_level_and_the_recommendation() -> None:
    finding = Finding(
        severity=Severity.MEDIUM, title="No check", location="src/a.py:3", recommendation="check it"
    )
    document = json.loads(written(judged(A, "nothing worse", (finding,))))
    (found,) = document["runs"][0]["results"]
    (rule,) = document["runs"][0]["tool"]["driver"]["rules"]
    assert found["partialFingerprints"] == {FINGERPRINT: finding.fingerprint}
    assert found["level"] == "warning"
    assert found["ruleId"] == rule["id"]
    assert rule["help"] == {"text": "check it"}
    assert found["locations"][0]["physicalLocation"]["region"] == {"startLine": 3}


def test_a_better_word_in_the_properties_does_not_lower_the_level() -> None:
    lying = result("error", properties={"planforge": {"severity": "suggestion", "evidence": "quoted"}})
    judgement = parse_sarif(document(lying))
    assert (judgement.verdict, judgement.max_severity) == (R, Severity.BLOCKING)
