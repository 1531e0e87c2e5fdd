"""What is gathered for an agent: from the exact commit, bounded, with the hash of every text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from planforge.app.context import gather
from planforge.app.project import Project
from planforge.documents.phases import Phase, PhaseKind
from planforge.documents.plan import REQUIRED
from planforge.errors import InvalidInput
from planforge.kernel.effects import Access, GatherContext, Gathered, GatheredPart
from planforge.kernel.events import (
    ItemOpened,
    PatchApplied,
    PatchProposed,
    PlannedStep,
    StepCompleted,
    StepStarted,
    VerifyOk,
)
from planforge.kernel.evidence import Outcome
from planforge.kernel.tokens import estimate
from planforge.rules.commands import actions
from planforge.rules.findings import MEANINGS, Severity
from planforge.rules.pipelines import Pipeline, Source, Stage
from planforge.rules.verdicts import KINDS, module, parse_module, polish
from planforge.workflows import chat, prompts, stage_prompts
from planforge.workflows.context import Prompt, compose
from planforge.workflows.course import Course, PipelineRequest, Player
from repositories import commit, repository, write
from worlds import evidence

SETTINGS = '[check]\ncommand = ["python3", "-m", "unittest"]\n\n[agents]\ndefault = "rehearsal"\n'
STANDARDS = "# Standards\n\nUse tabs.\n"


@pytest.fixture
def place(tmp_path: Path) -> Project:
    files = {
        "AGENTS.md": STANDARDS,
        "docs/architecture.md": "# All of it\n\nIt is one program.\n\n## Key facts\n\n- It is small.\n",
        "app/main.py": "print(1)\n",
        "app/deep/AGENTS.md": "Deeper.\n",
        "planforge.toml": SETTINGS,
    }
    return Project.create(repository(tmp_path / "r", files))


def gathered(place: Project, role: str = "developer", *, base: str = "HEAD", **more: Any) -> Gathered:
    # The settings are read once for each project, as for each command.
    fresh = Project(place.root)
    return gather.gather(fresh, GatherContext(role=role, plan="plan-001", base=base, **more))


def part(found: Gathered, name: str) -> GatheredPart:
    return next(part for part in found.parts if part.name == name)


def settings(place: Project, text: str) -> None:
    """Add to the settings; the table that is open is `agents`."""
    with (place.root / "planforge.toml").open("a") as file:
        file.write(text)


def test_everything_that_a_role_wants_is_gathered_and_nothing_else(place: Project) -> None:
    names = {role: [part.name for part in gathered(place, role).parts] for role in ("developer", "reviser")}
    assert names["developer"] == ["role", "standards", "architecture", "overlay"]
    assert names["reviser"] == ["role", "standards", "overlay"]
    found = gathered(place, "auditor")
    assert (found.tier, found.output, found.summaries) == ("heavy", "audit", "delta")


def test_standards_are_those_of_the_commit_with_their_hash_and_their_bounds(place: Project) -> None:
    base = place.git.commit_of("HEAD")
    commit(place.root, {"AGENTS.md": "Use spaces.\n"}, "other standards")
    write(place.root, {"AGENTS.md": "Obey me.\n"})
    found = part(gathered(place, base=base), "standards")
    digest = hashlib.sha256(STANDARDS.encode()).hexdigest()
    assert [(source.path, source.hash) for source in found.sources] == [("AGENTS.md", digest)]
    assert f"===== begin AGENTS.md {digest[:16]} =====\n# Standards\n\nUse tabs.\n" in found.text
    assert "Obey me" not in found.text
    assert "Use spaces" in part(gathered(place), "standards").text


def test_standards_nearer_to_the_work_come_along(place: Project) -> None:
    assert "Deeper." not in part(gathered(place), "standards").text
    found = part(gathered(place, files=("app/deep/x.py",)), "standards")
    assert [source.path for source in found.sources] == ["AGENTS.md", "app/deep/AGENTS.md"]


def test_the_architecture_is_that_of_the_documents_that_the_settings_name(place: Project) -> None:
    found = part(gathered(place), "architecture")
    assert found.text.startswith("# All of it (`docs/architecture.md`)\n\nIt is one program.")
    assert [source.path for source in found.sources] == ["docs/architecture.md"]
    settings(place, '[context]\ndocuments = ["AGENTS.md"]\n')
    assert part(gathered(place), "architecture").text.startswith("# Standards (`AGENTS.md`)")


def test_the_overlay_is_about_a_kilobyte_with_checks_and_files(place: Project) -> None:
    write(place.root, {f"app/module_{number:03d}.py": "" for number in range(300)})
    commit(place.root, {}, "many")
    found = part(gathered(place, files=("app/new.py",)), "overlay")
    assert "- checked by tests: `python3 -m unittest`" in found.text
    assert "- in app: deep/, main.py, module_000.py" in found.text
    assert "more" in found.text
    assert len(found.text) <= 1024


@pytest.mark.parametrize(
    ("name", "tokens"), [("role", 80), ("standards", 150), ("architecture", 80), ("overlay", 60)]
)
def test_each_part_is_cut_to_its_budget_and_says_what_is_missing(
    place: Project, name: str, tokens: int
) -> None:
    long = "".join(f"Sentence number {number}.\n\n" for number in range(60))
    documents = {
        "AGENTS.md": f"# S\n\n{long}",
        "docs/architecture.md": f"# A\n\nIt.\n\n## Key facts\n\n{long}",
    }
    commit(place.root, documents | {f"app/{letter}/x.py": "" for letter in "abcdefghijklmno"}, "long")
    files = tuple(f"app/{letter}/x.py" for letter in "abcdefghijklmno")
    assert {part.left_out for part in gathered(place, files=files).parts} == {""}
    settings(place, f"[context]\n{name} = {tokens}\n")
    found = gathered(place, files=files)
    assert [each.name for each in found.parts if each.left_out] == [name]
    assert "tokens" in part(found, name).left_out
    assert 0 < estimate(len(part(found, name).text)) <= tokens
    assert "[left out here: " in part(found, name).text


def test_a_part_with_no_budget_is_left_out_and_named(place: Project) -> None:
    settings(place, "[context]\nstandards = 0\narchitecture = 0\n")
    found = gathered(place)
    assert (part(found, "standards").text, part(found, "architecture").text) == ("", "")
    assert part(found, "standards").left_out == "of AGENTS.md: 3 lines, about 6 tokens"
    assert "tokens" in part(found, "architecture").left_out


def test_inline_mode_gives_the_whole_texts(place: Project) -> None:
    short = part(gathered(place), "role")
    settings(place, 'persona_mode = "inline"\n')
    whole = part(gathered(place), "role")
    assert len(whole.text) > 2 * len(short.text)
    assert whole.sources == short.sources


# Earlier steps


def test_what_earlier_steps_did_comes_from_the_ledger(place: Project) -> None:
    steps = tuple(
        PlannedStep(
            step=f"phase-{number}", title=f"Part {number}", kind="implement", files=("a.py",), depends_on=()
        )
        for number in (1, 2)
    )
    where: dict[str, Any] = {"plan": "plan-001", "step": "phase-1", "attempt": 1}
    seen = evidence(Outcome.PASS)
    events = [
        ItemOpened(item="plan-001", title="t", request="r", path="", steps=steps),
        StepStarted(**where, base="b"),
        PatchProposed(**where, commit="c", tree="t", files=("a.py", "b.py"), claim="It is in.", agent="x"),
        VerifyOk(**where, evidence=seen),
        PatchApplied(**where, content="c", scope=(), branch="b", commit="c", tree="t", parent="p"),
        StepCompleted(plan="plan-001", step="phase-1", attempts=1, score=None),
    ]
    place.ledger.append("plan-001", events, expected=0)
    place.ledger.close()
    found = gathered(place, steps=("phase-1",)).steps
    assert [(step.step, step.title, step.files, step.claim, step.evidence) for step in found] == [
        ("phase-1", "Part 1", ("a.py", "b.py"), "It is in.", seen.reason)
    ]
    overlay = part(gathered(place, steps=("phase-1",)), "overlay").text
    assert "- steps: phase-1 done; phase-2 pending" in overlay
    # Not what happens to be so at the moment, but what whoever asks knows.
    assert "- steps: phase-1, phase-2 pending" in part(gathered(place), "overlay").text


# Roles


def test_roles_of_the_checkout_stand_in_the_place_of_ours(place: Project) -> None:
    write(place.root, {"planforge/roles/roles.toml": '[auditor]\ntier = "light"\n'})
    assert gathered(place, "auditor").tier == "light"
    assert gather.tier_of(Project(place.root), "auditor") == "light"
    assert gather.tier_of(Project(place.root), "nobody") == "balanced"


def test_a_link_out_of_the_repository_is_not_followed(place: Project, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "roles.toml").write_text("")
    (place.root / "planforge").mkdir()
    (place.root / "planforge" / "roles").symlink_to(tmp_path / "outside")
    with pytest.raises(InvalidInput, match=r"cannot read `planforge/roles/roles\.toml`"):
        gather.library(place)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ('[developer]\naccess = "read"\n', "may only read, but has to write"),
        ('[developer]\npersona = "nobody"\n', "role `developer` wants `planforge/roles/personas/nobody.md`"),
    ],
)
def test_a_role_that_cannot_be_played_is_refused(place: Project, table: str, problem: str) -> None:
    write(place.root, {"planforge/roles/roles.toml": table})
    with pytest.raises(InvalidInput) as error:
        gather.require_roles(place, {"developer": Access.WRITE})
    assert problem in error.value.message


def test_a_setting_for_a_role_that_there_is_not_is_refused(place: Project) -> None:
    settings(place, 'roles.auditr = "rehearsal"\n')
    with pytest.raises(InvalidInput, match=r"`agents\.roles\.auditr` names no role"):
        gather.require_roles(Project(place.root), {"developer": Access.WRITE})


def test_a_reviser_that_does_not_know_the_conversation_is_told_what_the_drafter_was(place: Project) -> None:
    asked = GatherContext(role="reviser", plan="plan-001", base="HEAD")
    names = {
        knows: [part.name for part in gather.gather(place, asked, knows=knows).parts]
        for knows in (True, False)
    }
    assert names[True] == ["role", "standards", "overlay"]
    assert names[False] == ["role", "standards", "architecture", "overlay"]


# What a parser relies on

NEEDED = {
    "plan": ("# Plan:", *(f"## {name}" for name in REQUIRED), "its path in backticks"),
    "choice": ("one in each line", "NONE"),
    "chat": (actions.LABEL, *actions.FORMS),
    "audit": ('"maxSeverity"', '"concerns"', '"title"', '"severity"', "none"),
    "review": ("**Verdict:** Approved", "**Verdict:** Revision Required"),
    "module": ("Verdict: APPROVE", "Verdict: REJECT", "Severity", "File", "Issue", "Suggested Fix"),
    "polish": ('"issues"', '"severity"', '"description"', '"location"', '"recommendation"'),
}
SEVERITIES: dict[str, dict[str, Severity]] = {
    "audit": {severity.value: severity for severity in Severity},
    **{kind: {} for kind in ("plan", "choice", "chat", "review")},
    "module": module.SEVERITIES,
    "polish": polish.SEVERITIES,
}


def asked_of(role: str) -> Iterator[tuple[str, Prompt]]:
    """Everything that is asked and whose answer is parsed, with what it is read as."""
    draft = prompts.draft("plan-001", "r")
    yield "plan", draft
    yield "plan", prompts.revise("plan-001", 1, "# Plan: x", ())
    yield "choice", prompts.research(draft, ("a.py",))
    yield "chat", chat.prompt(chat.ChatRequest(text="t", base="b", state="s"))
    phase = Phase(id="phase-2", kind=PhaseKind.AUDIT, title="t", files=(), depends_on=(), change_spec="")
    yield "audit", prompts.audit("plan-001", 1, "# Plan: x", ())
    yield "audit", prompts.review("plan-001", phase, "# Plan: x")
    for kind in KINDS.keys() - {"sarif"}:
        stage = Stage(name="review", role=role, verdict=msgspec.convert(kind, Source), judges=("plan",))
        asked = PipelineRequest(
            task="task-001",
            title="t",
            request="r",
            run="run-001",
            path="docs/tasks/task-001",
            pipeline=Pipeline(name="one", stages=(stage,)),
            players={role: Player(persona="p", access=Access.READ)},
            base="b",
            base_tree="t",
        )
        yield kind, stage_prompts.stage(Course(asked), stage, 1, {})


@pytest.mark.parametrize("mode", ["reference", "inline"])
def test_whoever_is_asked_is_told_all_that_its_answer_is_parsed_by(place: Project, mode: str) -> None:
    settings(place, f'persona_mode = "{mode}"\n[context]\nrole = 0\ntask = 500\n')
    for role in gather.library(place).roles:
        found = gathered(place, role)
        for kind, prompt in asked_of(role):
            told = compose(prompt, found).text
            assert all(each in told for each in NEEDED[kind]), (role, kind)
            for word, severity in SEVERITIES[kind].items():
                assert f"- `{word}`: {MEANINGS[severity]}." in told, (role, kind)
            assert ("What each severity means" in told) is bool(SEVERITIES[kind])


def test_a_table_as_a_reviewer_of_a_module_is_told_to_write_it_is_read_whole() -> None:
    form = stage_prompts.FORMS["module"]
    listed = " ".join(form.partition("the columns ")[2].partition(". ")[0].split())
    columns = listed.replace(" and ", ", ").split(", ")
    names = [column.partition(" (")[0] for column in columns]
    row = {"Severity": "required", "File": "a.py:3", "Issue": "no check", "Suggested Fix": "check"}
    lines = [names, ["---"] * len(names), [row[name] for name in names]]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    (found,) = parse_module(f"{table}\n\nVerdict: REJECT\n").findings
    assert (found.title, found.location, found.recommendation) == ("no check", "a.py:3", "check")
