"""
The policies by name, with their settings.

Each of the documents that Planforge is made from has a loop of its own; each is a few guards here. A setting
that a policy does not have is an error, and so is one that makes no sense.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from planforge.errors import InvalidInput, did_you_mean
from planforge.rules.loops import convergence, reviews, stalls
from planforge.rules.loops.convergence import Thresholds
from planforge.rules.loops.guards import Policy


class _Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be set."""


class Cap(_Settings, frozen=True, kw_only=True):
    """How many rounds of audit a plan gets."""

    cap: int = 5


class Iterations(_Settings, frozen=True, kw_only=True):
    """How often a stage is reviewed."""

    max_iterations: int = 3


class Stall(_Settings, frozen=True, kw_only=True):
    """How long a loop may go without progress, and how long at all."""

    stall_threshold: int = 3
    ceiling: int = 20


class FixRounds(Stall, frozen=True, kw_only=True):
    """The same for mending what an integration or acceptance test found."""

    ceiling: int = 10


class Signature(_Settings, frozen=True, kw_only=True):
    """How often work is audited, and how often the same failure may come back."""

    cap: int = 3
    repeats: int = 2


class Stuck(_Settings, frozen=True, kw_only=True):
    """When whoever builds code is stuck."""

    same_tests: int = 3
    failed_exits: int = 2
    ceiling: int = 50


Settings = Cap | Iterations | Stall | FixRounds | Signature | Stuck | Thresholds


def blocking_only(cap: int = 5) -> Policy:
    """Revise while something blocks, at most `cap` rounds; what nobody can read goes to a person."""
    return Policy("blocking-only", reviews.verdict(cap, "CAP_REACHED"))


def _max_iterations(settings: Iterations) -> Policy:
    return Policy("max-iterations", reviews.verdict(settings.max_iterations, "max iterations reached"))


def _progress(name: str) -> Callable[[Stall], Policy]:
    def build(settings: Stall) -> Policy:
        return Policy(name, stalls.nothing_open(), stalls.stall(settings.stall_threshold, settings.ceiling))

    return build


def _signature(settings: Signature) -> Policy:
    return Policy(
        "repeated-failure",
        reviews.same_signature(settings.repeats),
        reviews.verdict(settings.cap, "the fixes are used up"),
    )


def _stuck(settings: Stuck) -> Policy:
    return Policy(
        "code-builder",
        stalls.nothing_open(),
        stalls.task_fails(settings.failed_exits),
        stalls.same_tests_fail(settings.same_tests),
        convergence.max_iterations(settings.ceiling),
    )


def _convergence(settings: Thresholds) -> Policy:
    return Policy("convergence", *convergence.convergence(settings))


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A policy that can be asked for by name."""

    about: str
    settings: type[Settings]
    build: Callable[..., Policy]


POLICIES: dict[str, Known] = {
    "blocking-only": Known(
        about="audit and revise a plan while something blocks",
        settings=Cap,
        build=lambda settings: blocking_only(settings.cap),
    ),
    "max-iterations": Known(about="review a stage so many times", settings=Iterations, build=_max_iterations),
    "progress": Known(
        about="develop, test and review while it gets better; replan once",
        settings=Stall,
        build=_progress("progress"),
    ),
    "fix-rounds": Known(
        about="mend what integration or acceptance found", settings=FixRounds, build=_progress("fix-rounds")
    ),
    "convergence": Known(
        about="polish until it is good enough, under six guards", settings=Thresholds, build=_convergence
    ),
    "repeated-failure": Known(
        about="audit and fix finished work; the same failure twice stops it",
        settings=Signature,
        build=_signature,
    ),
    "code-builder": Known(about="build code task by task until its tests pass", settings=Stuck, build=_stuck),
}


def named(name: str, values: Mapping[str, object] | None = None) -> Policy:
    """The policy called `name` with these settings, text or numbers, over its defaults."""
    if name not in POLICIES:
        known_names = ", ".join(POLICIES)
        raise InvalidInput(
            f"there is no policy `{name}`{did_you_mean(name, POLICIES)}", f"known are {known_names}"
        )
    known = POLICIES[name]
    fields = {field.name: field for field in msgspec.structs.fields(known.settings)}
    for key in values or {}:
        if key not in fields:
            raise InvalidInput(
                f"policy `{name}` has no setting `{key}`{did_you_mean(key, fields)}",
                f"it has {', '.join(fields)}" if fields else None,
            )
    try:
        settings = msgspec.convert(dict(values or {}), known.settings, strict=False)
        policy: Policy = known.build(settings)
    except (msgspec.ValidationError, ValueError) as error:
        raise InvalidInput(f"policy `{name}` cannot be set so: {error}") from error
    return policy
