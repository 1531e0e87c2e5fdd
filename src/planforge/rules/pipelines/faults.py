"""
What is wrong with a pipeline, as far as looking at it tells.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from planforge.errors import InvalidInput, did_you_mean
from planforge.rules.loops.policies import named
from planforge.rules.pipelines import NAME, InvalidPipeline, Pipeline, Stage

TIERS = ("", "heavy", "balanced", "light")


def faults(pipeline: Pipeline, roles: Collection[str]) -> Iterator[str]:
    """Everything that cannot be meant: unknown names, loops without an end, verdicts that nobody gives."""
    if not pipeline.stages:
        yield "it has no stages"
    names = [stage.name for stage in pipeline.stages]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"there are two stages `{name}`"
    for index, stage in enumerate(pipeline.stages):
        for fault in (*_of_stage(stage, roles), *_of_gates(pipeline, stage), *_of_revision(pipeline, index)):
            yield f"stage `{stage.name}`: {fault}"
    yield from _of_requirements(pipeline)


def _of_stage(stage: Stage, roles: Collection[str]) -> Iterator[str]:
    if not NAME.fullmatch(stage.name):
        yield "its name has other characters than small letters, digits and dashes"
    for role in filter(None, (stage.role, stage.revised_by)):
        if role not in roles:
            yield f"there is no role `{role}`{did_you_mean(role, roles)}"
    if not stage.role:
        yield "it has no role"
    if stage.tier not in TIERS:
        yield f"`{stage.tier}` is not a tier{did_you_mean(stage.tier, TIERS)}"
    if "/" in stage.leaves or "\\" in stage.leaves or stage.leaves.startswith("."):
        yield f"`{stage.leaves}` is not the name of a document"
    if stage.judges and not stage.verdict:
        yield f"it judges {' and '.join(stage.judges)}, but has no verdict"
    if stage.verdict and not stage.judges:
        yield "it has a verdict, but does not say what it judges"


def _of_gates(pipeline: Pipeline, stage: Stage) -> Iterator[str]:
    try:
        afters, _ = stage.afters, stage.exit
    except InvalidInput as error:
        yield error.message
        return
    known = {each.name: each for each in pipeline.stages}
    for after in afters:
        if after.stage not in known:
            yield f"its gate waits for `{after.stage}`, which is no stage{did_you_mean(after.stage, known)}"
        elif not known[after.stage].verdict:
            yield f"its gate waits for the verdict of `{after.stage}`, which writes none"


def _of_revision(pipeline: Pipeline, index: int) -> Iterator[str]:
    stage = pipeline.stages[index]
    if not stage.verdict:
        if stage.on_revision:
            yield "it has no verdict, so nothing ever goes back"
        return
    if stage.max_iterations < 1:
        yield f"its loop has no bound: `max_iterations` is {stage.max_iterations}"
    try:
        named(stage.policy, stage.limits)
    except InvalidInput as error:
        yield error.message
    try:
        target = pipeline.back_to(index)
    except InvalidPipeline as error:
        yield error.message
        return
    goes = f"a revision goes to `{pipeline.stages[target].name}`"
    changed = {kind for each in pipeline.stages[target:index] for kind in each.writes}
    if target >= index:
        yield f"{goes}, which comes later"
    elif not changed & set(stage.judges):
        yield f"{goes}, and nothing from there on changes what it judges"


def _of_requirements(pipeline: Pipeline) -> Iterator[str]:
    known = {stage.name: stage for stage in pipeline.stages}
    for name in pipeline.requires:
        if name not in known:
            yield f"it requires `{name}`, which is no stage{did_you_mean(name, known)}"
        elif not known[name].verdict:
            yield f"it requires the verdict of `{name}`, which writes none"
    if any(stage.lands for stage in pipeline.stages) and not pipeline.requires:
        yield "it lands work, but requires nothing to have approved it"
