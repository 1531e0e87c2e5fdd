"""Events in words: one line each, for the log and for progress."""

from __future__ import annotations

from functools import singledispatch

from planforge.kernel import events
from planforge.kernel.events import Event
from planforge.kernel.wording import counted, money


def first_line(text: str, limit: int = 100) -> str:
    """The first line of a text, shortened, without control characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    line = "".join(letter for letter in line.replace("\t", " ") if letter.isprintable())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def where(event: Event) -> str:
    """What an event is about: the step, the plan, or the run."""
    for name in ("step", "plan", "task", "run"):
        if value := getattr(event, name, ""):
            return str(value)
    return ""


def _list(names: tuple[str, ...], limit: int = 3) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return (", ".join(names[:limit]) or "nothing") + more


def amounts(found: events.Amounts) -> str:
    """Amounts in words; unknown ones are left out."""
    parts = [
        None if found.tokens is None else counted(found.tokens, "token"),
        None if found.money is None else money(found.money),
        None if found.seconds is None else counted(found.seconds, "second"),
        None if found.attempts is None else counted(found.attempts, "attempt"),
    ]
    return ", ".join(filter(None, parts)) or "unknown"


def moment(instant: str) -> str:
    """An instant for people: to the second, in UTC."""
    return instant[:19].replace("T", " ") + " UTC"


@singledispatch
def said(event: Event) -> str:
    """What happened, in words."""
    return type(event).__name__


@said.register(events.RunStarted)
def _(event: events.RunStarted) -> str:
    return f"{event.flow} started for {event.subject or 'nothing'}"


@said.register(events.DriverStarted)
def _(event: events.DriverStarted) -> str:
    again = "" if event.fence == 1 else f", driver {event.fence}"
    return f"process {event.process} drives it{again}"


@said.register(events.EffectIntended)
def _(event: events.EffectIntended) -> str:
    return f"{event.effect} {event.about} …"


@said.register(events.EffectCompleted)
def _(event: events.EffectCompleted) -> str:
    return f"{event.effect} done"


@said.register(events.EffectFailed)
def _(event: events.EffectFailed) -> str:
    return f"{event.effect} failed: {event.message}"


@said.register(events.RunParked)
def _(event: events.RunParked) -> str:
    what = f"until {moment(event.until)}" if event.until else "for a person"
    return f"waits {what}: {event.reason}"


@said.register(events.CancelRequested)
def _(event: events.CancelRequested) -> str:
    return f"{event.actor} asked to cancel it: {first_line(event.reason, 160)}"


@said.register(events.RunEnded)
def _(event: events.RunEnded) -> str:
    return f"{'ended' if event.succeeded else 'failed'}: {event.reason}"


@said.register(events.PlanCreated)
def _(event: events.PlanCreated) -> str:
    return f"request: {first_line(event.request)}"


@said.register(events.PlanWritten)
def _(event: events.PlanWritten) -> str:
    causes = {"draft": "drafted", "revision": f"revised after round {event.round}"}
    what = causes.get(event.cause, f"saved after round {event.round}")
    return f"{what}: {event.title} (content {event.content[:12]})"


@said.register(events.AuditRecorded)
def _(event: events.AuditRecorded) -> str:
    numbers: dict[str, int] = {}
    for finding in event.findings:
        numbers[finding.severity] = numbers.get(finding.severity, 0) + 1
    found = ", ".join(f"{count} {severity}" for severity, count in numbers.items()) or "no findings"
    what = "audit of the finished work" if event.step else f"audit round {event.round}"
    return f"{what}: {event.verdict} ({found}); {event.decision_reason}"


@said.register(events.PlanForged)
def _(event: events.PlanForged) -> str:
    warning = f"; but {first_line(event.warning, 160)}" if event.warning else ""
    return f"ready for review after {counted(event.rounds, 'round')}: {event.reason}{warning}"


@said.register(events.PlanApproved)
def _(event: events.PlanApproved) -> str:
    return f"approved by {event.actor}, content {event.content[:12]}"


@said.register(events.ApprovalUsed)
def _(event: events.ApprovalUsed) -> str:
    return f"approval of {event.content[:12]} used by {event.run}"


@said.register(events.PhasesGenerated)
def _(event: events.PhasesGenerated) -> str:
    kept = f", {len(event.kept)} kept" if event.kept else ""
    by = f" by {event.actor}" if event.actor else ""
    return f"{counted(len(event.steps), 'phase')} from {event.content[:12]}{by}{kept}"


@said.register(events.PlanPaused)
def _(event: events.PlanPaused) -> str:
    more = f"; {counted(len(event.left), 'phase')} left"
    left = "" if event.reason.endswith(more) else more
    return f"stopped: {event.reason}{left}; {event.branch} is at {event.commit[:12]}"


@said.register(events.StepRetried)
def _(event: events.StepRetried) -> str:
    kept = f"; files changed since then, kept: {', '.join(event.changed)}" if event.changed else ""
    return f"tried again after: {first_line(event.problem, 160)}{kept}"


@said.register(events.StepSkipped)
def _(event: events.StepSkipped) -> str:
    return f"skipped by {event.actor}: {first_line(event.reason, 160)}"


@said.register(events.PlanStarted)
def _(event: events.PlanStarted) -> str:
    kept = f", {len(event.kept)} kept from before" if event.kept else ""
    return f"{counted(len(event.steps), 'step')} on branch {event.branch} from {event.base[:12]}{kept}"


@said.register(events.PlanEnded)
def _(event: events.PlanEnded) -> str:
    how = "done" if event.succeeded else "stopped"
    return f"{how}: {event.reason}; {event.branch} is at {event.commit[:12]}"


@said.register(events.PlanMoved)
def _(event: events.PlanMoved) -> str:
    return f"{event.status} by {event.actor}: {first_line(event.reason, 160)}"


LESSONS = {
    "update": "lesson {lesson} is updated",
    "add": "lesson {lesson} is new",
    "none": "no lesson needed",
}


@said.register(events.LessonDecided)
def _(event: events.LessonDecided) -> str:
    why = f": {first_line(event.reason, 160)}" if event.reason else ""
    return f"{LESSONS[event.decision].format(lesson=event.lesson)}, says {event.actor}{why}"


@said.register(events.StepStarted)
def _(event: events.StepStarted) -> str:
    place = f" at {event.base[:12]}" if event.base else f", by {event.holder}" if event.holder else ""
    return f"attempt {event.attempt} begins{place}"


@said.register(events.PatchProposed)
def _(event: events.PatchProposed) -> str:
    confined = f" ({event.sandbox})" if event.sandbox else ""
    claim = first_line(event.claim)
    files = counted(len(event.files), "file")
    return f"agent {event.agent}{confined} changed {files} and says: “{claim}”"


@said.register(events.AttemptInspected)
def _(event: events.AttemptInspected) -> str:
    found = [f"{item.severity}: {item.title}" for item in event.findings]
    found += [f"needs a person: {what}" for what in event.protected]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"inspected: {first_line(found[0], 160)}{more}" if found else "inspected"


@said.register(events.VerifyOk)
def _(event: events.VerifyOk) -> str:
    return f"evidence: {event.evidence.reason} (tree {event.evidence.tree[:12]})"


@said.register(events.VerifyFailed)
def _(event: events.VerifyFailed) -> str:
    evidence = event.evidence
    return f"evidence says {evidence.outcome.value}: {evidence.reason} (tree {evidence.tree[:12]})"


@said.register(events.AttemptRejected)
def _(event: events.AttemptRejected) -> str:
    return f"attempt {event.attempt} was rejected: {first_line(event.reason, 160)}"


@said.register(events.PatchApplied)
def _(event: events.PatchApplied) -> str:
    place = f" on {event.branch}" if event.branch else ""
    return f"landed{place} as {(event.commit or event.tree)[:12]}"


@said.register(events.StepCompleted)
def _(event: events.StepCompleted) -> str:
    value = "unknown" if event.score is None or event.score.value is None else event.score.value
    points = "" if event.score is None else f", score {value}"
    there = f": nothing to change, {event.found[:12]} already passes" if event.found else ""
    return f"done in {counted(event.attempts, 'attempt')}{points}{there}"


@said.register(events.StepFailed)
def _(event: events.StepFailed) -> str:
    return f"failed after {counted(event.attempts, 'attempt')}: {first_line(event.reason, 160)}"


@said.register(events.PlanRescoped)
def _(event: events.PlanRescoped) -> str:
    return f"revision {event.revision} with {counted(len(event.steps), 'step')}: {first_line(event.reason)}"


@said.register(events.RiskRaised)
def _(event: events.RiskRaised) -> str:
    what = f"{event.severity} risk {event.risk}: {first_line(event.description)}"
    return f"{what}; it blocks {_list(event.blocks)}"


@said.register(events.RiskSettled)
def _(event: events.RiskSettled) -> str:
    return f"risk {event.risk} settled by {event.actor}: {first_line(event.reason)}"


@said.register(events.GateOpened)
def _(event: events.GateOpened) -> str:
    return f"{event.actor} opened gate {event.gate} for {event.step}"


@said.register(events.GateRaised)
def _(event: events.GateRaised) -> str:
    what = f"gate {event.gate} waits for a person (tree {event.content[:12]})"
    return f"{what}: {first_line(_list(event.reasons, 1), 160)}"


@said.register(events.GateDecided)
def _(event: events.GateDecided) -> str:
    how = "approved" if event.approved else "rejected"
    why = f": {first_line(event.reason)}" if event.reason else ""
    return f"{event.actor} {how} gate {event.gate} (tree {event.content[:12]}){why}"


@said.register(events.QuestionAsked)
def _(event: events.QuestionAsked) -> str:
    names = " | ".join(choice.name for choice in event.choices)
    return f"question-{event.number:03}: {first_line(event.text, 160)} ({names})"


@said.register(events.QuestionAnswered)
def _(event: events.QuestionAnswered) -> str:
    why = f": {first_line(event.reason)}" if event.reason else ""
    return f"{event.actor} answered question-{event.number:03} with {event.answer}{why}"


@said.register(events.ArtifactRecorded)
def _(event: events.ArtifactRecorded) -> str:
    return f"{event.kind.value} {event.name} ({event.hash[:12]})"


@said.register(events.LeaseGranted)
def _(event: events.LeaseGranted) -> str:
    return f"{event.holder} may change {_list(event.paths)} until {event.until[11:19]} (fence {event.fence})"


@said.register(events.LeaseRenewed)
def _(event: events.LeaseRenewed) -> str:
    return f"{event.holder} renewed its lease until {event.until[11:19]} (fence {event.fence})"


@said.register(events.LeaseReleased)
def _(event: events.LeaseReleased) -> str:
    how = f"was taken away by {event.actor}" if event.forced else "was released"
    return f"lease {event.fence} of {event.holder} {how}: {first_line(event.reason)}"


@said.register(events.LeaseExpired)
def _(event: events.LeaseExpired) -> str:
    return f"lease {event.fence} of {event.holder} expired at {event.until[11:19]}"


@said.register(events.LeasePassed)
def _(event: events.LeasePassed) -> str:
    return f"lease {event.fence} of {event.holder} passes to {event.successor} (fence {event.new_fence})"


@said.register(events.LeaseAwaited)
def _(event: events.LeaseAwaited) -> str:
    return f"{event.holder} waits for {_list(event.paths)} behind {_list(event.behind)}"


@said.register(events.LeaseWaitEnded)
def _(event: events.LeaseWaitEnded) -> str:
    return f"{event.holder} stops waiting: {first_line(event.reason)}"


@said.register(events.BudgetSet)
def _(event: events.BudgetSet) -> str:
    return f"{event.scope} may spend {amounts(event.limits)}"


@said.register(events.BudgetReserved)
def _(event: events.BudgetReserved) -> str:
    return f"{amounts(event.amounts)} reserved for {event.reservation}"


@said.register(events.BudgetSpent)
def _(event: events.BudgetSpent) -> str:
    return f"{amounts(event.amounts)} spent by {event.reservation} so far"


@said.register(events.BudgetReconciled)
def _(event: events.BudgetReconciled) -> str:
    return f"{event.reservation} cost {amounts(event.spent)}: {first_line(event.reason)}"


@said.register(events.HandoffEmitted)
def _(event: events.HandoffEmitted) -> str:
    about = "about " if event.estimated else ""
    return (
        f"{event.holder} hands over to {event.successor} at {about}{event.used} of {event.threshold} tokens"
    )


@said.register(events.HandoffLoaded)
def _(event: events.HandoffLoaded) -> str:
    return f"{event.holder} continues from {event.handoff}"


@said.register(events.MergeChecked)
def _(event: events.MergeChecked) -> str:
    evidence = event.evidence
    what = f"merged with {event.onto[:12]}"
    if not event.plan:
        itself = evidence.commit == event.onto
        what = f"of {event.branch} {'alone' if itself else 'with what has landed'}"
    return f"evidence {what}: {evidence.outcome.value}, {evidence.reason} (tree {evidence.tree[:12]})"


@said.register(events.PlanLanded)
def _(event: events.PlanLanded) -> str:
    return f"landed on {event.landing} as {event.commit[:12]}"


@said.register(events.LandingConflicted)
def _(event: events.LandingConflicted) -> str:
    paths = tuple(conflict.path for conflict in event.conflicts)
    return f"conflicts with {event.branch} in {_list(paths)}; both sides are in {event.archive}"


@said.register(events.LandingBroken)
def _(event: events.LandingBroken) -> str:
    return f"does not land on {event.branch}: {first_line(event.reason, 200)}"


@said.register(events.PlanHeldBack)
def _(event: events.PlanHeldBack) -> str:
    return f"does not land on {event.branch}: {first_line(event.reason, 200)}"


@said.register(events.StepReopened)
def _(event: events.StepReopened) -> str:
    return f"reopened: {first_line(event.reason, 160)}"


@said.register(events.LandingCaughtUp)
def _(event: events.LandingCaughtUp) -> str:
    return f"{event.branch} at {event.merged[:12]} is merged into {event.landing}, as {event.commit[:12]}"


@said.register(events.LandingRestarted)
def _(event: events.LandingRestarted) -> str:
    before = f"the old commits are in {event.archive}"
    return f"{event.landing} restarts at {event.now[:12]} ({event.reason}); {before}"


@said.register(events.ConflictsForeseen)
def _(event: events.ConflictsForeseen) -> str:
    pairs = tuple(f"{item.one} with {item.other} in {_list(item.paths)}" for item in event.conflicts)
    return f"will conflict: {_list(pairs)}"


@said.register(events.PullRequestOpened)
def _(event: events.PullRequestOpened) -> str:
    return f"{event.actor} opened {first_line(event.url)} for {event.branch} at {event.commit[:12]}"


@said.register(events.CheckoutUpdated)
def _(event: events.CheckoutUpdated) -> str:
    place = f", {counted(event.files, 'file')} in {event.place}" if event.place else ""
    return f"{event.branch} is at {event.now[:12]}{place}"


@said.register(events.ContextComposed)
def _(event: events.ContextComposed) -> str:
    cut = tuple(part.name for part in event.parts if part.left_out)
    how = f"; shortened: {_list(cut, 7)}" if cut else ""
    again = "; asked again, in short" if event.simplified else ""
    return f"the {event.role} was told {counted(event.tokens, 'token')}{how}{again}"


@said.register(events.FilesChosen)
def _(event: events.FilesChosen) -> str:
    what = _list(event.chosen, 3) or "none"
    return f"the {event.role} plans from {what}, of {counted(len(event.offered), 'file')} offered"


@said.register(events.TierEscalated)
def _(event: events.TierEscalated) -> str:
    models = f"a {event.tier} model for this attempt, not a {event.instead_of} one"
    return f"the {event.role} gets {models}: {event.reason}"


@said.register(events.SessionKept)
def _(event: events.SessionKept) -> str:
    how = "was interrupted and can be resumed" if event.unfinished else "can be resumed"
    return f"the conversation {event.conversation} with {event.agent} {how}"


@said.register(events.SessionLost)
def _(event: events.SessionLost) -> str:
    return f"the conversation {event.conversation} with {event.agent} is over: {first_line(event.reason)}"


@said.register(events.LimitReached)
def _(event: events.LimitReached) -> str:
    until = f"{'' if event.said else 'perhaps '}until {moment(event.until)}"
    return f"{event.agent} has reached its limit, {until}: {first_line(event.reason)}"


@said.register(events.AgentSwitched)
def _(event: events.AgentSwitched) -> str:
    until = moment(event.until)
    return f"{event.successor} is the {event.role} until {until}: {event.agent} has reached its limit"


@said.register(events.TaskOpened)
def _(event: events.TaskOpened) -> str:
    return f"{event.task} was opened for pipeline {event.pipeline}: {first_line(event.title)}"


@said.register(events.TaskMoved)
def _(event: events.TaskMoved) -> str:
    by = f", by {event.actor}" if event.actor else ""
    return f"{event.task} is {event.status} ({event.event}{by})"


@said.register(events.StageStarted)
def _(event: events.StageStarted) -> str:
    again = f", iteration {event.iteration}" if event.iteration > 1 else ""
    return f"{event.stage} begins{again} ({event.name})"


STAGE_ENDS = {
    "completed": "{stage} — completed: {reason}",
    "approved": "{stage} — Approved: {reason}",
    "revision": "{stage} — Revision Required (iteration {iteration}): {reason}",
    "escalated": "{stage} — escalated to human: {reason}",
}


@said.register(events.StageEnded)
def _(event: events.StageEnded) -> str:
    reason = first_line(event.reason, 200)
    return STAGE_ENDS[event.outcome].format(stage=event.stage, iteration=event.iteration, reason=reason)


@said.register(events.TaskEnded)
def _(event: events.TaskEnded) -> str:
    if event.succeeded:
        place = f", {event.branch} at {event.commit[:12]}" if event.branch else ""
        return f"finished its pipeline{place}"
    again = f"planforge task resume {event.task} --at {event.stage}"
    look = f"; look at {event.document}" if event.document else ""
    return f"stopped at {event.stage}{look}; resume it with `{again}`"


@said.register(events.FrictionNoted)
def _(event: events.FrictionNoted) -> str:
    skill = f" {event.skill}" if event.skill else ""
    return f"friction: {event.issue}{skill} ({event.persona}): {first_line(event.detail)}"
