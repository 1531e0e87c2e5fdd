"""
Every row of the tables and lists of the document about plans and forging, by its name.

`ROWS` has the keys of the rows as the document has them; each has a check below that says what our code
does. The other tests go further; this one says that nothing was left out. Where Planforge is stricter than
the document, the check says so. Rows about whole runs are held in the tests of those.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import pytest

from driven import Driven, driven
from planforge.documents import plan as plans
from planforge.documents.phases import (
    Phase,
    PhaseDetail,
    PhaseKind,
    decompose,
    file_path,
    read_phases,
    render_phases,
)
from planforge.documents.plan import PlanStatus, content_hash, parse, structural_findings
from planforge.errors import CannotPerform, InvalidDocument, PerformerFailed, RefusedByGate
from planforge.kernel.effects import Access, MarkPlan, RunAgent
from planforge.kernel.events import PlanForged
from planforge.kernel.work.lifecycle.tables import PHASE, PLAN
from planforge.rules import badges, selection
from planforge.rules.findings import Finding, Severity, worst
from planforge.rules.selection import Candidate
from planforge.rules.verdicts import KINDS, Verdict
from planforge.workflows.forge import ForgeRequest, forge
from planforge.workflows.plan_run import PlanRunRequest, PlanRunResult, plan_run
from worlds import BLOCKING, CLEAN, MEDIUM, World, approved, versions
from worlds import PLAN as DRAFTED

ROWS: dict[str, list[str]] = {
    "severity model": [
        "blocking",
        "medium",
        "minor",
        "suggestion",
        "high is blocking",
        "low is minor",
        "case",
    ],
    "verdict parsing": [
        "severity: blocking",
        "severity: high",
        "severity: medium",
        "severity: minor",
        "severity: low",
        "severity: suggestion",
        "ready to approve",
        "needs revision",
        "no severity markers",
    ],
    "status transitions during forge": ["normal completion", "cap reached", "cancellation", "error"],
    "decomposition logic": [
        "extract the changes",
        "parse file paths",
        "group files into batches",
        "module and test pairs",
        "remaining files by directory",
        "one implement phase per batch",
        "one audit phase that depends on all",
        "no paths: read, implement, audit",
    ],
    "phase kinds": ["implement", "read", "audit"],
    "dependency chains": ["done or skipped", "in-progress", "failed", "pending"],
    "staleness": ["16 characters of SHA-256", "an edit changes it"],
    "skip semantics": ["the first in-progress or failed", "skipped counts as met", "nothing to skip"],
    "keep done": ["signature", "demoted"],
    "header fields": ["title", "ID", "Task", "Created", "Status", "Project", "Heartbeat", "Parallel"],
    "plan statuses": [
        "DRAFT",
        "REVIEW",
        "APPROVED",
        "IMPLEMENTING",
        "AUDITING",
        "DONE",
        "CLOSED",
        "CANCELLED",
    ],
    "placeholder tokens": ["{{TITLE}}", "{{PLAN_ID}}", "{{TASK_ID}}", "{{DATE}}", "{{PROJECT}}"],
    "required sections": [
        "Objective",
        "Scope",
        "Changes",
        "Risks",
        "Testing",
        "Audit Log",
        "Implementation Notes",
    ],
    "three line types": [
        "list item: -",
        "list item: *",
        "list item: +",
        "heading",
        "bold",
        "triple bold",
        "prose",
    ],
    "path filter": ["ALL_CAPS", "PascalCase", "quoted", "single word", "with a slash", "with an extension"],
    "change manifest": ["bare array", "wrapping object", "filtered", "precedence", "changes still describe"],
    "phases file header": ["planId", "planFile", "planContentHash", "createdAt", "updatedAt"],
    "phases file fields": [
        "id",
        "title",
        "kind",
        "description",
        "status",
        "dependsOn",
        "contextFiles",
        "changeSpec",
        "output",
        "error",
        "gitCommit",
        "modifiedFiles",
        "failureHashes",
    ],
    "structural audit": [
        "missing section",
        "empty section",
        "only an italic placeholder",
        "starts with a parenthesis",
        "fewer than 10 characters",
        "changes without a file",
        "example paths",
        "status CLOSED",
        "derivation: high",
        "derivation: medium",
        "derivation: concerns",
        "derivation: none",
    ],
    "verdict by JSON": [
        "first object in the text",
        "nested under verdict",
        "maxSeverity",
        "shouldLoop",
        "concern severity",
        "shouldLoop with none",
    ],
    "verdict by marker": [
        "Severity: X",
        "table cell",
        "parenthesised",
        "bold word in prose",
        "markers beat sentences",
    ],
    "verification evidence": [
        "no phases",
        "any fail",
        "not all terminal",
        "all skipped",
        "build or test, and audit",
        "audit only",
        "some skipped",
        "else",
    ],
}

Check = Callable[[], None]
CHECKS: dict[tuple[str, str], Check] = {}


def row(table: str, *names: str) -> Callable[[Check], Check]:
    """The check of these rows."""

    def kept(check: Check) -> Check:
        for name in names:
            assert (table, name) not in CHECKS
            CHECKS[table, name] = check
        return check

    return kept


def rows(table: str, check: Callable[[str], None], names: list[str] | None = None) -> None:
    """One check that is given the name of each row."""
    for name in ROWS[table] if names is None else names:
        row(table, name)(partial(check, name))


ALL = [(table, name) for table, names in ROWS.items() for name in names]


def test_every_row_has_a_check_and_every_check_a_row() -> None:
    assert sorted(CHECKS) == sorted(ALL)


@pytest.mark.parametrize(("table", "name"), ALL, ids=[f"{table}: {name}" for table, name in ALL])
def test_row(table: str, name: str) -> None:
    CHECKS[table, name]()


# Severities and verdicts

A, R, U = Verdict.APPROVED, Verdict.REVISION, Verdict.UNKNOWN
LOOPS = {"blocking": True, "medium": False, "minor": False, "suggestion": False}


def judged(text: str) -> tuple[Verdict, str, bool]:
    found = KINDS["audit"](text)
    return found.verdict, found.max_severity.value if found.max_severity else "none", found.loops


def triggers_the_loop(level: str) -> None:
    verdict, severity, loops = judged(f"Severity: {level}")
    assert (severity, loops) == (level, LOOPS[level])
    assert (verdict is A) is not loops


rows("severity model", triggers_the_loop, list(LOOPS))


def same_severity(old: str, new: str) -> None:
    assert judged(f"Severity: {old}") == judged(f"Severity: {new}")


row("severity model", "high is blocking")(partial(same_severity, "high", "blocking"))
row("severity model", "low is minor")(partial(same_severity, "low", "minor"))


@row("severity model", "case")
def case_does_not_matter() -> None:
    for word in ("HIGH", "High", "high"):
        assert judged(f"severity: {word}") == (R, "blocking", True)


PARSED: dict[str, tuple[str, tuple[Verdict, str, bool]]] = {
    "severity: blocking": ("severity: blocking", (R, "blocking", True)),
    "severity: high": ("severity: high", (R, "blocking", True)),
    "severity: medium": ("severity: medium", (A, "medium", False)),
    "severity: minor": ("severity: minor", (A, "minor", False)),
    "severity: low": ("severity: low", (A, "minor", False)),
    "severity: suggestion": ("severity: suggestion", (A, "suggestion", False)),
    "ready to approve": ("It is ready to approve.", (A, "minor", False)),
    "needs revision": ("It needs revision.", (R, "blocking", True)),
    # Stricter: what cannot be read is for a person, and approves nothing.
    "no severity markers": ("I read it.", (U, "none", False)),
}
BY_JSON: dict[str, tuple[str, tuple[Verdict, str, bool]]] = {
    "first object in the text": ('So {"maxSeverity": "minor"} it is', (A, "minor", False)),
    "nested under verdict": ('{"verdict": {"maxSeverity": "medium"}}', (A, "medium", False)),
    "maxSeverity": ('{"maxSeverity": "suggestion"}', (A, "suggestion", False)),
    "shouldLoop": ('{"shouldLoop": false}', (A, "none", False)),
    "concern severity": ('{"concerns": [{"title": "x", "severity": "high"}]}', (R, "blocking", True)),
    "shouldLoop with none": ('{"maxSeverity": "none", "shouldLoop": true}', (R, "blocking", True)),
}
BY_MARKER: dict[str, tuple[str, tuple[Verdict, str, bool]]] = {
    "Severity: X": ("**Severity:** medium", (A, "medium", False)),
    "table cell": ("| naming | medium |", (A, "medium", False)),
    "parenthesised": ("- naming (medium)", (A, "medium", False)),
    "bold word in prose": ("It is **blocking** me.", (U, "none", False)),
    "markers beat sentences": ("Severity: minor\n\nIt needs revision.", (A, "minor", False)),
}


def holds(table: dict[str, tuple[str, tuple[Verdict, str, bool]]]) -> Callable[[str], None]:
    def check(name: str) -> None:
        text, expected = table[name]
        assert judged(text) == expected

    return check


rows("verdict parsing", holds(PARSED))
rows("verdict by JSON", holds(BY_JSON))
rows("verdict by marker", holds(BY_MARKER))


# Forging


def forged(world: World, cap: int = 2) -> Driven[PlanForged]:
    request = ForgeRequest(
        plan="plan-007",
        title="Rate limits",
        request="Stop floods",
        project="gateway",
        today="2026-01-02",
        base="base",
        cap=cap,
    )
    return driven(forge(request), world)


def marks(flow: Driven[PlanForged]) -> list[str]:
    return [effect.status for effect in flow.effects if isinstance(effect, MarkPlan)]


@row("status transitions during forge", "normal completion")
def any_severity_that_does_not_block_ends_in_review() -> None:
    flow = forged(World(drafter=[DRAFTED], auditor=[MEDIUM]))
    assert (flow.result.clean, marks(flow)) == (True, ["REVIEW"])


@row("status transitions during forge", "cap reached")
def the_cap_is_written_into_the_plan() -> None:
    world = World(drafter=[DRAFTED], auditor=[BLOCKING], reviser=versions(DRAFTED)[1:])
    flow = forged(world)
    assert (flow.result.clean, marks(flow)) == (False, ["REVIEW"])
    assert "VERDICT: CAP_REACHED" in world.text


@row("status transitions during forge", "cancellation")
def a_draft_that_is_cancelled_is_cancelled() -> None:
    assert PLAN.after("DRAFT", "cancel") == "CANCELLED"
    assert PLAN.after("REVIEW", "cancel") == "CANCELLED"


@row("status transitions during forge", "error")
def after_an_error_the_plan_is_a_draft() -> None:
    world = World(drafter=[DRAFTED], auditor=[CannotPerform("the disk is full")])
    with pytest.raises(PerformerFailed):
        forged(world)
    assert parse(world.text).status is PlanStatus.DRAFT


# Phases


def changes(text: str, manifest: str = "") -> str:
    more = f"\n\n## Change Manifest\n\n{manifest}" if manifest else ""
    return f"# Plan: x\n\n## Scope\n\n- `scope.py`\n\n## Changes\n\n{text}{more}\n\n## Risks\n\n- `risk.py`\n"


def cut(text: str, max_files: int = 5) -> list[tuple[str, ...]]:
    """The files of every phase but the audit."""
    return [phase.files for phase in decompose(changes(text), max_files=max_files)[:-1]]


@row("decomposition logic", "extract the changes")
def only_the_changes_count() -> None:
    assert cut("- `a/x.go`") == [("a/x.go",)]


@row("decomposition logic", "parse file paths")
def three_kinds_of_lines_name_files() -> None:
    assert cut("- `a/x.go`\n### `a/y.go`\n**`a/z.go`** — x") == [("a/x.go", "a/y.go", "a/z.go")]


@row("decomposition logic", "group files into batches")
def a_batch_has_its_most() -> None:
    assert cut("- `a/1.go` `a/2.go` `a/3.go`", max_files=2) == [("a/1.go", "a/2.go"), ("a/3.go",)]


@row("decomposition logic", "module and test pairs")
def a_module_keeps_its_test() -> None:
    assert cut("- `t/a.test.ts`\n- `b/q.ts`\n- `s/a.ts`")[0] == ("s/a.ts", "t/a.test.ts")


@row("decomposition logic", "remaining files by directory")
def a_directory_is_a_batch() -> None:
    assert cut("- `a/1.go`\n- `b/1.go`\n- `a/2.go`") == [("a/1.go", "a/2.go"), ("b/1.go",)]


@row("decomposition logic", "one implement phase per batch")
def a_batch_is_a_phase() -> None:
    phases = decompose(changes("- `a/1.go`\n- `b/1.go`"))
    assert [phase.kind.value for phase in phases] == ["implement", "implement", "audit"]


@row("decomposition logic", "one audit phase that depends on all")
def the_audit_waits_for_all() -> None:
    *before, audit = decompose(changes("- `a/1.go`\n- `b/1.go`"), parallel=True)
    assert audit.depends_on == tuple(phase.id for phase in before)


@row("decomposition logic", "no paths: read, implement, audit")
def without_paths_it_is_read_first() -> None:
    phases = decompose(changes("Make it faster."))
    assert [phase.kind.value for phase in phases] == ["read", "implement", "audit"]
    assert [phase.depends_on for phase in phases] == [(), ("phase-1",), ("phase-2",)]


NO_FILES = DRAFTED.replace("`gateway/", "gateway/").replace("`tests/", "tests/")


def asked(text: str) -> list[tuple[str, Access]]:
    """Who was asked while a plan ran, and what they might do to their worktree."""
    plan = plans.render_new(
        plan="plan-007", title="x", created="2026-01-02", project="", request="", body=text
    )
    request = PlanRunRequest(plan="plan-007", run="run-2", path="p.md", base="base", today="2026-01-02")
    world = approved(World(developer=["done"], auditor=[CLEAN]), plan)
    flow: Driven[PlanRunResult] = driven(plan_run(request), world)
    assert flow.result.done
    return [(effect.role, effect.access) for effect in flow.effects if isinstance(effect, RunAgent)]


@row("phase kinds", "implement")
def implementing_may_write() -> None:
    assert asked(DRAFTED)[0] == ("developer", Access.WRITE)


@row("phase kinds", "read")
def reading_may_not() -> None:
    assert asked(NO_FILES)[:2] == [("developer", Access.READ), ("developer", Access.WRITE)]


@row("phase kinds", "audit")
def auditing_may_not() -> None:
    assert asked(DRAFTED)[-1] == ("auditor", Access.READ)


def phase(number: int, status: str, *after: int) -> Candidate:
    return Candidate(
        id=f"phase-{number}", status=status, depends_on=tuple(f"phase-{other}" for other in after)
    )


def chosen(*phases: Candidate) -> str | None:
    found = selection.next_phase(phases)
    return found.id if found else None


@row("dependency chains", "done or skipped")
def what_is_done_or_skipped_is_met() -> None:
    for status in PHASE.states:
        able = chosen(phase(1, status), phase(2, "pending", 1)) == "phase-2"
        assert able is (status in ("done", "skipped"))


@row("dependency chains", "in-progress")
def what_is_in_progress_is_resumed_first() -> None:
    assert chosen(phase(1, "pending"), phase(2, "failed"), phase(3, "in-progress")) == "phase-3"


@row("dependency chains", "failed")
def what_failed_is_retried_next() -> None:
    assert chosen(phase(1, "pending"), phase(2, "failed"), phase(3, "done")) == "phase-2"


@row("dependency chains", "pending")
def the_first_that_is_pending_and_can_run_is_last() -> None:
    assert chosen(phase(1, "pending", 2), phase(2, "pending"), phase(3, "pending")) == "phase-2"


@row("staleness", "16 characters of SHA-256")
def sixteen_digits_are_shown() -> None:
    content = content_hash(DRAFTED)
    assert f"\nPlan hash: {content[:16]}\n" in rendered()
    assert len(content) == 64


@row("staleness", "an edit changes it")
def an_edit_of_what_is_approved_changes_the_hash() -> None:
    # Otherwise than in the document, status, audit log and notes are no part of it: they grow by themselves.
    assert content_hash(DRAFTED.replace("token bucket", "leaky bucket")) != content_hash(DRAFTED)
    text = "# Plan: x\n\n**Status:** DRAFT\n\n---\n\n## Changes\n\nx\n\n## Audit Log\n"
    assert content_hash(plans.with_status(text, PlanStatus.APPROVED)) == content_hash(text)
    assert content_hash(plans.with_audit_round(text, 1, "2026-01-02", "x")) == content_hash(text)


@row("skip semantics", "the first in-progress or failed")
def the_first_that_is_stuck_is_skipped() -> None:
    assert (
        selection.skippable([phase(1, "pending"), phase(2, "failed"), phase(3, "in-progress")]).id
        == "phase-2"
    )


@row("skip semantics", "skipped counts as met")
def what_depends_on_a_skipped_one_goes_on() -> None:
    assert chosen(phase(1, PHASE.after("failed", "skip")), phase(2, "pending", 1)) == "phase-2"


@row("skip semantics", "nothing to skip")
def nothing_else_is_skipped() -> None:
    with pytest.raises(RefusedByGate):
        selection.skippable([phase(1, "pending"), phase(2, "done")])


@row("keep done", "signature")
def the_same_words_are_kept() -> None:
    assert selection.kept({"phase-1": "a"}, {"phase-4": "a"}, {"phase-4": ()}) == {"phase-4": "phase-1"}


@row("keep done", "demoted")
def what_depends_on_something_new_is_done_again() -> None:
    after, needs = {"phase-1": "new", "phase-2": "b"}, {"phase-1": (), "phase-2": ("phase-1",)}
    assert selection.kept({"phase-2": "b"}, after, needs) == {}


# The plan file

HEADED = (
    "# Plan: Rate limits\n\n**ID:** plan-017\n**Task:** ws-3\n**Created:** 2026-02-12\n**Status:** DRAFT\n"
    "**Project:** gateway\n**Heartbeat:** 45s\n**Parallel:** yes\n\n---\n\n{}\n"
)


def a_field_is_the_headers(key: str) -> None:
    """A draft cannot bring a field of the header along, whatever it says."""
    drafted = DRAFTED.replace("\n## Objective", f"\n**{key}:** mine\n\n## Objective", 1)
    text = plans.with_body(HEADED.format(DRAFTED.partition("\n")[2]), drafted)
    assert "mine" not in text
    assert text.startswith(HEADED.split("---", maxsplit=1)[0].rstrip())


rows("header fields", a_field_is_the_headers, ["Task", "Created", "Project", "Heartbeat"])


@row("header fields", "title")
def a_plan_begins_with_its_title() -> None:
    assert parse(HEADED).title == "Rate limits"
    with pytest.raises(InvalidDocument, match="expected `# Plan: <title>`"):
        parse(HEADED.replace("# Plan:", "# Plans:"))


@row("header fields", "ID")
def a_plan_has_an_id() -> None:
    assert parse(HEADED).id == "plan-017"
    with pytest.raises(InvalidDocument, match="ID"):
        parse(HEADED.replace("**ID:**", "**Id:**"))


@row("header fields", "Status")
def the_first_status_counts() -> None:
    text = HEADED.format("**Status:** DONE")
    assert parse(text).status is PlanStatus.DRAFT
    assert "**Status:** DONE" in plans.with_status(text, PlanStatus.REVIEW)
    with pytest.raises(InvalidDocument, match="is not a status"):
        parse(HEADED.replace("DRAFT", "DRAFT | REVIEW"))


@row("header fields", "Parallel")
def a_plan_may_declare_that_phases_run_side_by_side() -> None:
    assert plans.declared_parallel(HEADED) is True
    assert plans.declared_parallel(HEADED.replace("yes", "no")) is False


def a_status_is_read_written_and_in_the_table(status: str) -> None:
    text = plans.with_status(HEADED, PlanStatus(status))
    assert parse(text).status == status
    assert status in PLAN.states


rows("plan statuses", a_status_is_read_written_and_in_the_table)


def a_token_that_was_left_is_refused(token: str) -> None:
    with pytest.raises(InvalidDocument, match="template token"):
        plans.drafted_body(DRAFTED.replace("Rate limits", token))


rows("placeholder tokens", a_token_that_was_left_is_refused)


def a_section_is_required(name: str) -> None:
    findings = structural_findings(DRAFTED.replace(f"## {name}", "## Other"))
    assert [(each.severity, each.location) for each in findings if each.severity is Severity.BLOCKING] == [
        (Severity.BLOCKING, f"## {name}")
    ]


def a_section_is_filled_by_us(name: str) -> None:
    text = plans.render_new(
        plan="plan-001", title="x", created="2026-01-02", project="", request="", body=DRAFTED
    )
    assert text.count(f"## {name}\n") == 1
    assert structural_findings(text) == ()


rows("required sections", a_section_is_required, ["Objective", "Scope", "Changes", "Risks", "Testing"])
rows("required sections", a_section_is_filled_by_us, ["Audit Log", "Implementation Notes"])

LINES = {
    "list item: -": "- `src/webhook.ts` — new",
    "list item: *": "* `src/webhook.ts` — new",
    "list item: +": "+ `src/webhook.ts` — new",
    "heading": "### `src/webhook.ts`",
    "bold": "**`src/webhook.ts`** — add `WEBHOOK_RATE_LIMIT_RPM`",
    "triple bold": "***`src/webhook.ts`*** — new",
}


def a_line_names_a_file(name: str) -> None:
    assert cut(LINES[name]) == [("src/webhook.ts",)]
    assert cut(LINES[name].replace("`", "")) == [(), ()]


rows("three line types", a_line_names_a_file, list(LINES))


@row("three line types", "prose")
def all_other_lines_are_ignored() -> None:
    assert cut("The handler `src/webhook.ts` is new.") == [(), ()]


FILTERED = {
    "ALL_CAPS": ("WEBHOOK_RATE_LIMIT_RPM", None),
    "PascalCase": ("WebhookHandler", None),
    "quoted": ('"src/a.ts"', None),
    "single word": ("webhook", None),
    "with a slash": ("bin/webhook", "bin/webhook"),
    "with an extension": ("webhook.ts", "webhook.ts"),
}


def a_token_passes_or_not(name: str) -> None:
    token, path = FILTERED[name]
    assert file_path(token) == path


rows("path filter", a_token_passes_or_not)


def listed(manifest: object) -> tuple[str, ...]:
    return decompose(changes("- `a/x.go` — count", json.dumps(manifest)))[-1].files


@row("change manifest", "bare array")
def an_array_is_taken() -> None:
    assert listed(["src/m.ts"]) == ("src/m.ts",)


@row("change manifest", "wrapping object")
def an_object_is_not() -> None:
    assert listed({"files": ["src/m.ts"]}) == ("a/x.go",)


@row("change manifest", "filtered")
def words_in_it_are_left_out() -> None:
    assert listed(["word", "src/m.ts", "../m.ts"]) == ("src/m.ts",)
    assert listed(["word"]) == ("a/x.go",)


@row("change manifest", "precedence")
def it_comes_before_the_changes() -> None:
    assert listed(["src/m.ts", "src/n.ts"]) == ("src/m.ts", "src/n.ts")


@row("change manifest", "changes still describe")
def the_changes_say_what_to_do() -> None:
    assert decompose(changes("- `a/x.go` — count", '["a/x.go"]'))[0].change_spec == "- `a/x.go` — count"


# The phases file

DETAIL = PhaseDetail(
    commit="a1b2c3d", error="it broke", modified=("a/x.go",), evidence="3 tests passed", output="Done.\nMore."
)


def phases_shown() -> tuple[Phase, ...]:
    return decompose(changes("- `a/x.go` — count"))


def rendered() -> str:
    return render_phases(
        "plan-017",
        "docs/plans/plan-017-x.md",
        content_hash(DRAFTED),
        "2026-02-12",
        phases_shown(),
        {"phase-1": "failed"},
        updated="2026-02-13",
        details={"phase-1": DETAIL},
    )


SHOWN = {
    "planId": "# Phases: plan-017 — ",
    "planFile": " — docs/plans/plan-017-x.md\n",
    "planContentHash": f"\nPlan hash: {content_hash(DRAFTED)[:16]}\n",
    "createdAt": "\nCreated: 2026-02-12\n",
    "updatedAt": "\nUpdated: 2026-02-13\n",
    "id": "\n## phase-1: ",
    "title": ": Implement a/x.go\n",
    "kind": "\n**Kind:** implement\n",
    "description": "\nImplement changes for: `a/x.go`\n",
    "status": "\n**Status:** failed\n",
    "dependsOn": "\n**Depends on:** phase-1\n",
    "contextFiles": "\n**Context:** `a/x.go`\n",
    "changeSpec": "\n**Change spec:**\n- `a/x.go` — count\n",
    "output": "\n**Output:** Done.\n",
    "error": "\n**Error:** it broke\n",
    "gitCommit": "\n**Commit:** `a1b2c3d`\n",
    "modifiedFiles": "\n**Modified:** `a/x.go`\n",
}


def a_field_is_shown(name: str) -> None:
    assert SHOWN[name] in rendered()


rows("phases file header", a_field_is_shown)
rows("phases file fields", a_field_is_shown, [name for name in ROWS["phases file fields"] if name in SHOWN])


@row("phases file fields", "failureHashes")
def what_failed_is_never_overwritten_so_no_hashes_are_needed() -> None:
    # Otherwise than in the document: an attempt has a worktree of its own, and a retry begins in another one.
    assert "hash" not in rendered().partition("## phase-1")[2].lower()
    assert read_phases(rendered()) == (("phase-1", "failed"), ("phase-2", "pending"))


# The audit of the form


def severities(text: str, location: str) -> list[Severity]:
    return [finding.severity for finding in structural_findings(text) if finding.location == location]


RISKS = "A clock that jumps back must not stop all callers."
WEAK = {
    "empty section": "",
    "only an italic placeholder": "*what could go wrong here*",
    "starts with a parenthesis": "(to be written by somebody)",
    "fewer than 10 characters": "None yet.",
}


def a_section_that_says_nothing_is_medium(name: str) -> None:
    assert severities(DRAFTED, "## Risks") == []
    assert severities(DRAFTED.replace(RISKS, WEAK[name]), "## Risks") == [Severity.MEDIUM]


rows("structural audit", a_section_that_says_nothing_is_medium, list(WEAK))


@row("structural audit", "missing section")
def what_is_missing_blocks() -> None:
    assert severities(DRAFTED.replace("## Risks", "## Other"), "## Risks") == [Severity.BLOCKING]


@row("structural audit", "changes without a file")
def changes_that_name_no_file_are_medium() -> None:
    assert severities(NO_FILES.replace("`", ""), "## Changes") == [Severity.MEDIUM]


@row("structural audit", "example paths")
def example_paths_are_medium() -> None:
    assert severities(DRAFTED.replace("gateway/limit.py", "path/to/limit.py"), "## Changes") == [
        Severity.MEDIUM
    ]


@row("structural audit", "status CLOSED")
def a_closed_plan_is_a_small_matter() -> None:
    closed = plans.with_status(HEADED.format(DRAFTED.partition("\n")[2]), PlanStatus.CLOSED)
    assert [finding.severity for finding in structural_findings(closed)] == [Severity.MINOR]


DERIVED: dict[str, tuple[str, str, int]] = {
    "derivation: high": (DRAFTED.replace("## Risks", "## Other"), "blocking", 1),
    "derivation: medium": (DRAFTED.replace(RISKS, ""), "medium", 1),
    "derivation: concerns": (
        plans.with_status(HEADED.format(DRAFTED.partition("\n")[2]), PlanStatus.CLOSED),
        "minor",
        0,
    ),
    "derivation: none": (DRAFTED, "none", 0),
}


def the_worst_decides_and_a_medium_of_the_form_loops(name: str) -> None:
    from click.testing import CliRunner

    from planforge.interfaces.cli.commands.plan.form import audit

    text, severity, loops = DERIVED[name]
    found: list[Finding] = list(structural_findings(text))
    assert ((worst(found) or Severity.SUGGESTION).value if found else "none") == severity
    said = CliRunner().invoke(audit, ["-", "--structural", "--json"], input=text)
    assert (json.loads(said.output)["max_severity"], json.loads(said.output)["loops"]) == (
        severity,
        bool(loops),
    )


rows("structural audit", the_worst_decides_and_a_medium_of_the_form_loops, list(DERIVED))


# The badge of a run


MADE, AUDITED = ("implement", "done"), ("audit", "done")
BADGES: dict[str, tuple[list[tuple[str, str]], str]] = {
    "no phases": ([], "pending"),
    "any fail": ([("implement", "failed"), AUDITED], "failed"),
    "not all terminal": ([MADE, ("audit", "pending")], "pending"),
    "all skipped": ([("implement", "skipped"), ("audit", "skipped")], "skipped"),
    "build or test, and audit": ([MADE, AUDITED], "verified"),
    "audit only": ([("read", "done"), AUDITED], "audited"),
    "some skipped": ([MADE, ("audit", "skipped")], "skipped"),
    "else": ([MADE], "pending"),
}


def a_run_state_is_derived(name: str) -> None:
    phases, expected = BADGES[name]
    assert badges.badge(phases) == expected


rows("verification evidence", a_run_state_is_derived)


def test_the_kinds_of_phases_are_those_of_the_document() -> None:
    assert [kind.value for kind in PhaseKind] == ROWS["phase kinds"]
