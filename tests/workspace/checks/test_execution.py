"""Checks of real projects: only what was counted and did not fail passes."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planforge.kernel.evidence import TESTS, Counts, Coverage, Evidence, Outcome
from planforge.kernel.objects import Objects
from planforge.workspace import sandbox
from planforge.workspace.checks import Check, Report, execution
from planforge.workspace.checks.judgement import judge, rejudged
from planforge.workspace.reports.tally import REPORT_LIMIT, Tally
from programs import counts_skipped
from repositories import write

UNITTEST = (sys.executable, "-m", "unittest")
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=junit.xml")
PASS, FAIL, CANNOT_TELL = Outcome.PASS, Outcome.FAIL, Outcome.CANNOT_TELL
HEAD = "import os, sys, time, unittest\nclass Case(unittest.TestCase):\n"
FORGED = "print('Ran 100 tests in 0.1s\\n\\nOK')\n"
GOOD_REPORT = "<testsuite><testcase name='a'/></testsuite>"
BAD_REPORT = "<testsuite><testcase name='a'/><testcase name='b'><failure/></testcase></testsuite>"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    return checkout


def observe(check: Check, checkout: Path) -> Evidence:
    objects = Objects(checkout.parent / "objects")
    return asyncio.run(execution.run_all({TESTS: check}, checkout, "c" * 40, "t" * 40, objects))


def printed(evidence: Evidence, checkout: Path) -> bytes:
    return Objects(checkout.parent / "objects").get(evidence.output)


def leaving(report: str | bytes, code: int = 0) -> tuple[str, ...]:
    """A command that writes a report and ends with a code."""
    content = report.encode() if isinstance(report, str) else report
    program = f"import sys; open('junit.xml', 'wb').write({content!r}); sys.exit({code})"
    return (sys.executable, "-c", program)


@pytest.mark.parametrize(
    ("body", "outcome", "reason"),
    [
        ("    def test_a(self): pass\n    def test_b(self): pass\n", PASS, "2 of 2 tests passed"),
        pytest.param(
            "    def test_a(self): pass\n    @unittest.skip('')\n    def test_b(self): pass\n",
            PASS,
            "1 of 2 tests passed, 1 skipped",
            marks=counts_skipped,
        ),
        ("    @unittest.expectedFailure\n    def test_a(self): self.fail()\n", PASS, "1 of 1 test passed"),
        ("    def test_a(self): self.fail('no')\n", FAIL, "1 of 1 test failed"),
        ("    def test_a(self): import nothing_like_it\n", FAIL, "1 of 1 test failed"),
        ("    @unittest.expectedFailure\n    def test_a(self): pass\n", FAIL, "1 of 1 test failed"),
        ("    @unittest.skip('')\n    def test_a(self): pass\n", CANNOT_TELL, "no test ran"),
        ("    pass\n", CANNOT_TELL, "no test ran"),
        (
            "    def test_a(self): os.kill(os.getpid(), 9)\n",
            CANNOT_TELL,
            f"it was killed by signal {signal.SIGKILL.value}",
        ),
        (
            "    def test_a(self): os._exit(0)\n",
            CANNOT_TELL,
            "it ended with 0 and left no count of tests",
        ),
        (
            "    def test_a(self): os._exit(7)\n",
            CANNOT_TELL,
            "it ended with 7 and left no count of tests",
        ),
        (
            f"    def test_a(self): {FORGED}",
            CANNOT_TELL,
            "it ended with 0 and left no count of tests",
        ),
        (
            "    @unittest.skip('')\n    def test_a(self): pass\nprint('Ran 9 tests in 1s\\n\\nOK')\n",
            CANNOT_TELL,
            "",
        ),
        ("    def test_a(self): self.fail()\nprint('Ran 9 tests in 1s\\n\\nOK')\n", CANNOT_TELL, ""),
    ],
)
def test_unittest_projects(checkout: Path, body: str, outcome: Outcome, reason: str) -> None:
    write(checkout, {"test_it.py": HEAD + body})
    evidence = observe(Check(command=UNITTEST, report=Report.UNITTEST), checkout)
    assert evidence.outcome == outcome, printed(evidence, checkout).decode()
    assert evidence.reason.endswith(reason)


@pytest.mark.dear(but="def test_a(): *")
@pytest.mark.parametrize(
    ("source", "outcome", "reason"),
    [
        ("def test_a(): pass\n", PASS, "1 of 1 test passed"),
        ("def test_a(): assert False\n", FAIL, "1 of 1 test failed"),
        ("import nothing_like_it\n", FAIL, "1 of 1 test failed"),
        ("import pytest\n@pytest.mark.skip\ndef test_a(): pass\n", CANNOT_TELL, "no test ran"),
        ("import pytest\n@pytest.mark.xfail\ndef test_a(): assert False\n", CANNOT_TELL, "no test ran"),
        ("x = 1\n", CANNOT_TELL, "no test ran"),
        (
            "import os\ndef test_a(): os._exit(0)\n",
            CANNOT_TELL,
            "it ended with 0 and left no count of tests",
        ),
    ],
)
def test_pytest_projects(checkout: Path, source: str, outcome: Outcome, reason: str) -> None:
    write(checkout, {"test_it.py": source})
    evidence = observe(Check(command=PYTEST, report=Report.JUNIT), checkout)
    assert (evidence.outcome, evidence.reason) == (outcome, reason)


def test_evidence_says_what_was_run_on_what_and_what_came_of_it(checkout: Path) -> None:
    body = "    def test_a(self): self.fail('because')\n    def test_b(self): pass\n"
    write(checkout, {"test_it.py": HEAD + body})
    evidence = observe(Check(command=UNITTEST, report=Report.UNITTEST), checkout)
    assert (evidence.check, evidence.command, evidence.exit_code) == ("tests", UNITTEST, 1)
    assert evidence.counts == Counts(total=2, passed=1, failed=1, skipped=0)
    assert evidence.failing == ("test_it.Case.test_a",)
    assert (evidence.commit, evidence.tree) == ("c" * 40, "t" * 40)
    assert b"because" in printed(evidence, checkout)
    assert evidence.seconds > 0


def test_output_of_many_megabytes_does_not_hide_the_summary(checkout: Path) -> None:
    write(checkout, {"test_it.py": f"{HEAD}    def test_a(self): print('x' * 9_000_000)\n"})
    evidence = observe(Check(command=UNITTEST, report=Report.UNITTEST), checkout)
    assert evidence.outcome == PASS
    assert len(printed(evidence, checkout)) < 5_000_000


def test_a_check_that_does_not_end_cannot_tell(checkout: Path) -> None:
    write(checkout, {"test_it.py": f"{HEAD}    def test_a(self): time.sleep(600)\n"})
    evidence = observe(Check(command=UNITTEST, report=Report.UNITTEST, seconds=0.5), checkout)
    assert (evidence.outcome, evidence.reason) == (CANNOT_TELL, "it did not end within 0.5 s")
    assert evidence.exit_code is None


def test_a_check_whose_time_is_up_cannot_tell_whatever_its_report_says(checkout: Path) -> None:
    program = f"import time; open('junit.xml', 'w').write({GOOD_REPORT!r}); time.sleep(600)"
    check = Check(command=(sys.executable, "-c", program), report=Report.JUNIT, seconds=1.0)
    assert observe(check, checkout).outcome == CANNOT_TELL


def test_a_command_that_does_not_exist_cannot_tell(checkout: Path) -> None:
    evidence = observe(Check(command=("no-such-program", "x"), report=Report.UNITTEST), checkout)
    assert evidence.outcome == CANNOT_TELL
    assert evidence.reason == "cannot start `no-such-program`: No such file or directory"
    assert (evidence.command, evidence.exit_code, evidence.counts) == (("no-such-program", "x"), None, None)


def test_an_empty_command_cannot_tell(checkout: Path) -> None:
    assert observe(Check(command=(), report=Report.UNITTEST), checkout).outcome == CANNOT_TELL


@pytest.mark.parametrize(
    ("command", "outcome", "reason"),
    [
        (leaving(GOOD_REPORT), PASS, "1 of 1 test passed"),
        (leaving(BAD_REPORT), FAIL, "1 of 2 tests failed"),
        (leaving(GOOD_REPORT, code=1), FAIL, "it ended with 1 although no test failed"),
        (leaving("<testsuite/>"), CANNOT_TELL, "no test ran"),
        (leaving(""), CANNOT_TELL, "it ended with 0 and left no count of tests"),
        (leaving("<testsuite>"), CANNOT_TELL, "it ended with 0 and left no count of tests"),
        (("true",), CANNOT_TELL, "it ended with 0 and left no count of tests"),
        (("false",), CANNOT_TELL, "it ended with 1 and left no count of tests"),
        (("mkfifo", "junit.xml"), CANNOT_TELL, "it ended with 0 and left no count of tests"),
        (("mkdir", "junit.xml"), CANNOT_TELL, "it ended with 0 and left no count of tests"),
        (("ln", "-s", "junit.xml", "junit.xml"), CANNOT_TELL, "it ended with 0 and left no count of tests"),
        (
            ("truncate", "-s", str(REPORT_LIMIT + 1), "junit.xml"),
            CANNOT_TELL,
            "it ended with 0 and left no count of tests",
        ),
    ],
)
def test_reports_that_commands_leave(
    checkout: Path, command: tuple[str, ...], outcome: Outcome, reason: str
) -> None:
    evidence = observe(Check(command=command, report=Report.JUNIT), checkout)
    assert (evidence.outcome, evidence.reason) == (outcome, reason)


@pytest.mark.parametrize("junit", ["../outside.xml", "{outside}", "link.xml", "up/outside.xml"])
def test_a_report_outside_the_checkout_is_neither_read_nor_removed(checkout: Path, junit: str) -> None:
    outside = checkout.parent / "outside.xml"
    outside.write_text(GOOD_REPORT)
    (checkout / "link.xml").symlink_to(outside)
    (checkout / "up").symlink_to("..")
    check = Check(command=("true",), report=Report.JUNIT, junit=junit.format(outside=outside))
    assert observe(check, checkout).outcome == CANNOT_TELL
    assert outside.read_text() == GOOD_REPORT


def test_a_report_that_the_command_leads_out_of_the_checkout_is_not_read(checkout: Path) -> None:
    outside = checkout.parent / "outside.xml"
    outside.write_text(GOOD_REPORT)
    check = Check(command=("ln", "-s", str(outside), "junit.xml"), report=Report.JUNIT)
    assert observe(check, checkout).outcome == CANNOT_TELL


@pytest.mark.parametrize("linked", [True, False])
def test_a_report_that_came_with_the_tree_says_nothing(checkout: Path, linked: bool) -> None:
    write(checkout, {"old.xml" if linked else "junit.xml": GOOD_REPORT})
    if linked:
        (checkout / "junit.xml").symlink_to("old.xml")
    evidence = observe(Check(command=("true",), report=Report.JUNIT), checkout)
    assert (evidence.outcome, evidence.counts) == (CANNOT_TELL, None)


def test_a_check_sees_only_the_short_environment(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "leaked")
    evidence = observe(Check(command=("env",), report=Report.UNITTEST), checkout)
    assert b"leaked" not in printed(evidence, checkout)
    assert os.environ["PATH"].encode() in printed(evidence, checkout)


# The judgement alone

NUMBERS = st.integers(0, 5)
COUNTS = st.builds(Counts, total=NUMBERS, passed=NUMBERS, failed=NUMBERS, skipped=NUMBERS)
TALLIES = st.none() | st.builds(Tally, COUNTS, st.just(()))


@given(exit_code=st.none() | st.integers(-15, 3), tally=TALLIES)
def test_only_a_clean_end_with_a_counted_test_and_no_failure_passes(
    exit_code: int | None, tally: Tally | None
) -> None:
    judgement = judge(exit_code, tally, 1.0)
    deserved = (
        exit_code == 0
        and tally is not None
        and tally.counts.total - tally.counts.skipped >= 1
        and tally.counts.failed == 0
        and not tally.doubt
    )
    assert (judgement.outcome is PASS) == deserved
    assert judgement.reason
    if exit_code is None or exit_code < 0 or tally is None:
        assert judgement.outcome is CANNOT_TELL


def test_what_a_check_printed_is_kept_without_its_secrets_and_counted_with_them(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "-".join(("open", "sesame", "4711"))
    monkeypatch.setenv("DOOR_TOKEN", secret)
    write(checkout, {"test_it.py": HEAD + f"    def test_a(self): print('{secret} \\xff')\n"})
    evidence = observe(Check(command=UNITTEST, report=Report.UNITTEST), checkout)
    assert (evidence.outcome, evidence.reason) == (PASS, "1 of 1 test passed")
    assert b"[redacted:DOOR_TOKEN]" in printed(evidence, checkout)
    stored = [path.read_bytes() for path in (checkout.parent / "objects").rglob("*") if path.is_file()]
    assert not any(secret.encode() in content for content in stored)


# Several checks together


def python(code: str) -> tuple[str, ...]:
    """A command that runs a few lines of Python."""
    return (sys.executable, "-c", code)


GOOD = Check(command=leaving(GOOD_REPORT), report=Report.JUNIT)
BAD = Check(command=leaving(BAD_REPORT, 1), report=Report.JUNIT)
FINE = Check(command=("true",))
BROKEN = Check(command=("false",))


def gather(checkout: Path, named: dict[str, Check], **options: Any) -> Evidence:
    objects = Objects(checkout.parent / "objects")
    return asyncio.run(execution.run_all(named, checkout, "c" * 40, "t" * 40, objects, **options))


def outcomes(evidence: Evidence) -> dict[str, Outcome]:
    return {part.name: part.outcome for part in evidence.parts}


def test_checks_run_in_their_order_whatever_order_they_are_given_in(checkout: Path) -> None:
    told: list[tuple[str, bool]] = []
    named = {"own": FINE, "tests": GOOD, "lint": FINE, "types": FINE, "build": FINE}
    evidence = gather(checkout, named, watch=lambda name, part: told.append((name, part is not None)))
    assert [part.name for part in evidence.parts] == ["build", "types", "lint", "tests", "own"]
    assert told[:4] == [("build", False), ("build", True), ("types", False), ("types", True)]
    assert (evidence.outcome, evidence.reason) == (PASS, "1 of 1 test passed")
    assert (evidence.check, evidence.command, evidence.exit_code) == ("tests", GOOD.command, 0)
    assert evidence.sandbox


def test_what_comes_after_a_build_that_failed_says_that_it_was_not_run(checkout: Path) -> None:
    mark = checkout / "ran"
    tests = Check(command=python("open('ran', 'w')"), report=Report.JUNIT)
    evidence = gather(checkout, {"build": BROKEN, "lint": FINE, "tests": tests})
    assert (evidence.outcome, evidence.reason) == (FAIL, "build: it ended with 1")
    assert outcomes(evidence) == {"build": FAIL, "lint": CANNOT_TELL, "tests": CANNOT_TELL}
    assert {part.reason for part in evidence.parts[1:]} == {"not run because build failed"}
    assert not any(part.ran for part in evidence.parts[1:])
    assert not mark.exists()
    assert evidence.compile_ok is False


def test_a_build_that_cannot_tell_or_need_not_pass_stops_nothing(checkout: Path) -> None:
    missing = gather(checkout, {"build": Check(command=("no-such-program",)), "tests": GOOD})
    assert (missing.outcome, outcomes(missing)["tests"]) == (CANNOT_TELL, PASS)
    assert missing.reason == "build: cannot start `no-such-program`: No such file or directory"
    loose = gather(checkout, {"build": Check(command=("false",), required=False), "tests": GOOD})
    assert (loose.outcome, outcomes(loose)) == (PASS, {"build": FAIL, "tests": PASS})


LINT = python("print('a.py:1:1: F401 x'); print('a.py:2:1: E501 y'); raise SystemExit(1)")


@pytest.mark.parametrize(("required", "outcome"), [(None, PASS), (False, PASS), (True, FAIL)])
def test_findings_of_a_linter_are_counted_and_fail_only_if_that_is_asked_for(
    checkout: Path, required: bool | None, outcome: Outcome
) -> None:
    evidence = gather(checkout, {"lint": Check(command=LINT, required=required), "tests": GOOD})
    (lint, _) = evidence.parts
    assert (lint.outcome, lint.findings, lint.reason) == (FAIL, 2, "2 findings")
    assert evidence.outcome is outcome


def test_types_and_checks_of_ones_own_must_pass_unless_they_need_not(checkout: Path) -> None:
    for name in ("types", "own"):
        assert gather(checkout, {name: BROKEN, "tests": GOOD}).outcome is FAIL
        loose = Check(command=("false",), required=False)
        assert gather(checkout, {name: loose, "tests": GOOD}).outcome is PASS


def test_tests_must_pass_whatever_the_settings_say(checkout: Path) -> None:
    loose = Check(command=leaving(BAD_REPORT, 1), report=Report.JUNIT, required=False)
    evidence = gather(checkout, {"tests": loose})
    assert (evidence.outcome, evidence.parts[0].required) == (FAIL, True)
    assert gather(checkout, {"build": FINE}).reason == "there is no check `tests`"


def test_the_tests_of_several_checks_are_counted_together(checkout: Path) -> None:
    evidence = gather(checkout, {"tests": GOOD, "integration": BAD})
    assert (evidence.counts, evidence.failing) == (Counts(total=3, passed=2, failed=1, skipped=0), ("b",))
    assert evidence.outcome is FAIL
    assert rejudged(evidence) is FAIL


def test_a_report_is_kept_with_the_evidence_and_so_are_the_names_and_the_check(checkout: Path) -> None:
    evidence = gather(checkout, {"tests": BAD})
    (tests,) = evidence.parts
    objects = Objects(checkout.parent / "objects")
    assert objects.get(tests.attachment("junit.xml")) == BAD_REPORT.encode()
    assert objects.get(tests.attachment("names")) == b"a\nb"
    assert msgspec.json.decode(objects.get(tests.attachment("check")), type=Check) == BAD


def test_reports_may_lie_beside_the_checkout_and_leave_nothing_there(checkout: Path) -> None:
    code = f"import sys; open(sys.argv[1], 'w').write({GOOD_REPORT!r})"
    command = (*python(code), "${reports}/r.xml")
    check = Check(command=command, report=Report.JUNIT, junit="${reports}/r.xml")
    evidence = gather(checkout, {"tests": check})
    assert (evidence.outcome, evidence.command) == (PASS, command)
    assert list(checkout.iterdir()) == []


def test_several_reports_are_found_by_a_glob_and_old_ones_are_not(checkout: Path) -> None:
    write(checkout, {"m/target/TEST-old.xml": GOOD_REPORT})
    left = {"m/target/TEST-1.xml": GOOD_REPORT, "TEST-2.xml": BAD_REPORT}
    code = f"for name, text in {left!r}.items(): open(name, 'w').write(text)"
    check = Check(command=python(code), report=Report.JUNIT, junit="**/TEST-*.xml")
    evidence = gather(checkout, {"tests": check})
    assert evidence.counts == Counts(total=3, passed=2, failed=1, skipped=0)


def test_placeholders_stand_for_places(checkout: Path) -> None:
    root = checkout.parent / "root"
    check = Check(
        command=python("import os; print(os.environ['PLACES'])"), env={"PLACES": "${root}|${checkout}"}
    )
    evidence = gather(checkout, {"tests": check}, root=root, extra={"MORE": "1"})
    assert printed(evidence, checkout).decode().strip() == f"{root}|{checkout}"


def test_coverage_is_read_where_the_check_says_that_it_lies(checkout: Path) -> None:
    left = {"junit.xml": GOOD_REPORT, "c.lcov": "SF:a\nDA:1,1\nend_of_record\n"}
    code = f"for name, text in {left!r}.items(): open(name, 'w').write(text)"
    evidence = gather(
        checkout, {"tests": Check(command=python(code), report=Report.JUNIT, coverage="c.lcov")}
    )
    assert evidence.parts[0].coverage == Coverage(covered=1, total=1)


@pytest.mark.dear
def test_pytests_warnings_are_counted_and_its_own_line_must_agree_with_its_report(checkout: Path) -> None:
    write(checkout, {"test_it.py": "import warnings\ndef test_a(): warnings.warn('x')\n"})
    evidence = gather(checkout, {"tests": Check(command=PYTEST, report=Report.JUNIT)})
    assert (evidence.outcome, evidence.parts[0].warnings) == (PASS, 1)
    code = f"open('junit.xml', 'w').write({GOOD_REPORT!r}); print('=== 1 failed, 1 passed in 0.01s ===')"
    evidence = gather(checkout, {"tests": Check(command=python(code), report=Report.JUNIT)})
    assert evidence.outcome is CANNOT_TELL
    assert "counts 1 passed and 0 failed, it said 1 passed and 1 failed" in evidence.reason


def test_make_is_read_by_the_summary_of_what_it_runs(checkout: Path) -> None:
    write(
        checkout,
        {
            "Makefile": f"test:\n\t{shlex.quote(sys.executable)} -m unittest\n",
            "test_it.py": HEAD + "    pass\n",
        },
    )
    check = Check(command=("make", "test"))
    empty = gather(checkout, {"tests": check})
    assert (empty.outcome, empty.reason) == (CANNOT_TELL, "no test ran")
    write(checkout, {"test_it.py": HEAD + "    def test_a(self): self.fail()\n    def test_b(self): pass\n"})
    evidence = gather(checkout, {"tests": check})
    assert (evidence.outcome, evidence.failing) == (FAIL, ("test_it.Case.test_a",))


@pytest.mark.parametrize(
    ("recipe", "reason"),
    [
        ("no-such-tool --all", "`no-such-tool` was not found"),
        ("exec no-such-tool", "`no-such-tool` was not found"),
        (f"{shlex.quote(sys.executable)} -m no_such_module", "`no_such_module` is not installed"),
        ("kill -9 $$$$", "the runner crashed (Killed)"),
        ("sh -c 'kill -SEGV $$$$'; exit 139", "the runner was killed by signal 11"),
        ("echo 'bind: Address already in use'; exit 1", "a port is in use"),
        ("echo 'write: No space left on device'; exit 1", "there is no space left on the disk"),
        ("echo 'getaddrinfo EAI_AGAIN example.org'; exit 1", "there is no network"),
        ("echo 'FATAL ERROR: Reached heap limit - JavaScript heap out of memory'; exit 134", "out of memory"),
    ],
)
def test_what_is_not_the_trees_fault_cannot_tell_through_make_either(
    checkout: Path, recipe: str, reason: str
) -> None:
    write(checkout, {"Makefile": f"test:\n\t@{recipe}\n"})
    for name in ("tests", "build"):
        evidence = gather(checkout, {name: Check(command=("make", "test")), "lint": FINE})
        (part,) = (part for part in evidence.parts if part.name == name)
        assert part.outcome is CANNOT_TELL, printed(evidence, checkout).decode()
        assert reason in part.reason


def test_a_failing_test_that_speaks_of_the_machine_still_fails(checkout: Path) -> None:
    mixed = (
        "<testsuite><testcase name='a'><failure message='OSError: Address already in use'/></testcase>"
        "<testcase name='b'><failure message='1 != 2'/></testcase></testsuite>"
    )
    evidence = gather(checkout, {"tests": Check(command=leaving(mixed, 1), report=Report.JUNIT)})
    assert (evidence.outcome, evidence.failing) == (FAIL, ("a", "b"))
    alone = mixed.replace("1 != 2", "ENOSPC: no space")
    evidence = gather(checkout, {"tests": Check(command=leaving(alone, 1), report=Report.JUNIT)})
    assert evidence.outcome is CANNOT_TELL
    assert evidence.reason == (
        "2 of 2 tests failed, all because a port is in use and there is no space left on the disk"
    )


def test_a_linter_that_fails_and_leaves_no_report_has_not_looked(checkout: Path) -> None:
    check = Check(command=("false",), report=Report.SARIF, file="${reports}/lint.sarif")
    part = gather(checkout, {"lint": check}).parts[0]
    assert (part.outcome, part.reason) == (CANNOT_TELL, "it ended with 1 and left no report")


# What evidence depends on


def test_a_fingerprint_depends_on_what_is_run_and_not_on_how_long_it_may_take(checkout: Path) -> None:
    def mark(check: Check, **options: Any) -> str:
        return execution.fingerprint({"tests": check}, root=checkout, **options)

    plain = mark(GOOD)
    assert mark(msgspec.structs.replace(GOOD, seconds=1.0)) == plain
    assert mark(msgspec.structs.replace(GOOD, required=True)) == plain  # tests always are
    assert mark(msgspec.structs.replace(GOOD, command=("true",))) != plain
    assert mark(msgspec.structs.replace(GOOD, report=Report.TEXT)) != plain
    assert mark(msgspec.structs.replace(GOOD, env={"A": "1"})) != plain
    assert mark(GOOD, sandbox="landlock") != plain
    assert mark(GOOD, network=True) != plain
    assert mark(GOOD, preparation="npm ci") != plain
    assert execution.fingerprint({"tests": GOOD, "lint": FINE}, root=checkout) != plain


def test_a_fingerprint_changes_with_what_is_installed(checkout: Path) -> None:
    home = checkout / ".venv"
    write(
        home,
        {"pyvenv.cfg": "", "bin/tool": "#!/bin/sh\n", "lib/python3.11/site-packages/a-1.dist-info/x": ""},
    )
    (home / "bin/tool").chmod(0o755)
    check = Check(command=("${root}/.venv/bin/tool",))
    before = execution.fingerprint({"tests": check}, root=checkout)
    assert execution.fingerprint({"tests": check}, root=checkout) == before
    write(home, {"lib/python3.11/site-packages/b-1.dist-info/x": ""})
    with_another = execution.fingerprint({"tests": check}, root=checkout)
    write(home, {"bin/tool": "#!/bin/sh\nexit 1\n"})
    assert len({before, with_another, execution.fingerprint({"tests": check}, root=checkout)}) == 3


# In a sandbox


def test_checks_run_in_the_sandbox_that_they_are_given_and_evidence_says_which(checkout: Path) -> None:
    level = sandbox.strongest()
    outside = checkout.parent / "outside"
    outside.mkdir()
    code = (
        f"import sys; open(sys.argv[1], 'w').write({GOOD_REPORT!r})\n"
        f"try: open({str(outside / 'mark')!r}, 'w')\nexcept OSError: pass\n"
    )
    policy = sandbox.verifying(checkout, repository=checkout.parent)
    check = Check(
        command=(*python(code), "${reports}/r.xml"),
        report=Report.JUNIT,
        junit="${reports}/r.xml",
        visible=(sys.prefix, sys.base_prefix),
    )
    evidence = gather(checkout, {"tests": check}, policy=policy, level=level)
    assert (evidence.outcome, evidence.sandbox) == (PASS, level.value), printed(evidence, checkout).decode()
    confined = level in (sandbox.Level.BUBBLEWRAP, sandbox.Level.LANDLOCK)
    assert (outside / "mark").exists() is not confined
