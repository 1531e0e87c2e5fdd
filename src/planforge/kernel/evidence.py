"""
What Planforge measured itself, on an exact tree.

An outcome has three values and the third is never the first: a check that could
not run, or that ran no test, cannot tell. Evidence may have parts, one for each
check; what it says as a whole follows from those that are required. `compare` says
what changed since the evidence of another tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

import msgspec

TESTS = "tests"
"""The part that nothing passes without."""

STATIC = ("lint", "types")
"""The parts whose findings are counted together as what a linter found."""


class Outcome(StrEnum):
    """What a check says of a tree."""

    PASS = "pass"
    FAIL = "fail"
    CANNOT_TELL = "cannot_tell"


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many tests there were and how they went."""

    total: int
    passed: int
    failed: int
    skipped: int

    def __add__(self, other: Counts) -> Counts:
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})

    def __sub__(self, other: Counts) -> Counts:
        return Counts(**{name: getattr(self, name) - getattr(other, name) for name in self.__struct_fields__})


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """How many lines the tests went through, of how many there are."""

    covered: int
    total: int


class Attached(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is kept with evidence, among the objects."""

    name: str
    object: str


NAMES = "names"
"""What the names of all tests are attached as, a line each."""

CHECK = "check"
"""What the check itself is attached as, so that it can be run again."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One check among several, as observed."""

    name: str
    outcome: Outcome
    reason: str
    required: bool = True
    """Whether its outcome counts; findings of a part that is not required are counted and no more."""
    ran: bool = True
    """Whether the command was started at all."""
    command: tuple[str, ...] = ()
    exit_code: int | None = None
    counts: Counts | None = None
    """Where the part counts tests."""
    failing: tuple[str, ...] = ()
    findings: int | None = None
    """What a linter or type checker found, where that could be counted."""
    warnings: int | None = None
    """What a compiler or test runner warned of, where that could be counted."""
    coverage: Coverage | None = None
    output: str = ""
    """The content address of everything the command printed."""
    attached: tuple[Attached, ...] = ()
    """The reports that it left, the names of its tests if they are known, and the check itself."""
    seconds: float = 0.0

    def attachment(self, name: str) -> str:
        """The content address of what is attached under a name; empty where nothing is."""
        return next((item.object for item in self.attached if item.name == name), "")


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One check of one tree, or several together, as observed."""

    check: str
    outcome: Outcome
    reason: str
    """Why the outcome is what it is, in one phrase."""
    command: tuple[str, ...]
    exit_code: int | None
    """None where the command did not end by itself."""
    counts: Counts | None
    """None where no count could be read; never a guess."""
    failing: tuple[str, ...]
    commit: str
    tree: str
    output: str
    """The content address of everything the command printed."""
    seconds: float
    """Wall-clock time: an observation, never part of a decision."""
    parts: tuple[Part, ...] = ()
    """Each check by itself; empty where there was only one command and nothing else to say."""
    sandbox: str = ""
    """What the commands were kept in; empty where nobody noted it."""
    fingerprint: str = ""
    """What determined the evidence besides the tree; empty where nobody worked it out."""
    reused: bool = False
    """It was measured before, on the same tree in the same way, and not again."""

    def part(self, name: str) -> Part | None:
        """The part of this name, if there is one."""
        return next((part for part in self.parts if part.name == name), None)

    @property
    def compile_ok(self) -> bool | None:
        """Whether the tree could be built, as far as a build says so; None where none did."""
        build = self.part("build")
        if build is None or build.outcome is Outcome.CANNOT_TELL:
            return None
        return build.outcome is Outcome.PASS


def combined(parts: Iterable[Part]) -> tuple[Outcome, str]:
    """
    What the parts add up to, and why: a required one that fails, fails; one that cannot tell, cannot tell.

    Without a part for the tests that passed, nothing passes.
    """
    known = list(parts)
    required = [part for part in known if part.required or part.name == TESTS]
    for outcome in (Outcome.FAIL, Outcome.CANNOT_TELL):
        found = [part for part in required if part.outcome is outcome]
        # What did not run because something failed is told by what failed.
        found = [part for part in found if part.ran] or found
        if found:
            return outcome, "; ".join(_said(part) for part in found)
    tests = next((part for part in known if part.name == TESTS), None)
    if tests is None:
        return Outcome.CANNOT_TELL, "there is no check `tests`"
    return Outcome.PASS, tests.reason


def _said(part: Part) -> str:
    return part.reason if part.name == TESTS else f"{part.name}: {part.reason}"


class Delta(msgspec.Struct, frozen=True, kw_only=True):
    """What changed between two pieces of evidence. None, and no name, is what cannot be told."""

    base: str
    """The tree that it is compared with."""
    counts: Counts | None = None
    """How many more there are; below zero, how many fewer."""
    newly_failing: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    """Tests that failed before and are known to pass, or to be skipped, now."""
    vanished: tuple[str, ...] = ()
    """Tests that there are no more."""
    vanished_at_least: int = 0
    """How many fewer tests there are by the counts alone; more may be gone if others came."""
    compile_ok: bool | None = None
    warnings_delta: int | None = None
    lint_delta: int | None = None
    """More findings of linters and type checkers than before."""
    coverage_delta: int | None = None
    """Change of the covered share of lines, in hundredths of a percent."""


def compare(
    base: Evidence,
    new: Evidence,
    before: Iterable[str] | None = None,
    after: Iterable[str] | None = None,
) -> Delta:
    """
    What changed from `base` to `new`; the names of all their tests say more, where they are known.

    A name that two tests have counts twice, so that one of them cannot vanish behind the other.
    """
    told = Outcome.CANNOT_TELL not in (base.outcome, new.outcome) or _counted(base, new)
    old, now = Counter(base.failing), Counter(new.failing)
    vanished = Counter(before) - Counter(after) if before is not None and after is not None else Counter()
    known = told and base.counts is not None and new.counts is not None
    counts = new.counts - base.counts if known and new.counts and base.counts else None
    return Delta(
        base=base.tree,
        counts=counts,
        newly_failing=_sorted(now - old) if told else (),
        fixed=_sorted(old - now - vanished) if told and _all_named(new) else (),
        vanished=_sorted(vanished),
        vanished_at_least=max(-counts.total, 0) if counts else 0,
        compile_ok=new.compile_ok,
        warnings_delta=_delta(base, new, "warnings"),
        lint_delta=_delta(base, new, "findings", STATIC),
        coverage_delta=_coverage(base, new),
    )


def _counted(base: Evidence, new: Evidence) -> bool:
    """Whether both counted tests, whatever their other parts say."""
    return all(
        (part := evidence.part(TESTS)) is not None and part.outcome is not Outcome.CANNOT_TELL
        for evidence in (base, new)
    )


def _all_named(evidence: Evidence) -> bool:
    """Whether every failing test is named, so that one without a name in the list does not fail."""
    return evidence.counts is not None and len(evidence.failing) >= evidence.counts.failed


def _sorted(names: Counter[str]) -> tuple[str, ...]:
    return tuple(sorted(names.elements()))


def _delta(base: Evidence, new: Evidence, field: str, names: tuple[str, ...] = ()) -> int | None:
    """The difference of a count over the parts that have it; None unless both have it in the same ones."""
    numbers: list[dict[str, int]] = [
        {
            part.name: getattr(part, field)
            for part in evidence.parts
            if getattr(part, field) is not None and (not names or part.name in names)
        }
        for evidence in (base, new)
    ]
    if not numbers[0] or numbers[0].keys() != numbers[1].keys():
        return None
    return sum(numbers[1].values()) - sum(numbers[0].values())


def _coverage(base: Evidence, new: Evidence) -> int | None:
    shares = [_share(evidence) for evidence in (base, new)]
    if shares[0] is None or shares[1] is None:
        return None
    return shares[1] - shares[0]


def _share(evidence: Evidence) -> int | None:
    part = evidence.part(TESTS)
    if part is None or part.coverage is None or part.coverage.total < 1:
        return None
    return 10_000 * part.coverage.covered // part.coverage.total
