"""
A task on its way through a pipeline: what there is of it, who plays whom, what it was told.

Pure bookkeeping for `pipeline.py` and `stages.py`; it asks for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from planforge.kernel.effects import Access, DocumentText, DoneStep
from planforge.kernel.events import Judged
from planforge.kernel.objects import address
from planforge.rules.findings import Finding
from planforge.rules.gates.evaluation import VOID
from planforge.rules.loops import Loop
from planforge.rules.loops.policies import POLICIES, named
from planforge.rules.loops.revisions import Revisions
from planforge.rules.pipelines import Pipeline, Stage
from planforge.workflows.asking import Conversation

APPROVED = "approved"

ROOM = ("max_iterations", "cap", "ceiling")
"""What policies call the number of rounds that there may be."""


class Player(msgspec.Struct, frozen=True, kw_only=True):
    """A role as far as a pipeline has to know it."""

    persona: str
    access: Access


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage came to in an earlier run."""

    stage: str
    iteration: int
    verdict: str = ""
    judged: str = ""
    document: str = ""
    object: str = ""
    overridden: str = ""
    """Who let it pass in their own name and why, if somebody did."""


class PipelineRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which task goes through which pipeline, from where."""

    task: str
    title: str
    request: str
    run: str
    path: str
    """The directory of the task's documents."""
    pipeline: Pipeline
    players: dict[str, Player]
    """Every role that the pipeline names."""
    base: str
    base_tree: str
    attempts: int = 3
    """How often a change is tried before a person has to look."""
    handoffs: int = 0
    """How often the agent of one attempt may hand over."""
    escalate_after: int = 0
    """After how many attempts without progress the next one gets a heavy model, once; 0 is never."""
    status: str = "draft"
    start: str = ""
    """The stage to begin with; empty is the first."""
    rounds: int = 0
    """How many more revisions the first stage may ask for than it says."""
    commit: str = ""
    """The change that an earlier run left."""
    tree: str = ""
    standing: tuple[Standing, ...] = ()
    unlanded: str = ""
    """Why an earlier change of this task could not land; it is made anew."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a stage is come back to."""

    stage: str
    reason: str
    findings: tuple[Finding, ...] = ()


class Course:
    """What there is of a task now."""

    def __init__(self, request: PipelineRequest) -> None:
        self.request = request
        self.status = request.status
        self.commit = request.commit or request.base
        self.tree = request.tree or request.base_tree
        self.files: tuple[str, ...] = ()
        """What the change touches, as far as this run made it."""
        self.protected: tuple[str, ...] = ()
        self.former: tuple[str, ...] = ()
        """The files of tests that were there before and that the change did more to than add tests."""
        self.attempts: dict[str, int] = {}
        """How many attempts each stage has made in this run."""
        self.problem: Problem | None = None
        self.verdicts = {each.stage: (each.verdict, each.judged) for each in request.standing if each.verdict}
        self.overridden = {each.stage: each.overridden for each in request.standing if each.overridden}
        self.documents = {
            each.document: DocumentText(text="", object=each.object)
            for each in request.standing
            if each.document
        }
        self.told: list[DoneStep] = []
        """What the stages so far did, for those who come after."""
        if request.unlanded:
            title = "an earlier change did not land; make it anew on what is there now"
            self.told.append(
                DoneStep(step="land", title=title, files=(), claim="", evidence=request.unlanded)
            )
        self.stopped_at = ""
        """The stage to go on at, where that is not the one that it stopped at."""
        self.reason = ""
        """What the last stage came to."""
        self.refused = False
        """Whether a gate stopped it."""
        self._runs = {each.stage: each.iteration for each in request.standing}
        self._loops: dict[str, Loop] = {}
        self._talks: dict[str, Conversation] = {}
        self._revisions: dict[str, Revisions] = {}

    @property
    def changed(self) -> bool:
        """Whether there is a change."""
        return self.commit != self.request.base

    def begins(self, stage: Stage) -> int:
        """Count a stage that begins; how often it has."""
        self._runs[stage.name] = self._runs.get(stage.name, 0) + 1
        return self._runs[stage.name]

    def loop(self, stage: Stage) -> Loop:
        """The rounds of a stage that gives verdicts."""
        if stage.name not in self._loops:
            self._loops[stage.name] = Loop(named(stage.policy, self._limits(stage)))
        return self._loops[stage.name]

    def _limits(self, stage: Stage) -> dict[str, int | bool]:
        """The settings of a stage's policy, with the rounds that a person has added."""
        known = {
            field.name: field.default for field in msgspec.structs.fields(POLICIES[stage.policy].settings)
        }
        own: dict[str, int | bool] = {}
        if stage.policy == "max-iterations":
            own["max_iterations"] = stage.max_iterations
        given = own | stage.limits
        extra = self.request.rounds if stage.name == self.request.start else 0
        for name in ROOM:
            if name in known and extra:
                given[name] = given.get(name, known[name]) + extra
        return given

    def talk(self, stage: Stage) -> Conversation:
        """The conversation of whoever writes or reviews a document, over its rounds."""
        name = f"pipeline:{self.request.task}:{stage.name}"
        return self._talks.setdefault(stage.name, Conversation(name))

    def repeated(self, stage: Stage, written: str) -> str:
        """Why what a stage has written is no revision, if it was to be one; empty if it is new."""
        revisions = self._revisions.setdefault(stage.name, Revisions())
        repeated = revisions.repeated(written, f"the {self.role(stage)}")
        return repeated if self.problem is not None else ""

    def role(self, stage: Stage) -> str:
        """Who is asked: whoever revises, where a stage is come back to."""
        again = self.problem is not None and stage.revised_by
        return stage.revised_by if again else stage.role

    def name(self, stage: Stage, iteration: int) -> str:
        """What whoever is asked is called."""
        player = self.request.players[self.role(stage)]
        return f"{self.request.task}:{player.persona}:{stage.name}:{iteration}"

    def writes_code(self, stage: Stage) -> bool:
        """Whether what a stage writes is a change of the tree, and not a document."""
        return bool(stage.writes) and self.request.players[stage.role].access is Access.WRITE

    def subjects(self, stage: Stage) -> Iterator[Stage]:
        """The stages that write what a stage judges."""
        for each in self.request.pipeline.stages:
            if set(each.writes) & set(stage.judges):
                yield each

    def nothing_to_judge(self, name: str) -> str:
        """What a stage judges that nobody has written yet; empty if all of it is there."""
        stage = self.request.pipeline.stages[self.request.pipeline.index(name)]
        for each in self.subjects(stage):
            if not (self.changed if self.writes_code(each) else self._object(each.leaves)):
                return f"`{each.name}`"
        return ""

    def texts(self, stages: Iterable[Stage]) -> list[str]:
        """The documents that these stages leave."""
        return [each.leaves for each in stages if not self.writes_code(each)]

    def judged(self, stage: Stage) -> str:
        """The hash of exactly what a stage judges, as it is now."""
        found: dict[str, str] = {}
        for each in self.subjects(stage):
            found[each.name] = self.tree if self.writes_code(each) else self._object(each.leaves)
        return address(msgspec.json.encode(found, order="sorted"))

    def judged_documents(self, stage: Stage) -> tuple[Judged, ...]:
        """The documents among what a stage judges, as they are now."""
        names, path = self.texts(self.subjects(stage)), self.request.path
        return tuple(Judged(path=f"{path}/{name}", object=self._object(name)) for name in names)

    def _object(self, name: str) -> str:
        return self.documents[name].object if name in self.documents else ""

    def said(self, name: str) -> str:
        """The verdict of a stage for people: also who overrode it."""
        verdict, by = self.verdict(name), self.overridden.get(name, "")
        return f"{verdict} ({by})" if by and verdict == APPROVED else verdict

    def verdict(self, name: str) -> str:
        """What a stage came to last; `void` if that was about something else than there is now."""
        verdict, judged = self.verdicts.get(name, ("", ""))
        stage = self.request.pipeline.stages[self.request.pipeline.index(name)]
        return verdict if not verdict or judged == self.judged(stage) else VOID

    def void(self, before: Stage) -> list[str]:
        """The stages before one whose verdict is about something else than there is now."""
        of = self.request.pipeline
        earlier = of.stages[: of.index(before.name)]
        return [each.name for each in earlier if each.judges and self.verdict(each.name) == VOID]

    def missing(self) -> list[str]:
        """The required stages that have not approved what there is now."""
        stages, required = self.request.pipeline.stages, self.request.pipeline.requires
        return [each.name for each in stages if each.name in required and self.verdict(each.name) != APPROVED]

    def earned(self) -> str:
        """The status that follows from what there is and from who has approved exactly that."""
        stages = self.request.pipeline.stages
        approved = [stage for stage in stages if stage.judges and self.verdict(stage.name) == APPROVED]
        of_code = [stage for stage in approved if any(map(self.writes_code, self.subjects(stage)))]
        if self.changed:
            if any(stage.verdict == "person" for stage in of_code):
                return "approved"
            return "review-approved" if of_code else "implemented"
        if approved:
            return "plan-approved"
        written = (stage.leaves for stage in stages if stage.writes)
        return "planned" if any(name in self.documents for name in written) else "draft"

    def approved(self) -> str:
        """The hash of what those who had to approve it were shown last."""
        stages = {stage.name: stage for stage in self.request.pipeline.stages}
        required = [stages[name] for name in self.request.pipeline.requires]
        return self.judged(required[-1]) if required else self.tree

    def to_look_at(self, stage: str) -> str:
        """The file that says most about where a task stopped: what the stage left, or what it was about."""
        for each in self.request.pipeline.stages:
            if each.name == stage:
                names = [each.leaves, *self.texts(self.subjects(each))]
                return next((f"{self.request.path}/{name}" for name in names if name in self.documents), "")
        return ""

    def tell(self, stage: Stage, iteration: int, outcome: str, claim: str, reason: str) -> None:
        """Remember a stage for those who come after; the last time it was gone through is what counts."""
        self.told = [each for each in self.told if each.step != stage.name]
        title = f"{outcome}, iteration {iteration}"
        files = self.files if self.writes_code(stage) else ()
        self.told.append(DoneStep(step=stage.name, title=title, files=files, claim=claim, evidence=reason))
