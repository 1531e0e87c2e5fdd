"""The phases file with everything in it, what is read from it, and where it parts from the ledger."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planforge.documents.phases import (
    Phase,
    PhaseDetail,
    PhaseKind,
    decompose,
    differences,
    read_phases,
    render_phases,
    signature,
)

PLAN = "## Changes\n\n- `a/x.go` — one\n  **Status:** done\n- `b/y.go` — two\n"
PHASES = decompose(PLAN)
STATUSES = {"phase-1": "done", "phase-2": "failed"}


def rendered(
    statuses: Mapping[str, str] = STATUSES, details: Mapping[str, PhaseDetail] | None = None, **more: str
) -> str:
    updated = more.get("updated")
    content = more.get("content", "0123456789abcdef" * 4)
    return render_phases(
        "plan-017", "p.md", content, "2026-02-12", PHASES, statuses, updated=updated, details=details
    )


def test_every_field_that_a_phase_has_is_shown_and_none_that_it_has_not() -> None:
    details = {
        "phase-1": PhaseDetail(
            commit="a1b2c3d",
            modified=("a/x.go", "a/new.go"),
            evidence="12 tests passed",
            output="\n Done.\nMore\n",
        ),
        "phase-2": PhaseDetail(error="2 tests failed:\n## phase-9: not one\n**Status:** done"),
    }
    assert rendered(details=details, updated="2026-02-13") == (
        "# Phases: plan-017 — p.md\n"
        "Created: 2026-02-12\n"
        "Updated: 2026-02-13\n"
        "Plan hash: 0123456789abcdef\n"
        "\n"
        "## phase-1: Implement a/x.go\n"
        "**Kind:** implement\n"
        "**Status:** done\n"
        "**Context:** `a/x.go`\n"
        "**Depends on:** (none)\n"
        "**Commit:** `a1b2c3d`\n"
        "**Modified:** `a/x.go`, `a/new.go`\n"
        "**Evidence:** 12 tests passed\n"
        "**Output:** Done.\n"
        "\n"
        "Implement changes for: `a/x.go`\n"
        "\n"
        "**Change spec:**\n"
        "- `a/x.go` — one\n"
        "  **Status:** done\n"
        "\n"
        "---\n"
        "\n"
        "## phase-2: Implement b/y.go\n"
        "**Kind:** implement\n"
        "**Status:** failed\n"
        "**Context:** `b/y.go`\n"
        "**Depends on:** phase-1\n"
        "**Error:** 2 tests failed: ## phase-9: not one **Status:** done\n"
        "\n"
        "Implement changes for: `b/y.go`\n"
        "\n"
        "**Change spec:**\n"
        "- `b/y.go` — two\n"
        "\n"
        "---\n"
        "\n"
        "## phase-3: Post-implementation audit\n"
        "**Kind:** audit\n"
        "**Status:** pending\n"
        "**Context:** `a/x.go`, `b/y.go`\n"
        "**Depends on:** phase-1, phase-2\n"
        "\n"
        "Audit all changes against the plan.\n"
        "\n"
        "---\n"
    )


@given(said=st.text(), names=st.lists(st.text(), max_size=3))
def test_nothing_that_an_agent_says_begins_a_phase_or_changes_a_status(said: str, names: list[str]) -> None:
    detail = PhaseDetail(commit=said, error=said, evidence=said, output=said, modified=tuple(names))
    text = rendered(details=dict.fromkeys(["phase-1", "phase-2", "phase-3"], detail))
    assert read_phases(text) == (("phase-1", "done"), ("phase-2", "failed"), ("phase-3", "pending"))
    assert differences(text.replace("\n", "\r\n"), text) == ()


def test_what_cannot_be_seen_is_not_shown() -> None:
    text = rendered(details={"phase-2": PhaseDetail(error="\x1b[31mred\x07 \u202eend", output="\0\nsaid")})
    assert "**Error:** [31mred end\n**Output:** said\n" in text
    assert text.replace("\n", "").isprintable()


def test_a_long_error_is_cut() -> None:
    text = rendered(details={"phase-2": PhaseDetail(error="x" * 5000)})
    (line,) = (line for line in text.splitlines() if line.startswith("**Error:**"))
    assert len(line) < 330
    assert line.endswith("…")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("## phase-1: x\n**Status:** done\n", (("phase-1", "done"),)),
        ("\ufeff## phase-1: x\r\n\r\n**Kind:** y\r\n\r\n**Status:**   DONE  \r\n", (("phase-1", "done"),)),
        ("## Phase-2: x\n**Status:** odd\n", (("phase-2", "odd"),)),
        ("## phase-1: x\n\nText.\n\n**Status:** done\n", (("phase-1", ""),)),
        ("## phase-1: x\n**Change spec:**\n**Status:** done\n", (("phase-1", ""),)),
        ("## phase-1\n**Status:** done\n### phase-2: x\n# phase-3: x\n## Notes\n**Status:** done\n", ()),
        ("```\n## phase-1: x\n**Status:** done\n```\n", ()),
        ("## phase-1: x\n```\n**Status:** done\n```\n", (("phase-1", ""),)),
        ("## phase-1: x\n**Status:** done\n**Status:** failed\n", (("phase-1", "done"),)),
    ],
)
def test_only_headings_of_phases_begin_one_and_only_its_preamble_has_its_status(
    text: str, found: tuple[tuple[str, str], ...]
) -> None:
    assert read_phases(text) == found


@given(st.text() | st.lists(st.sampled_from(["## phase-1: x", "**Status:** done", "```", ""])).map("\n".join))
def test_any_text_is_read(text: str) -> None:
    assert read_phases(text) == read_phases(text)
    differences(text, rendered())


def test_a_file_that_nobody_touched_does_not_differ() -> None:
    text = rendered(updated="2026-02-13")
    assert differences(text, rendered(updated="2026-03-01")) == ()
    assert differences(text.replace("\n", "\r\n"), text) == ()


def test_every_edit_is_said_in_words() -> None:
    truth = rendered()
    edited = truth.replace("**Status:** failed", "**Status:** done")
    assert differences(edited, truth) == (
        "edited status of `phase-2`: the file says done, the ledger says failed",
    )
    assert differences(truth.replace("**Status:** failed\n", ""), truth) == (
        "edited status of `phase-2`: the file says nothing, the ledger says failed",
    )
    assert differences(truth[: truth.index("## phase-3")], truth) == (
        "removed: `phase-3` is in the ledger and not in the file",
    )
    assert differences(truth + "\n## phase-9: mine\n**Status:** done\n", truth) == (
        "added: `phase-9` is in the file and not in the ledger",
    )
    assert differences(truth + "\n## phase-1: again\n", truth) == ("`phase-1` is in the file more than once",)
    assert differences(truth.replace("- `b/y.go` — two", "- `b/y.go` — three"), truth) == (
        "edited text of `phase-2`: the plan is what is carried out, not this file",
    )
    assert differences(truth.replace("0123456789abcdef", "f" * 16), truth) == (
        "edited plan hash: the file says ffffffffffffffff, the ledger says 0123456789abcdef",
    )
    assert len(differences("", truth)) == 4


PHASE = Phase(
    id="phase-1",
    title="Implement a, b",
    kind=PhaseKind.IMPLEMENT,
    files=("a/x.go", "b/y.go"),
    depends_on=(),
    change_spec="- one",
)


def test_a_signature_is_sixteen_digits_and_the_same_wherever_the_phase_stands() -> None:
    same = msgspec.structs.replace(PHASE, id="phase-7", depends_on=("phase-1", "phase-3"))
    assert signature(PHASE) == signature(same)
    assert len(signature(PHASE)) == 16
    assert int(signature(PHASE), 16)


def test_the_order_of_the_files_counts_only_as_far_as_it_is_said() -> None:
    audit = msgspec.structs.replace(PHASE, kind=PhaseKind.AUDIT)
    assert signature(audit) == signature(msgspec.structs.replace(audit, files=("b/y.go", "a/x.go")))


@pytest.mark.parametrize(
    "changed",
    [
        {"title": "Implement a"},
        {"kind": PhaseKind.READ},
        {"files": ("a/x.go",)},
        {"files": ("a/x.go, b/y.go",)},
        {"change_spec": "- two"},
        {"title": "Implement a, b- one", "change_spec": ""},
    ],
    ids=" ".join,
)
def test_whatever_a_phase_says_is_in_its_signature(changed: dict[str, object]) -> None:
    assert signature(PHASE) != signature(msgspec.structs.replace(PHASE, **changed))
