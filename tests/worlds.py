"""
A world for flows: it answers every effect the way real performers would, from a few lists.

Agents say what they are told to say; commits, trees and branches are names; the
check passes for the trees it is told to pass. Nothing here does anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from planforge.documents.phases import Phase, PhaseKind
from planforge.documents.plan import content_hash
from planforge.errors import AgentFailed, CannotPerform, LeaseLost
from planforge.kernel import effects
from planforge.kernel.effects import AgentAnswer, Effect
from planforge.kernel.events import ContextSource
from planforge.kernel.evidence import Counts, Evidence, Outcome
from planforge.kernel.tokens import TokenState
from planforge.workflows import prompts
from planforge.workflows.attempt import Change
from planforge.workflows.context import Prompt

PLAN = """\
# Plan: Rate limits

## Objective

Callers must not be able to flood the service with requests.

## Scope

The gateway and nothing else.

## Changes

- `gateway/limit.py` — a token bucket for each caller.
- `tests/test_limit.py` — tests of the bucket.
- `gateway/clock.py` — a clock that tests can set.
- `tests/test_clock.py` — tests of the clock.

## Risks

A clock that jumps back must not stop all callers.

## Testing

Run the unit tests; each new module has its own.
"""

BLOCKING = (
    '```json\n{"maxSeverity": "blocking", "concerns": [{"title": "no clock", "severity": "blocking"}]}\n```'
)
MEDIUM = (
    '```json\n{"maxSeverity": "medium", "concerns": [{"title": "no metrics", "severity": "medium"}]}\n```'
)
CLEAN = '```json\n{"maxSeverity": "none", "concerns": []}\n```'

BASE = "base"


def change(files: tuple[str, ...], **more: object) -> Change:
    """The change that a phase of a plan asks for."""
    phase = Phase(
        id="phase-1",
        title="Limit callers",
        kind=PhaseKind.IMPLEMENT,
        files=files,
        depends_on=(),
        change_spec="- `gateway/limit.py` — a bucket",
    )

    def asked(attempt: int, problem: str) -> Prompt:
        return prompts.implement(
            "plan-007", phase, attempt=attempt, objective="No floods", notes="", problem=problem
        )

    made = Change(
        plan="plan-007",
        run="run-001",
        step=phase.id,
        title=phase.title,
        base=BASE,
        files=files,
        prompt=asked,
        content="content",
    )
    return msgspec.structs.replace(made, **more)


def versions(text: str) -> list[str]:
    """The text and revisions of it, each another one."""
    return [text, *(f"{text.rstrip()} Version {number}.\n" for number in range(2, 9))]


class World:
    """Answers effects. `says` lists what each role says, in turn; the last one is said from then on."""

    def __init__(self, **says: Sequence[str | CannotPerform]) -> None:
        self.says = {role: list(said) for role, said in says.items()}
        self.prompts: list[tuple[str, str]] = []
        self.text = ""
        self.edits: dict[int, str] = {}
        """What somebody makes of the plan file before it is read for the n-th time."""
        self.reads = 0
        self.approved: set[str] = set()
        self.phases = effects.KnownPhases(statuses={})
        """How far phases had come before the run."""
        self.tip = BASE
        self.moves: list[str] = []
        """Where somebody else moves the branch, one move for each landing that is tried."""
        self.conflicts: tuple[str, ...] = ()
        self.changed: dict[str, tuple[str, ...]] = {}
        """The files an agent changes, by step; by default those of the step."""
        self.outcomes: list[Outcome] = []
        """How the checks end, in turn; then they pass."""
        self.former: list[Outcome] = []
        """How the tests of before end, in turn; then they pass."""
        self.commits = 0
        self.trees: dict[str, str] = {}
        """The trees of commits, by name, where two have the same."""
        self.fences = 0
        self.lost: set[int] = set()
        """Fences whose lease is gone when something is to land under them."""
        self.inspections: list[effects.Inspection] = []
        """What is seen of each change, in turn; then nothing."""
        self.decisions: list[effects.Decision] = []
        """What a person says about protected changes, in turn; then yes."""
        self.tier = "balanced"
        """The tier of every role."""
        self.done: tuple[effects.DoneStep, ...] = ()
        """What steps did that are told of, if they are asked for."""
        self.says_to_person: list[str] = []
        """What a person answers, in turn; then the first of the options."""
        self.documents: dict[str, str] = {}
        """The documents of a task, by name."""
        self.fields: dict[str, str | None] = {"task.status": "draft"}
        """What records say."""
        self.tools = True
        """Whether agents can read files."""
        self.files: tuple[str, ...] = ()
        """What there is to be read."""
        self.full = 0
        """How many answers of developers are cut off because their context is full."""

    def __call__(self, effect: Effect[Any]) -> object:
        """Answer one effect."""
        answer: object = getattr(self, f"on_{type(effect).__name__}")(effect)
        return answer

    def on_RunAgent(self, effect: effects.RunAgent) -> object:  # noqa: N802
        self.prompts.append((effect.role, effect.prompt))
        said = self.says.get(effect.role, ["done"])
        answer = said.pop(0) if len(said) > 1 else said[0]
        if isinstance(answer, CannotPerform):
            return answer
        if effect.role == "developer" and self.full:
            self.full -= 1
            context = TokenState(used=100_000, threshold=100_000, estimated=False)
            return AgentAnswer(
                agent="scripted",
                text="so far",
                stop_reason=effects.HANDED_OVER,
                tool_calls=0,
                usage=None,
                context=context,
            )
        return AgentAnswer(agent="scripted", text=answer, stop_reason="end_turn", tool_calls=0, usage=None)

    def on_GatherContext(self, effect: effects.GatherContext) -> object:  # noqa: N802
        output = "audit" if effect.role == "auditor" else ""
        known = tuple(step for step in self.done if step.step in effect.steps)
        role = effects.GatheredPart(name="role", text=f"You are the {effect.role}.")
        architecture = effects.GatheredPart(name="architecture", text="All is one.")
        return effects.Gathered(
            tier=self.tier,
            output=output,
            parts=(role, architecture),
            summaries="delta",
            steps=known,
            budgets={"closure": 500, "summaries": 500, "task": 5000},
            tools=self.tools,
        )

    def on_Survey(self, effect: effects.Survey) -> object:  # noqa: N802
        return effects.Surveyed(terms=("limit",), paths=self.files)

    def on_ReadFiles(self, effect: effects.ReadFiles) -> object:  # noqa: N802
        found = [path for path in effect.paths if path in self.files]
        text = "\n".join(f"text of {path}" for path in found)
        sources = tuple(ContextSource(path=path, hash="h") for path in found)
        return effects.GatheredPart(name="files", text=text, sources=sources)

    def on_WritePlan(self, effect: effects.WritePlan) -> object:  # noqa: N802
        self.text = effect.text
        return effects.DocumentText(text=effect.text, object=f"object-{len(effect.text)}")

    def on_ReadPlan(self, effect: effects.ReadPlan) -> object:  # noqa: N802
        self.reads += 1
        self.text = self.edits.get(self.reads, self.text)
        return effects.DocumentText(text=self.text, object="object")

    def on_TakeApproval(self, effect: effects.TakeApproval) -> object:  # noqa: N802
        if effect.content not in self.approved:
            return CannotPerform("not approved")
        self.approved.remove(effect.content)
        return effects.Approval(actor="ada", content=effect.content)

    def on_GiveApproval(self, effect: effects.GiveApproval) -> object:  # noqa: N802
        self.approved.add(effect.content)
        return effects.Approval(actor=effect.actor, content=effect.content)

    def on_ReadPhases(self, effect: effects.ReadPhases) -> object:  # noqa: N802
        return msgspec.structs.replace(self.phases, parallel=effect.parallel, max_files=effect.max_files)

    def on_ShowPhases(self, effect: effects.ShowPhases) -> None:  # noqa: N802
        """Nothing to answer."""

    def on_OpenWorktree(self, effect: effects.OpenWorktree) -> object:  # noqa: N802
        return effects.Checkout(commit=effect.commit, tree=f"tree of {effect.commit}")

    def on_OpenBranch(self, effect: effects.OpenBranch) -> object:  # noqa: N802
        del effect
        return effects.Tip(commit=self.tip)

    def on_Commit(self, effect: effects.Commit) -> object:  # noqa: N802
        files = self.changed.get(effect.step, FILES.get(effect.step, ()))
        return self._patch(effect.parent, files)

    def on_Rebase(self, effect: effects.Rebase) -> object:  # noqa: N802
        patch = self._patch(effect.onto, FILES.get(effect.step, ()))
        if not self.conflicts:
            return patch
        return effects.Patch(
            commit=effect.commit,
            tree="tree",
            parent=effect.onto,
            files=patch.files,
            changed_lines=1,
            conflicts=self.conflicts,
        )

    def _patch(self, parent: str, files: tuple[str, ...]) -> effects.Patch:
        self.commits += 1
        name = f"commit-{self.commits}"
        return effects.Patch(
            commit=name,
            tree=self.trees.get(name, f"tree of {name}"),
            parent=parent,
            files=files,
            changed_lines=10 * len(files),
        )

    def on_RunCheck(self, effect: effects.RunCheck) -> object:  # noqa: N802
        outcome = self.outcomes.pop(0) if self.outcomes else Outcome.PASS
        return evidence(outcome, tree=effect.tree)

    def on_RunFormerTests(self, effect: effects.RunFormerTests) -> object:  # noqa: N802
        outcome = self.former.pop(0) if self.former else Outcome.PASS
        return evidence(outcome, tree=f"{effect.commit} with the tests of {effect.parent}")

    def on_Inspect(self, effect: effects.Inspect) -> object:  # noqa: N802
        del effect
        return self.inspections.pop(0) if self.inspections else effects.Inspection()

    def on_PassGate(self, effect: effects.PassGate) -> object:  # noqa: N802
        del effect
        yes = effects.Decision(approved=True, actor="ada", reason="")
        return self.decisions.pop(0) if self.decisions else yes

    def on_ClaimLease(self, effect: effects.ClaimLease) -> object:  # noqa: N802
        self.fences += 1
        return effects.Leased(holder=effect.holder, fence=self.fences)

    def on_ReleaseLease(self, effect: effects.ReleaseLease) -> None:  # noqa: N802
        """Nothing to answer."""

    def on_HandOver(self, effect: effects.HandOver) -> object:  # noqa: N802
        self.fences += 1
        lease = effects.Leased(holder=f"{effect.step}.{effect.turn + 1}", fence=self.fences)
        turn = effect.turn
        return effects.Handover(
            handoff=f"handoff {turn}", text=f"state {turn}", commit=f"part-{turn}", lease=lease
        )

    def on_Land(self, effect: effects.Land) -> object:  # noqa: N802
        if effect.lease.fence in self.lost:
            return LeaseLost("it cannot land: its lease ran out")
        if self.moves:
            self.tip = self.moves.pop(0)
        if self.tip != effect.expected:
            return effects.Landing(landed=False, tip=self.tip)
        self.tip = effect.commit
        return effects.Landing(landed=True, tip=self.tip)

    def on_AskHuman(self, effect: effects.AskHuman) -> object:  # noqa: N802
        answer = self.says_to_person.pop(0) if self.says_to_person else effect.answers[0].name
        return effects.Reply(answer=answer, actor="ada")

    def on_WriteDocument(self, effect: effects.WriteDocument) -> object:  # noqa: N802
        self.documents[effect.name] = effect.text
        return effects.DocumentText(text=effect.text, object=f"object of {effect.text}")

    def on_ReadDocument(self, effect: effects.ReadDocument) -> object:  # noqa: N802
        text = self.documents.get(effect.name, "")
        return effects.DocumentText(text=text, object=f"object of {text}" if text else "")

    def on_ReadFacts(self, effect: effects.ReadFacts) -> object:  # noqa: N802
        sizes = {path: len(self.documents.get(path.rpartition("/")[2], "")) for path in effect.paths}
        fields = {name: self.fields[name] for name in effect.fields if name in self.fields}
        return effects.FoundFacts(sizes={path: size for path, size in sizes.items() if size}, fields=fields)

    def on_MakeSample(self, effect: Effect[Any]) -> object:  # noqa: N802
        del effect
        return effects.Tip(commit=BASE)

    def on_MarkPlan(self, effect: effects.MarkPlan) -> None:  # noqa: N802
        """Nothing to answer."""

    def on_CloseWorktree(self, effect: effects.CloseWorktree) -> None:  # noqa: N802
        """Nothing to answer."""


FILES = {
    "phase-1": ("gateway/limit.py", "tests/test_limit.py"),
    "phase-2": ("gateway/clock.py", "tests/test_clock.py"),
}


def evidence(outcome: Outcome, *, tree: str = "tree") -> Evidence:
    """Evidence of ten tests, one of which fails if the outcome is a failure."""
    failed = int(outcome is Outcome.FAIL)
    counts = Counts(total=10, passed=10 - failed, failed=failed, skipped=0)
    return Evidence(
        check="tests",
        outcome=outcome,
        reason=f"as told: {outcome.value}",
        command=("test",),
        exit_code=failed,
        counts=None if outcome is Outcome.CANNOT_TELL else counts,
        failing=("test_one",) if failed else (),
        commit="commit",
        tree=tree,
        output="object",
        seconds=0.1,
    )


def approved(world: World, text: str) -> World:
    """The world with `text` as its plan, approved."""
    world.text = text
    world.approved.add(content_hash(text))
    return world


def failing_agent(message: str = "agent `x` gave an empty answer") -> AgentFailed:
    """What an agent that gives no proper answer looks like to a flow."""
    return AgentFailed(message)
