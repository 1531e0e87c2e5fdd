"""Events in words: one line each, for the log and for progress."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import singledispatch
from operator import attrgetter
from typing import Any

from planforge.kernel import events
from planforge.kernel.events import Event
from planforge.kernel.wording import counted, money
from planforge.kernel.work.decisions import label


def first_line(text: str, limit: int = 100) -> str:
    """The first line of a text, shortened, without control characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    line = "".join(letter for letter in line.replace("\t", " ") if letter.isprintable())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def where(event: Event) -> str:
    """The step, item, task or run of an event."""
    for name in ("step", "plan", "item", "task", "run"):
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


SENTENCES: dict[type[Event], str] = {
    events.RunStarted: "{flow} started for [{subject}|nothing]",
    events.DriverStarted: "process {process} drives it{fence:driver}",
    events.EffectIntended: "{effect} {about} …",
    events.EffectCompleted: "{effect} done",
    events.EffectFailed: "{effect} failed: {message}",
    events.RunParked: "waits [until {until:moment}|for a person]: {reason}",
    events.RunEnded: "{succeeded:ended or failed}: {reason}",
    events.CancelRequested: "{actor} asked to cancel it: {reason:line160}",
    events.DecisionUsed: "approval of {content:.12} used by {run}",
    events.ItemOpened: "[{item} was opened for pipeline {pipeline}: {title:line}|request: {request:line}]",
    events.PhasesGenerated: "{steps:count phase} from {content:.12}[ by {actor}][, {kept:size} kept]",
    events.StepRetried: (
        "tried again after: {problem:line160}[; files changed since then, kept: {changed:all}]"
    ),
    events.StepSkipped: "skipped by {actor}: {reason:line160}",
    events.PlanStarted: (
        "{steps:count step} on branch {branch} from {base:.12}[, {kept:size} kept from before]"
    ),
    events.PlanEnded: "{succeeded:done or stopped}: {reason}; {branch} is at {commit:.12}",
    events.ItemMoved: "{item} is {status} ({by}[, by {actor}])[: {reason:line160}]",
    events.ItemLinked: "{actor}: {item} comes after [{after:all}|nothing]",
    events.PatchProposed: "agent {agent}[ ({sandbox})] changed {files:count file} and says: “{claim:line}”",
    events.VerifyOk: "evidence: {evidence.reason} (tree {evidence.tree:.12})",
    events.VerifyFailed: (
        "evidence says {evidence.outcome.value}: {evidence.reason} (tree {evidence.tree:.12})"
    ),
    events.AttemptRejected: "attempt {attempt} was rejected: {reason:line160}",
    events.PatchApplied: "landed[ on {branch}] as [{commit:.12}|{tree:.12}]",
    events.StepFailed: "failed after {attempts:count attempt}: {reason:line160}",
    events.PlanRescoped: "revision {revision} with {steps:count step}: {reason:line}",
    events.RiskRaised: "{severity} risk {risk}: {description:line}; it blocks {blocks:some}",
    events.RiskSettled: "risk {risk} settled by {actor}: {reason:line}",
    events.GateOpened: "{actor} opened gate {gate} for {step}",
    events.ArtifactRecorded: "{kind.value} {name} ({hash:.12})",
    events.LeaseGranted: "{holder} may change {paths:some} until {until:clock} (fence {fence})",
    events.LeaseRenewed: "{holder} renewed its lease until {until:clock} (fence {fence})",
    events.LeaseExpired: "lease {fence} of {holder} expired at {until:clock}",
    events.LeasePassed: "lease {fence} of {holder} passes to {successor} (fence {new_fence})",
    events.LeaseAwaited: "{holder} waits for {paths:some} behind {behind:some}",
    events.LeaseWaitEnded: "{holder} stops waiting: {reason:line}",
    events.BudgetSet: "{scope} may spend {limits:amounts}",
    events.BudgetReserved: "{amounts:amounts} reserved for {reservation}",
    events.BudgetSpent: "{amounts:amounts} spent by {reservation} so far",
    events.BudgetReconciled: "{reservation} cost {spent:amounts}: {reason:line}",
    events.HandoffEmitted: (
        "{holder} hands over to {successor} at {estimated:about  or }{used} of {threshold} tokens"
    ),
    events.HandoffLoaded: "{holder} continues from {handoff}",
    events.PlanLanded: "landed on {landing} as {commit:.12}",
    events.LandingConflicted: "conflicts with {branch} in {conflicts:paths}; both sides are in {archive}",
    events.LandingBroken: "does not land on {branch}: {reason:line200}",
    events.PlanHeldBack: "does not land on {branch}: {reason:line200}",
    events.StepReopened: "reopened: {reason:line160}",
    events.LandingCaughtUp: "{branch} at {merged:.12} is merged into {landing}, as {commit:.12}",
    events.LandingRestarted: "{landing} restarts at {now:.12} ({reason}); the old commits are in {archive}",
    events.PullRequestOpened: "{actor} opened {url:line} for {branch} at {commit:.12}",
    events.CheckoutUpdated: "{branch} is at {now:.12}[, {files:count file} in {place}]",
    events.FilesChosen: "the {role} plans from {chosen:some}, of {offered:count file} offered",
    events.TierEscalated: "the {role} gets a {tier} model for this attempt, not a {instead_of} one: {reason}",
    events.SessionKept: (
        "the conversation {conversation} with {agent} {unfinished:was interrupted and can or can} be resumed"
    ),
    events.SessionLost: "the conversation {conversation} with {agent} is over: {reason:line}",
    events.LimitReached: (
        "{agent} has reached its limit, {said:until or perhaps until} {until:moment}: {reason:line}"
    ),
    events.AgentSwitched: "{successor} is the {role} until {until:moment}: {agent} has reached its limit",
    events.FrictionNoted: "friction: {issue}[ {skill}] ({persona}): {detail:line}",
    events.StageStarted: "{stage} begins{iteration:iteration} ({name})",
}
"""
The kinds of events that one sentence tells. A function tells each of the others.

`{field}` or `{field:form}` is a field of the event. `[part]` is left out if a field in it is empty;
`[part|other]` is then `other`.
"""

EMPTY = ("", (), None)
"""Values of a field that is empty; 0 is a number."""

PART = re.compile(r"\[([^|\]]*)\|?([^\]]*)\]")
FIELD = re.compile(r"\{([\w.]+):?([^}]*)\}")

FORMS: dict[str, Callable[[Any], str]] = {
    "moment": moment,
    "clock": lambda instant: instant[11:19],
    "amounts": amounts,
    "some": _list,
    "all": ", ".join,
    "size": lambda names: str(len(names)),
    "paths": lambda conflicts: _list(tuple(conflict.path for conflict in conflicts)),
    "driver": lambda number: "" if number == 1 else f", driver {number}",
    "iteration": lambda number: f", iteration {number}" if number > 1 else "",
    "line": first_line,
    "line160": lambda text: first_line(text, 160),
    "line200": lambda text: first_line(text, 200),
}
"""
How a field is shown.

`count NOUN` counts it, `YES or NO` are words for a flag, which may be none, and any other form is Python's
own, as in `.12`.
"""


@singledispatch
def said(event: Event) -> str:
    """What happened, in words."""
    value = {name: attrgetter(name)(event) for name, _ in FIELD.findall(SENTENCES[type(event)])}

    def part(found: re.Match[str]) -> str:
        missing = any(value[name] in EMPTY for name, _ in FIELD.findall(found[1]))
        return found[2] if missing else found[1]

    return FIELD.sub(lambda found: _shown(value[found[1]], found[2]), PART.sub(part, SENTENCES[type(event)]))


def _shown(value: Any, form: str) -> str:
    if form.startswith("count "):
        return counted(value if isinstance(value, int) else len(value), form.removeprefix("count "))
    if " or " in form:
        return form.split(" or ")[0 if value else 1]
    return FORMS[form](value) if form in FORMS else format(value, form)


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


@said.register(events.PlanPaused)
def _(event: events.PlanPaused) -> str:
    more = f"; {counted(len(event.left), 'phase')} left"
    left = "" if event.reason.endswith(more) else more
    return f"stopped: {event.reason}{left}; {event.branch} is at {event.commit[:12]}"


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


@said.register(events.AttemptInspected)
def _(event: events.AttemptInspected) -> str:
    found = [f"{item.severity}: {item.title}" for item in event.findings]
    found += [f"needs a person: {what}" for what in event.protected]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"inspected: {first_line(found[0], 160)}{more}" if found else "inspected"


@said.register(events.StepCompleted)
def _(event: events.StepCompleted) -> str:
    value = "unknown" if event.score is None or event.score.value is None else event.score.value
    points = "" if event.score is None else f", score {value}"
    there = f": nothing to change, {event.found[:12]} already passes" if event.found else ""
    return f"done in {counted(event.attempts, 'attempt')}{points}{there}"


@said.register(events.PlanForged)
def _(event: events.PlanForged) -> str:
    if not event.content:
        return f"nothing to review: {event.reason}"
    warning = f"; but {first_line(event.warning, 160)}" if event.warning else ""
    return f"ready for review after {counted(event.rounds, 'round')}: {event.reason}{warning}"


@said.register(events.DecisionAsked)
def _(event: events.DecisionAsked) -> str:
    if event.kind == "question":
        names = " | ".join(choice.name for choice in event.choices)
        return f"{label(event.kind, event.number)}: {first_line(event.text, 160)} ({names})"
    if event.kind == "approval":
        return f"needs the approval of a person, content {event.content[:12]}"
    what = f"gate {event.name} waits for a person (tree {event.content[:12]})"
    return f"{what}: {first_line(_list(event.reasons, 1), 160)}"


@said.register(events.DecisionMade)
def _(event: events.DecisionMade) -> str:
    why = f": {first_line(event.reason)}" if event.reason else ""
    if event.kind == "question":
        return f"{event.actor} answered {label(event.kind, event.number)} with {event.choice}{why}"
    if event.kind == "approval":
        return f"approved by {event.actor}, content {event.content[:12]}"
    how = "approved" if event.approves else "rejected"
    return f"{event.actor} {how} gate {event.name} (tree {event.content[:12]}){why}"


@said.register(events.LeaseReleased)
def _(event: events.LeaseReleased) -> str:
    how = f"was taken away by {event.actor}" if event.forced else "was released"
    return f"lease {event.fence} of {event.holder} {how}: {first_line(event.reason)}"


@said.register(events.MergeChecked)
def _(event: events.MergeChecked) -> str:
    evidence = event.evidence
    what = f"merged with {event.onto[:12]}"
    if not event.plan:
        itself = evidence.commit == event.onto
        what = f"of {event.branch} {'alone' if itself else 'with what has landed'}"
    return f"evidence {what}: {evidence.outcome.value}, {evidence.reason} (tree {evidence.tree[:12]})"


@said.register(events.ConflictsForeseen)
def _(event: events.ConflictsForeseen) -> str:
    pairs = tuple(f"{item.one} with {item.other} in {_list(item.paths)}" for item in event.conflicts)
    return f"will conflict: {_list(pairs)}"


@said.register(events.ContextComposed)
def _(event: events.ContextComposed) -> str:
    cut = tuple(part.name for part in event.parts if part.left_out)
    how = f"; shortened: {_list(cut, 7)}" if cut else ""
    again = "; asked again, in short" if event.simplified else ""
    return f"the {event.role} was told {counted(event.tokens, 'token')}{how}{again}"


STAGE_ENDS = {
    "completed": "{stage} — completed: {reason}",
    "approved": "{stage} — Approved: {reason}",
    "revision": "{stage} — Revision Required (iteration {iteration}): {reason}",
    "escalated": "{stage} — escalated to human: {reason}",
}


@said.register(events.StageEnded)
def _(event: events.StageEnded) -> str:
    reason = first_line(event.reason, 200)
    said = STAGE_ENDS.get(event.outcome, "{stage}: {reason}")
    return said.format(stage=event.stage, iteration=event.iteration, reason=reason)


@said.register(events.TaskEnded)
def _(event: events.TaskEnded) -> str:
    if event.succeeded:
        place = f", {event.branch} at {event.commit[:12]}" if event.branch else ""
        return f"finished its pipeline{place}"
    again = f"planforge task resume {event.task} --at {event.stage}"
    look = f"; look at {event.document}" if event.document else ""
    return f"stopped at {event.stage}{look}; resume it with `{again}`"
