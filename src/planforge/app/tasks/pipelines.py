"""
The pipelines of a project: its own and those that come with Planforge.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import see
from planforge.app import settings
from planforge.app.context import gather
from planforge.app.settings.role_library import library_at
from planforge.errors import InvalidInput
from planforge.rules.gates.grammar import MAX_BYTES, Gate, Kind, in_markdown
from planforge.rules.pipelines import Pipeline
from planforge.rules.pipelines.builtin import BUILTIN, named
from planforge.rules.pipelines.faults import faults
from planforge.rules.pipelines.proof import prove
from planforge.workspace.files import beneath

if TYPE_CHECKING:
    from planforge.app.project import Project


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What going through a pipeline has shown."""

    pipeline: str
    clean: bool
    states: int
    faults: tuple[str, ...]


def known(root: Path) -> list[Pipeline]:
    """All of them, the project's own in the place of ours of the same name."""
    return list({**BUILTIN, **_own(root)}.values())


def find(root: Path, name: str) -> Pipeline:
    """One of them."""
    return named(name, _own(root))


def runnable(project: Project, name: str) -> Pipeline:
    """One of them, with the gates of its document, if nothing gets past it."""
    found = _with_gates(project.root, find(project.root, name))
    checked = _checked(found, gather.library(project).roles)
    if not checked.clean:
        raise InvalidInput(
            f"pipeline `{name}` cannot be run: {checked.faults[0]}", see("pipeline check", name)
        )
    return found


def _with_gates(root: Path, pipeline: Pipeline) -> Pipeline:
    """The pipeline with the gates that its document has for stages without any of their own."""
    if not pipeline.gates:
        return pipeline
    try:
        content = beneath.read(root, pipeline.gates, MAX_BYTES)
    except OSError as error:
        raise InvalidInput(f"cannot read `{pipeline.gates}`: {error.strerror}") from error
    given = {(gate.stage, gate.kind): gate for gate in in_markdown(content.decode("utf-8", "replace"))}
    names = {stage.name for stage in pipeline.stages}
    for stage, kind in given:
        if stage not in names:
            raise InvalidInput(f"`{pipeline.gates}` has {kind.value} for `{stage}`, which is no stage")
    stages = tuple(
        msgspec.structs.replace(
            stage,
            gate=stage.gate or _words(given.get((stage.name, Kind.GATES))),
            outputs=stage.outputs or _words(given.get((stage.name, Kind.OUTPUTS))),
        )
        for stage in pipeline.stages
    )
    return msgspec.structs.replace(pipeline, stages=stages)


def _words(gate: Gate | None) -> str:
    return "\n".join(map(str, gate.directives)) if gate else ""


def check(root: Path, names: Sequence[str]) -> list[Checked]:
    """Check some, or all."""
    roles = library_at(root, settings.read(root).agents.roles_directory).roles
    found = [find(root, name) for name in names] or known(root)
    found = [_with_gates(root, each) for each in found]
    return [_checked(pipeline, roles) for pipeline in found]


def _own(root: Path) -> dict[str, Pipeline]:
    return {
        name: msgspec.structs.replace(pipeline, name=name)
        for name, pipeline in settings.read(root).pipelines.items()
    }


def _checked(pipeline: Pipeline, roles: Collection[str]) -> Checked:
    found = list(faults(pipeline, roles))
    states = 0
    if not found:  # what cannot be read cannot be gone through
        proof = prove(pipeline)
        states = proof.states
        found += [str(bypass) for bypass in proof.bypasses]
        found += [f"stage `{name}` is never reached" for name in proof.unreachable]
        if not proof.complete:
            found.append("it has too many states to go through, so nothing is shown")
    return Checked(pipeline=pipeline.name, clean=not found, states=states, faults=tuple(found))
