"""Attempts at steps, for other programs: started under a lease, proposed, verified, accepted or rejected."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

from planforge.errors import InvalidInput, RefusedByGate, StaleFence, Unleased
from planforge.kernel import graph, leases
from planforge.kernel.api.shapes import TTL, Assignment, Commands, Proposal, StepOutcome
from planforge.kernel.events import (
    ArtifactKind,
    ArtifactRecorded,
    AttemptRejected,
    Event,
    PatchApplied,
    PatchProposed,
    StepCompleted,
    VerifyFailed,
    VerifyOk,
)
from planforge.kernel.evidence import Evidence, Outcome
from planforge.kernel.graph import steps as lookup
from planforge.kernel.graph.queries import StepView
from planforge.kernel.leases.rules import Lease, released
from planforge.kernel.leases.tables import STREAM
from planforge.kernel.ledger import Write
from planforge.kernel.paths import covers, exact, matches, normalise, overlap
from planforge.kernel.scores import StepScore, compute, measure


class Attempts(Commands):
    """The single commands about an attempt. Each is one transaction: refused, it leaves nothing behind."""

    def start(self, step: str, *, holder: str = "", base: str = "", ttl: timedelta = TTL) -> Assignment:
        """
        Begin an attempt: lease all files of the step, or none, and refuse a step that is blocked.

        Without a `holder` the attempt gets a name that nobody else has. A holder that starts a step which it
        has under way, as after a crash, makes another attempt; what is left of the one before is refused.
        """
        view = lookup.current(self._ledger, step)
        holder = holder or f"worker-{secrets.token_hex(4)}"
        self._require_free_hands(view, holder)
        lease = leases.claim(self._ledger, holder, view.files, ttl=ttl) if view.files else None
        try:
            attempt = graph.start_step(self._ledger, view.node, holder, base, lease.fence if lease else 0)
        except BaseException:
            if lease:
                with suppress(StaleFence):
                    leases.release(self._ledger, holder, lease.fence, "the step could not start")
            raise
        return assignment_of(view, attempt, holder, lease.fence if lease else 0)

    def under_way(self, plan: str, step: str) -> Assignment:
        """
        The attempt that is being made at a step of a plan, which means its newest revision.

        For whoever is to verify it, and for its holder to go on after a crash: the fence is that of the
        holder's lease, or 0 if that is gone.
        """
        view = lookup.find(self._ledger, f"{lookup.revision(self._ledger, plan).node}/{step}")
        view = graph.require_attempt(self._ledger, view.node, max(view.attempts, 1))
        held = [lease.fence for lease in leases.held(self._ledger) if _is_for(lease, view)]
        return assignment_of(view, view.attempts, view.holder or "", held[-1] if held else 0)

    def open_gate(self, step: str, gate: str, *, actor: str) -> None:
        """A person's yes to a step as it is planned now."""
        graph.open_gate(self._ledger, step, gate, actor)

    def propose(self, assignment: Assignment, proposal: Proposal) -> str:
        """Record a change; the address of its diff. A change of anything but the step's files is refused."""
        if not proposal.tree or proposal.changed_lines < 0:
            raise InvalidInput(
                "a change needs the hash of its tree, and a number of lines that is not below 0"
            )
        patch = self._kept(proposal)
        paths = tuple(exact(file.path) for file in proposal.files)
        artifacts = [
            ArtifactRecorded(**_which(assignment), kind=ArtifactKind.FILE, name=path, hash=file.hash)
            for path, file in zip(paths, proposal.files, strict=True)
        ]
        proposed = PatchProposed(
            **_which(assignment),
            commit=proposal.commit or patch or proposal.tree,
            tree=proposal.tree,
            files=paths,
            claim=proposal.claim,
            agent=proposal.agent or assignment.holder,
        )

        def decide() -> list[Write]:
            view = self._under_way(assignment)
            _require_within(view, paths)
            return [self._write(assignment, *artifacts, proposed)]

        self._ledger.transact(decide)
        return patch

    def verify(
        self, assignment: Assignment, evidence: Evidence, *, acknowledge: Mapping[str, int] | None = None
    ) -> bool:
        """
        Record what a check saw; whether it passed. Anybody may verify, also whoever did not do the work.

        `acknowledge` moves the cursors of subscribers in the same transaction, so that whoever verifies what
        an event brought does so once, whenever it is killed: `{news.name: news.passed(recorded)}`.
        """
        passed = evidence.outcome is Outcome.PASS
        event = (VerifyOk if passed else VerifyFailed)(**_which(assignment), evidence=evidence)

        def decide() -> list[Write]:
            graph.require_attempt(self._ledger, assignment.step, assignment.attempt)
            return [self._write(assignment, event)]

        self._ledger.transact(decide, acknowledge)
        return passed

    def proposed(self, assignment: Assignment) -> PatchProposed | None:
        """The change that was proposed last in this attempt, if there was one."""
        found = lookup.facts(self._ledger, assignment.step, PatchProposed)
        own = [event for event in found if event.attempt == assignment.attempt]
        return own[-1] if own else None

    def evidence(self, assignment: Assignment) -> list[Evidence]:
        """What checks have seen of this attempt, oldest first."""
        return lookup.evidence_of(self._ledger, assignment.step, assignment.attempt)

    def accept(
        self,
        assignment: Assignment,
        proposal: Proposal,
        evidence: Evidence,
        *,
        baseline: Evidence | None = None,
        branch: str = "",
    ) -> StepOutcome:
        """
        The change counts: it landed, the step is done and scored, its files are free. All of it, or nothing.

        Refused (`RefusedByGate`) unless this change is the one that was proposed last, the evidence is on
        record, passes, is about exactly its tree and is the newest word on it, and a live lease of the
        holder covers every path (`StaleFence`, `Unleased`). `baseline` is a check of the tree before.
        """
        evidence = self._redact.struct(evidence)
        repeated = assignment.attempt - 1
        measures = measure(
            evidence, baseline=baseline, diff_size=proposal.changed_lines, rollback_count=repeated
        )
        score = compute(measures)
        patch = self._kept(proposal)
        applied = PatchApplied(
            **_which(assignment),
            content="",
            scope=assignment.files,
            branch=branch,
            commit=proposal.commit or patch or proposal.tree,
            tree=proposal.tree,
            parent="",
        )
        done = StepCompleted(
            plan=assignment.plan, step=assignment.name, attempts=assignment.attempt, score=score
        )

        def decide() -> list[Write]:
            view = self._under_way(assignment)
            paths = self._paths(assignment, proposal)
            self._require_evidence(assignment, proposal, evidence)
            _require_within(view, paths)
            if view.files:
                leases.require(self._ledger, assignment.fence, paths, assignment.holder)
            return [self._write(assignment, applied, done), *self._freed(assignment, "the step is done")]

        self._ledger.transact(decide)
        return _outcome(assignment, evidence.reason, score=score, patch=patch)

    def reject(self, assignment: Assignment, reason: str) -> StepOutcome:
        """The attempt is not taken and its files are free; anybody can start the step again."""
        reason = self._redact.text(reason)
        event = AttemptRejected(**_which(assignment), reason=reason)

        def decide() -> list[Write]:
            self._under_way(assignment)
            return [self._write(assignment, event), *self._freed(assignment, reason)]

        self._ledger.transact(decide)
        return _outcome(assignment, reason)

    def renew(self, assignment: Assignment, ttl: timedelta = TTL) -> None:
        """Keep the files for at least `ttl` from now, or raise `StaleFence`."""
        if assignment.fence:
            leases.renew(self._ledger, assignment.holder, assignment.fence, ttl)

    def release(self, assignment: Assignment, reason: str) -> None:
        """Give back the files of an attempt that cannot go on, such as one whose plan was rescoped."""
        self._ledger.transact(lambda: self._freed(assignment, self._redact.text(reason)))

    def fail(self, step: str, reason: str) -> None:
        """The step cannot be done; what depends on it waits until it is tried again or rescoped."""
        graph.fail_step(self._ledger, step, self._redact.text(reason))

    def score(self, step: str) -> StepScore | None:
        """The recorded score of a step; None while it is not done or was not scored."""
        return graph.score_of(self._ledger, step)

    # What has to hold, looked at while nobody else can write

    def _under_way(self, assignment: Assignment) -> StepView:
        return graph.require_attempt(self._ledger, assignment.step, assignment.attempt, assignment.holder)

    def _require_free_hands(self, view: StepView, holder: str) -> None:
        """Two steps under one name would share a lease, and so change the same files at once."""
        newest = "(SELECT max(revision) FROM revisions WHERE revisions.plan = steps.plan)"
        busy = f"WHERE holder = ? AND status = 'in-progress' AND node <> ? AND revision = {newest}"
        for other in lookup.views(self._ledger, busy, holder, view.node):
            for path in map(normalise, view.files):
                if any(overlap(path, normalise(own)) for own in other.files):
                    raise RefusedByGate(
                        f"`{holder}` is at `{other.node}`, which may change `{path}` too",
                        "finish that first, or start under another name",
                    )

    def _paths(self, assignment: Assignment, proposal: Proposal) -> tuple[str, ...]:
        """The paths of the change that was proposed last, if it is this one."""
        last = self.proposed(assignment)
        if last is None or last.tree != proposal.tree:
            raise RefusedByGate(
                f"tree `{proposal.tree[:12]}` is not what was proposed last for `{assignment.step}`"
            )
        return tuple(dict.fromkeys((*last.files, *(exact(file.path) for file in proposal.files))))

    def _require_evidence(self, assignment: Assignment, proposal: Proposal, evidence: Evidence) -> None:
        if evidence.outcome is not Outcome.PASS:
            raise RefusedByGate(f"`{assignment.step}` cannot be accepted: {evidence.reason}")
        if evidence.tree != proposal.tree:
            raise RefusedByGate(
                f"the evidence is about tree `{evidence.tree[:12]}`, the change is `{proposal.tree[:12]}`"
            )
        known = [found for found in self.evidence(assignment) if found.tree == proposal.tree]
        if evidence not in known:
            raise RefusedByGate(f"the evidence for `{assignment.step}` is not on record")
        if known[-1].outcome is not Outcome.PASS:
            raise RefusedByGate(f"a later check of `{assignment.step}` says: {known[-1].reason}")

    def _freed(self, assignment: Assignment, reason: str) -> list[Write]:
        """The event that ends the lease; nothing if the lease is gone already."""
        try:
            leases.require(self._ledger, assignment.fence, (), assignment.holder)
        except StaleFence:
            return []
        return [Write(STREAM, None, [released(assignment.holder, assignment.fence, reason)])]

    def _write(self, assignment: Assignment, *events: Event) -> Write:
        return Write(assignment.plan, None, [self._redact.struct(event) for event in events])

    def _kept(self, proposal: Proposal) -> str:
        return self._ledger.objects.put(self._redact.octets(proposal.diff)) if proposal.diff else ""


def _which(assignment: Assignment) -> dict[str, Any]:
    """The attempt, as its facts name it."""
    return {"plan": assignment.plan, "step": assignment.name, "attempt": assignment.attempt}


def assignment_of(view: StepView, attempt: int, holder: str, fence: int) -> Assignment:
    """The attempt as its holder gets it."""
    return Assignment(
        step=view.node,
        plan=view.plan,
        name=view.step,
        attempt=attempt,
        holder=holder,
        files=view.files,
        fence=fence,
    )


def _outcome(
    assignment: Assignment, reason: str, *, score: StepScore | None = None, patch: str = ""
) -> StepOutcome:
    return StepOutcome(
        step=assignment.step,
        attempt=assignment.attempt,
        accepted=score is not None,
        reason=reason,
        score=score,
        patch=patch,
    )


def _is_for(lease: Lease, view: StepView) -> bool:
    """Whether it is the lease under which the holder of a step works."""
    wanted = list(map(normalise, view.files))
    return (
        bool(wanted)
        and lease.holder == view.holder
        and all(any(covers(own, path) for own in lease.paths) for path in wanted)
    )


def _require_within(view: StepView, paths: Iterable[str]) -> None:
    outside = [path for path in paths if not any(matches(normalise(own), path) for own in view.files)]
    if outside:
        names = ", ".join(f"`{path}`" for path in outside)
        hint = f"it may change {', '.join(f'`{own}`' for own in view.files) or 'nothing'}"
        raise Unleased(f"not among the files of `{view.node}`: {names}", hint)
