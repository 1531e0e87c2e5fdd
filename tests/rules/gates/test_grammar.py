"""The grammar of gates: what it reads, what it refuses, and where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planforge.rules.gates.grammar import (
    After,
    Artifact,
    Forbid,
    Gate,
    InvalidGate,
    Kind,
    Op,
    Predicate,
    Require,
    in_markdown,
    parse,
)


def predicate(field: str, op: Op, *values: str) -> Predicate:
    return Predicate(field=field, op=op, values=values)


@pytest.mark.parametrize(
    ("line", "directive"),
    [
        ("artifact {task}/PLAN.md", Artifact(path="{task}/PLAN.md")),
        (
            "artifact {engineering}/sprints/{sprint}/{task}/PLAN.md min=200",
            Artifact(path="{engineering}/sprints/{sprint}/{task}/PLAN.md", least=200),
        ),
        ("artifact notes#1.md min=0", Artifact(path="notes#1.md", least=1)),
        (
            "require task.status == planned",
            Require(predicate=predicate("task.status", Op.IS, "planned")),
        ),
        ("require task.status==planned", None),
        (
            "require task.status in [planned, plan-revision-required]",
            Require(predicate=predicate("task.status", Op.IN, "planned", "plan-revision-required")),
        ),
        (
            "forbid task.status != in progress",
            Forbid(predicate=predicate("task.status", Op.IS_NOT, "in progress")),
        ),
        ("after review-plan = approved", After(stage="review-plan", verdict="approved")),
        ("after review-plan=revision  # said so", After(stage="review-plan", verdict="revision")),
        ("after triage = n/a", After(stage="triage", verdict="n/a")),
    ],
)
def test_every_directive_is_read(line: str, directive: object) -> None:
    if directive is None:
        with pytest.raises(InvalidGate, match="is not how `require` is written"):
            parse(line, "plan")
    else:
        assert parse(line, "plan") == Gate(stage="plan", directives=(directive,))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("demand task.status == planned", "`demand` is not a directive"),
        ("artifact", "is not how `artifact` is written"),
        ("artifact a b", "is not how `artifact` is written"),
        ("artifact a min=lots", "is not a number of bytes"),
        ("artifact a min=-1", "is not a number of bytes"),
        ("artifact a min=\u0661", "is not a number of bytes"),
        ("artifact /etc/passwd", "leads out of the project"),
        ("artifact ../x", "leads out of the project"),
        ("artifact {task}/../../x", "leads out of the project"),
        ("artifact {home}/x", "`{home}` stands for nothing"),
        ("artifact {task/x", "brace that is not closed"),
        ("require status == planned", "`status` is not a field"),
        ("require task.status = planned", "is not how `require` is written"),
        ("require task.status in []", "is not a value"),
        ("require task.status in [a,,b]", "is not a value"),
        ("require task.status == ", "is not how `require` is written"),
        ("forbid task.status > 3", "is not how `forbid` is written"),
        ("after review-plan = Approved", "`Approved` is not a verdict"),
        ("after review-plan = maybe", "`maybe` is not a verdict"),
        ("after review-plan", "is not how `after` is written"),
        ("after 1st = approved", "cannot be the name of a stage"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(line: str, problem: str) -> None:
    with pytest.raises(InvalidGate, match=problem) as caught:
        parse(f"# a comment\n\n{line}\n", "plan")
    assert caught.value.message.startswith("line 3 of the gates of `plan`: ")


@pytest.mark.parametrize("line", ["forbid task.status == x", "after plan = approved"])
def test_outputs_have_artifacts_and_requirements_only(line: str) -> None:
    with pytest.raises(InvalidGate, match="says nothing about outputs"):
        parse(line, "plan", Kind.OUTPUTS)


DOCUMENT = """
# Gates

```gates phase=plan
forbid task.status == committed
```

~~~~gates phase=implement
artifact {task}/PLAN.md min=200
# not yet: after review-plan = approved
~~~~

```python
gates = "phase=plan"
```

```outputs phase=plan
artifact {task}/PLAN.md min=200
```
"""


def test_gates_are_found_in_the_fences_of_a_document() -> None:
    found = in_markdown(DOCUMENT)
    assert [(gate.kind.value, gate.stage, len(gate.directives)) for gate in found] == [
        ("gates", "plan", 1),
        ("gates", "implement", 1),
        ("outputs", "plan", 1),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("```gates phase=plan\n```\n```gates phase=plan\n```", "`plan` has gates twice"),
        ("```gates phase=plan\nforbid a.b == c", "is never closed"),
        ("~~~text\n```gates phase=plan\nforbid a.b == c\n```", "`text` is never closed"),
        ("```gates plan\n```", "is not how a gate is labelled"),
        ("```gates\n```", "is not how a gate is labelled"),
        ("```gates phase=plan extra\n```", "is not how a gate is labelled"),
        ("```gates phase=plan\nnonsense\n```", "line 2 of the gates of `plan`"),
        ("x" * 1_000_001, "is not read for gates"),
    ],
)
def test_a_document_with_a_broken_gate_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidGate, match=problem):
        in_markdown(text)


@given(st.text(alphabet=st.sampled_from("artifcsequobdn =!<>[]{}.#/\\\n`~ gates=phx12"), max_size=120))
def test_whatever_is_written_is_read_or_refused(text: str) -> None:
    for read in (lambda: parse(text, "plan"), lambda: in_markdown(text)):
        try:
            read()
        except InvalidGate:
            continue
