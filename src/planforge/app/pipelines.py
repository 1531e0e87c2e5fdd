"""
The pipelines of a project: its own and those that come with Planforge.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from planforge.app import contexts, settings
from planforge.rules.pipelines import Pipeline
from planforge.rules.pipelines.builtin import BUILTIN, named
from planforge.rules.pipelines.checking import faults
from planforge.rules.pipelines.proving import prove


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


def check(root: Path, names: Sequence[str]) -> list[Checked]:
    """Check some, or all."""
    roles = contexts.library_at(root, settings.read(root).agents.roles_directory).roles
    found = [find(root, name) for name in names] or known(root)
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
