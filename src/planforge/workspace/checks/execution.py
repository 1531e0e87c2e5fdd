"""
Runs a project's own checks on an exact tree and says what was seen.

The commands run in a fresh checkout that no agent has worked in: a build, types, a
linter, the tests, in this order, then whatever else is asked for. `judgement` says what
came of each; a check that is missing, could not start, ran out of time or ran no test
cannot tell. What depends on a build that failed is not run, and says so.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from planforge.errors import CannotPerform
from planforge.kernel.evidence import (
    CHECK,
    NAMES,
    TESTS,
    Attached,
    Coverage,
    Evidence,
    Outcome,
    Part,
    combined,
)
from planforge.kernel.objects import Objects, address
from planforge.kernel.redaction import Redactor
from planforge.workspace import processes
from planforge.workspace.checks import BUILD, OF_FINDINGS, OF_TESTS, ORDER, Check, Report
from planforge.workspace.checks.judgement import (
    Judgement,
    contradiction,
    judge_command,
    judge_tests,
    names_joined,
)
from planforge.workspace.reports.coverage import read_coverage
from planforge.workspace.reports.findings import (
    Findings,
    read_eslint,
    read_findings,
    read_sarif,
    read_warnings,
)
from planforge.workspace.reports.junit import read_junits
from planforge.workspace.reports.machine import read_go, read_jest, read_mocha
from planforge.workspace.reports.runners import pytest_warnings, read_unittest
from planforge.workspace.reports.tally import LEFT_OUT, Tally, content_of
from planforge.workspace.reports.tap import read_tap
from planforge.workspace.reports.texts import read_summaries

if TYPE_CHECKING:
    from planforge.workspace.sandbox.policy import Level, Policy

READERS = 2
"""Goes up when reports are read or judged differently, so that older evidence is not taken for today's."""

FAILING_LIMIT = 1000
"""How many names of failing tests evidence has; what failed beyond that is in the counts."""

KEPT_FILES, KEPT_BYTES = 100, 16 * 1024 * 1024
"""How many reports of one check are kept, and how much they may hold together."""

FILES_LIMIT = 10_000
"""How many files one report may consist of."""


Watch = Callable[[str, Part | None], None]
"""Told the name of each check that begins, and how each one went."""


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where checks run, and with what."""

    checkout: Path
    root: Path
    objects: Objects
    redact: Redactor
    extra: Mapping[str, str] = {}
    policy: Policy | None = None
    level: Level | None = None

    def filled(self, text: str, reports: Path) -> str:
        """A text with its placeholders replaced."""
        known = {
            "${checkout}": str(self.checkout),
            "${reports}": str(reports),
            "${root}": str(self.root),
            "${PATH}": self.extra.get("PATH", os.environ.get("PATH", os.defpath)),
        }
        for name, value in known.items():
            text = text.replace(name, value)
        return text


async def run_all(
    checks: Mapping[str, Check],
    checkout: Path,
    commit: str,
    tree: str,
    objects: Objects,
    *,
    root: Path | None = None,
    extra: Mapping[str, str] | None = None,
    policy: Policy | None = None,
    level: Level | None = None,
    fingerprint: str = "",
    watch: Watch | None = None,
) -> Evidence:
    """
    Run all `checks` in `checkout`, which holds exactly `tree`, and say what they add up to.

    `root` is the person's own checkout, where virtual environments may lie; `extra` is what preparing the
    checkout added to the environment.
    """
    place = _Place(
        checkout=checkout,
        root=root or checkout,
        objects=objects,
        redact=Redactor.of_environment(),
        extra=extra or {},
        policy=policy,
        level=level,
    )
    tell = watch or (lambda _name, _part: None)
    parts: list[Part] = []
    sandboxes: dict[str, None] = {}
    for name in in_order(checks):
        tell(name, None)
        with tempfile.TemporaryDirectory(prefix="planforge-reports-", ignore_cleanup_errors=True) as made:
            running = _Running(name, checks[name], place, Path(made).resolve())
            if _is_broken(parts):
                part, sandbox = running.not_run(f"not run because {BUILD} failed"), ""
            else:
                part, sandbox = await running.observed()
        sandboxes[sandbox] = None
        parts.append(part)
        tell(name, part)
    return _together(parts, commit, tree, objects, "+".join(filter(None, sandboxes)), fingerprint)


def in_order(names: Iterable[str]) -> list[str]:
    """The names of checks in the order in which they run: build, types, lint, tests, then as they come."""
    known = list(names)
    return [name for name in ORDER if name in known] + [name for name in known if name not in ORDER]


def _is_broken(parts: list[Part]) -> bool:
    return any(part.name == BUILD and part.required and part.outcome is Outcome.FAIL for part in parts)


def _together(
    parts: list[Part], commit: str, tree: str, objects: Objects, sandbox: str, fingerprint: str
) -> Evidence:
    outcome, reason = combined(parts)
    tests = next((part for part in parts if part.name == TESTS), None)
    counts = [part.counts for part in parts if part.counts is not None]
    failing = sorted(name for part in parts for name in part.failing)
    return Evidence(
        check=TESTS,
        outcome=outcome,
        reason=reason,
        command=tests.command if tests else (),
        exit_code=tests.exit_code if tests else None,
        counts=sum(counts[1:], counts[0]) if counts else None,
        failing=tuple(failing[:FAILING_LIMIT]),
        commit=commit,
        tree=tree,
        output=tests.output if tests else objects.put(b""),
        seconds=round(sum(part.seconds for part in parts), 3),
        parts=tuple(parts),
        sandbox=sandbox,
        fingerprint=fingerprint,
    )


class _Running:
    """One check: its command, and the reports that it leaves, wherever links lead by then."""

    def __init__(self, name: str, check: Check, place: _Place, directory: Path) -> None:
        self._name = name
        self._check = check
        self._place = place
        self._directory = directory

    async def observed(self) -> tuple[Part, str]:
        """Run it; its result, and the sandbox that it ran in."""
        self._remove_old()
        try:
            ended = await self._started()
        except CannotPerform as error:
            return self.not_run(self._place.redact.text(error.message)), ""
        output = ended.output.decode("utf-8", "replace")
        of_tests = self._name == TESTS or self._check.report in OF_TESTS
        part = self._part_of_tests(ended, output) if of_tests else self._part_of_command(ended, output)
        if ended.why:  # we ended it, and know why
            part = msgspec.structs.replace(part, outcome=Outcome.CANNOT_TELL, reason=ended.why)
        return part, ended.sandbox

    def not_run(self, reason: str) -> Part:
        """What is said of it where it did not run."""
        return Part(
            name=self._name,
            outcome=Outcome.CANNOT_TELL,
            reason=reason,
            required=self._check.must_pass(self._name),
            ran=False,
            command=self._check.command,
            output=self._place.objects.put(b""),
            attached=self._written(),
        )

    async def _started(self) -> processes.Ended:
        place, check = self._place, self._check
        env = {name: self._filled(value) for name, value in check.env.items()}
        policy = place.policy
        if policy is not None:
            seen = tuple(Path(self._filled(path)) for path in check.visible)
            writable, visible = (*policy.writable, self._directory), (*policy.visible, *seen)
            policy = msgspec.structs.replace(policy, writable=writable, visible=visible)
        return await processes.run(
            [self._filled(word) for word in check.command],
            cwd=place.checkout,
            seconds=check.seconds,
            extra={**place.extra, **env},
            policy=policy,
            level=place.level,
        )

    def _filled(self, text: str) -> str:
        return self._place.filled(text, self._directory)

    def _part(self, ended: processes.Ended, judgement: Judgement) -> Part:
        return Part(
            name=self._name,
            outcome=judgement.outcome,
            reason=self._place.redact.text(judgement.reason),
            required=self._check.must_pass(self._name),
            command=self._check.command,
            exit_code=ended.exit_code,
            output=self._place.objects.put(self._place.redact.octets(ended.output)),
            seconds=round(ended.seconds, 3),
        )

    def _part_of_tests(self, ended: processes.Ended, output: str) -> Part:
        tally = self._tally(output)
        part = self._part(ended, judge_tests(ended.exit_code, tally, self._check.seconds, output))
        part = msgspec.structs.replace(part, coverage=self._coverage(), attached=self._reports())
        if tally is None or tally.doubt:
            return part
        names = names_joined(tally.names) if tally.names else b""
        return msgspec.structs.replace(
            part,
            counts=tally.counts,
            failing=tuple(map(self._place.redact.text, tally.failing[:FAILING_LIMIT])),
            warnings=tally.warnings,
            attached=(*part.attached, *self._attached(NAMES, names)),
        )

    def _part_of_command(self, ended: processes.Ended, output: str) -> Part:
        findings = self._findings(output, ended.exit_code)
        reported = self._check.report in OF_FINDINGS
        judgement = judge_command(ended.exit_code, findings, self._check.seconds, output, reported=reported)
        told = findings if judgement.outcome is not Outcome.CANNOT_TELL else None
        return msgspec.structs.replace(
            self._part(ended, judgement),
            findings=told.total if told else None,
            warnings=told.warnings if told else None,
            attached=self._reports(),
        )

    def _attached(self, name: str, content: bytes) -> tuple[Attached, ...]:
        if not content:
            return ()
        return (Attached(name=name, object=self._place.objects.put(self._place.redact.octets(content))),)

    def _written(self) -> tuple[Attached, ...]:
        return self._attached(CHECK, msgspec.json.encode(self._check, order="deterministic"))

    def _remove_old(self) -> None:
        """Remove reports that came with the tree: they say nothing about this run."""
        for pattern in (self._pattern, self._check.coverage):
            for path in self._files(pattern):
                with contextlib.suppress(OSError):
                    path.unlink()

    @property
    def _pattern(self) -> str:
        return self._check.junit if self._check.report is Report.JUNIT else self._check.file

    def _files(self, pattern: str) -> list[Path]:
        """The files that a pattern means, inside the checkout or beside it where reports belong."""
        if not pattern:
            return []
        asked = Path(self._filled(pattern))
        home = self._directory if asked.is_relative_to(self._directory) else self._place.checkout
        try:
            base = home.resolve()
            relative = asked.relative_to(home) if asked.is_absolute() else asked
            globbed = set("*?[") & set(str(relative))
            found = sorted(base.glob(str(relative)))[:FILES_LIMIT] if globbed else [base / relative]
            return [path for path in (path.resolve() for path in found) if path.is_relative_to(base)]
        except (OSError, RuntimeError, ValueError, NotImplementedError):  # links in circles, odd patterns
            return []

    def _content(self, output: str) -> bytes | None:
        """The content of a report: of its file, or else of the output."""
        for path in self._files(self._check.file):
            content = content_of(path)
            if content is not None:
                return content
        return None if LEFT_OUT.search(output) else output.encode("utf-8", "replace")

    def _tally(self, output: str) -> Tally | None:
        """How many tests there were."""
        match self._check.report:
            case Report.UNITTEST:
                return read_unittest(output)
            case Report.JUNIT:
                return self._junit(output)
            case Report.GO:
                return read_go(output)
            case Report.TAP:
                return read_tap(output)
            case Report.JEST | Report.MOCHA as kind:
                content = self._content(output)
                reader = read_jest if kind is Report.JEST else read_mocha
                return reader(content) if content is not None else None
        return read_summaries(output)

    def _junit(self, output: str) -> Tally | None:
        tally = read_junits(path for path in self._files(self._check.junit))
        if tally is None:
            return None
        doubt = tally.doubt or contradiction(tally, output)
        return tally._replace(doubt=doubt, warnings=pytest_warnings(output))

    def _findings(self, output: str, exit_code: int | None) -> Findings | None:
        """What a linter found, or a build warned of."""
        if self._check.report in OF_FINDINGS:
            reader = read_sarif if self._check.report is Report.SARIF else read_eslint
            return next((reader(path) for path in self._files(self._check.file)), None)
        if self._check.report is Report.NONE or exit_code is None:
            return None
        if self._name == BUILD:
            return Findings(warnings=read_warnings(output))
        return read_findings(output, exit_code)

    def _reports(self) -> tuple[Attached, ...]:
        """The check, and its reports up to a total size."""
        found = [*self._written()]
        left = KEPT_BYTES
        for pattern in (self._pattern, self._check.coverage):
            for path in self._files(pattern):
                content = content_of(path) or b""
                if len(content) <= left and len(found) < KEPT_FILES:
                    left -= len(content)
                    found += self._attached(path.name, content)
        return tuple(found)

    def _coverage(self) -> Coverage | None:
        """How much of the code the tests went through."""
        return next((read_coverage(path) for path in self._files(self._check.coverage)), None)


# What evidence depends on besides the tree


def fingerprint(
    checks: Mapping[str, Check],
    *,
    root: Path,
    sandbox: str = "",
    network: bool = False,
    preparation: str = "",
) -> str:
    """
    A hash over everything besides the tree that evidence depends on.

    That is: the checks (not how long they may take), this version of the readers, the sandbox and whether
    there is a network, how the checkout is prepared, the machine's kind, and which programs the checks
    start: their files, and what is installed in their virtual environments and in `node_modules`.
    """
    place = _Place(checkout=root, root=root, objects=Objects(root), redact=Redactor())
    told: list[object] = [READERS, platform.system(), platform.machine(), sandbox, network, preparation]
    for name in in_order(checks):
        check = checks[name]
        kept = {key: value for key, value in msgspec.to_builtins(check).items() if key != "seconds"}
        told.append([name, kept | {"required": check.must_pass(name)}, list(_tools(check, place))])
    return address(msgspec.json.encode(told, order="deterministic"))


def _tools(check: Check, place: _Place) -> Iterator[object]:
    """Everything about the programs of a check that can be told without starting them."""
    env = {name: place.filled(value, place.root) for name, value in check.env.items()}
    argv = [place.filled(word, place.root) for word in check.command[:1]]
    path = env.get("PATH", os.environ.get("PATH", os.defpath))
    program = shutil.which(argv[0], path=path) if argv else None
    if program:
        with contextlib.suppress(OSError):
            status = Path(program).stat()
            yield [program, status.st_size, status.st_mtime_ns]
    homes = [Path(env["VIRTUAL_ENV"])] if "VIRTUAL_ENV" in env else []
    homes += [Path(program).parent.parent] if program else []
    for home in dict.fromkeys(homes):
        if (home / "pyvenv.cfg").is_file():
            yield sorted(found.name for found in home.glob("lib*/python*/site-packages/*.dist-info"))
    with contextlib.suppress(OSError):
        status = (place.root / "node_modules" / ".package-lock.json").stat()
        yield [status.st_size, status.st_mtime_ns]
