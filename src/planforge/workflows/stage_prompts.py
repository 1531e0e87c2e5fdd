"""
What agents are asked in the stages of a pipeline, in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from planforge.kernel.wording import counted
from planforge.rules import friction
from planforge.rules.findings import Finding
from planforge.rules.gates.grammar import Artifact
from planforge.rules.pipelines import Stage
from planforge.workflows.context import Material, Prompt
from planforge.workflows.course import Course
from planforge.workflows.prompts import BOUNDS, DONE, VERDICT_FORM, only

FORMS = {
    "audit": VERDICT_FORM,
    "review": """\
Read the files themselves, not what is said about them; whether it does what was asked comes before how well.
End your answer with one line, and exactly one of these two:
**Verdict:** Approved
**Verdict:** Revision Required
Above it say what has to change and where. Change no file.""",
    "module": """\
List what you found as a table with the columns Severity (required or suggested), File, Issue and
Suggested Fix. End your answer with one line: `Verdict: APPROVE` if nothing is required, else
`Verdict: REJECT`. Change no file.""",
    "polish": """\
Answer with one JSON object and nothing else:
{"issues": [{"severity": "critical|medium|minor", "description": "...", "location": "...",
             "recommendation": "..."}]}
An empty list means that you found nothing. Change no file.""",
}
"""How each kind of review is to be written."""


LISTED = """\
If you know every file that has to change, list them under `## Changes`, one item each with its path in
backticks: whoever implements it may change these files and no others."""


def stage(course: Course, of: Stage, iteration: int, texts: Mapping[str, str]) -> Prompt:
    """The task of the agent that plays a stage."""
    request = course.request
    head = [f"Role: {course.role(of)}", f"Task: {request.task}", f"Stage: {of.name}"]
    head += [f"Iteration: {iteration}", f"Name: {course.name(of, iteration)}"]
    asked, closing = _asked(course, of)
    material = [Material(name="what is wanted", text=request.request)]
    if course.problem is not None and of.writes:
        material.append(Material(name="what has to change", text=_problem(course)))
    material += [Material(name=each, text=text) for each, text in texts.items()]
    if of.verdict and course.changed:
        material.append(Material(name="the files that the change touches", text="\n".join(course.files)))
    return Prompt(
        head="\n".join(head),
        asked=f"{asked} {BOUNDS}",
        material=tuple(material),
        closing=f"{closing}\n{friction.ASKED}",
        verdict=of.verdict,
    )


def change(prompt: Prompt, files: Iterable[str], *, attempt: int, problem: str) -> Prompt:
    """The prompt of a stage that changes code: which files it may touch, and why the last attempt failed."""
    material = prompt.material
    if problem:
        rejected = Material(name="why the attempt before this one was not taken", text=problem)
        material = (material[0], rejected, *material[1:])
    return msgspec.structs.replace(
        prompt,
        head=f"{prompt.head}\nAttempt: {attempt}" if attempt > 1 else prompt.head,
        asked=f"{prompt.asked}\n\n{only(files)}",
        material=material,
        lasting=len(material),
    )


def _asked(course: Course, of: Stage) -> tuple[str, str]:
    again = course.problem is not None
    if of.verdict:
        what = " and ".join(of.judges)
        code = "The current directory holds the work. " if course.changed else ""
        return f"{code}Review the {what} of this task.", FORMS[of.verdict]
    if course.writes_code(of):
        what = "Settle what the review found, in" if again else "Do this task in"
        return f"{what} the current directory.", f"{DONE}\nYour answer is kept as `{of.leaves}`.{_size(of)}"
    listed = f" {LISTED}" if "plan" in of.writes else ""
    what = f"Revise `{of.leaves}` so that what was found is settled" if again else f"Write `{of.leaves}`"
    closing = (
        f"Answer with the whole text of `{of.leaves}` and nothing else; your answer is the file. "
        f"Change no file.{listed}{_size(of)}"
    )
    return f"{what} for this task, from the code in the current directory.", closing


def _size(of: Stage) -> str:
    """How long the answer must be for the stage to count as done."""
    least = [
        item.least
        for item in of.exit.directives
        if isinstance(item, Artifact) and item.path == f"{{task}}/{of.leaves}"
    ]
    return f" It must have at least {counted(max(least), 'byte')}." if least else ""


def _problem(course: Course) -> str:
    problem = course.problem
    assert problem is not None
    return "\n".join([f"{problem.stage}: {problem.reason}", *_findings(problem.findings)])


def _findings(findings: Iterable[Finding]) -> Iterable[str]:
    for finding in findings:
        where = f" ({finding.location})" if finding.location else ""
        yield f"- {finding.severity.value}: {finding.title}{where}"
