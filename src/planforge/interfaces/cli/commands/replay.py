"""Commands about recorded runs: `planforge replay`, `backtest`, `prove` and `check-proof`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planforge.actions import Action
from planforge.interfaces.cli.caller import here
from planforge.interfaces.cli.layout import table
from planforge.interfaces.cli.output import JsonCommand, show, talk
from planforge.interfaces.cli.streams import as_document
from planforge.interfaces.cli.typed import command
from planforge.kernel.wording import counted

if TYPE_CHECKING:
    from planforge.app.history.proof_checks import Checked
    from planforge.app.history.proofs import Proved
    from planforge.app.history.replays import BacktestReport
    from planforge.app.history.reruns import Rerun
    from planforge.kernel.replay import Replay
    from planforge.kernel.replay.backtest import Backtest, Cost, End
    from planforge.kernel.replay.differences import Difference


@click.command(cls=JsonCommand)
@click.argument("run")
def replay(run: str) -> int:
    """Replay RUN from its recording and compare

    Performs no effect and writes nothing. Every effect, fact and score, and the end, must match the
    recording. Otherwise the first difference is shown with both sides, and the exit code is 1. An unfinished
    run is compared up to the end of its recording.
    """
    from planforge.app.history.replays import replayed

    found = replayed(here().ledger, run)
    show(found, _replay)
    return 0 if found.agrees else 1


def _replay(found: Replay) -> Iterator[str]:
    counts = found.counts
    compared = f"{counts.effects} effects, {counts.notes} facts"
    compared += f", {counts.decisions} decisions, {counts.scores} scores"
    if found.difference is not None:
        yield f"✗ {found.run} differs: {found.difference.problem}"
        yield f"  equal before that: {compared}"
        for field in found.difference.fields:
            yield f"  {field.path}:"
            yield from _sides(field.recorded, field.asked)
        yield f"  recorded: {as_document(found.difference.recorded)}"
        yield f"  asked: {as_document(found.difference.asked)}"
    else:
        yield f"✓ {found.run} matches its recording{'' if found.ended else ' so far'}: {compared}"
        yield f"  {found.reason}"


def _sides(recorded: object, asked: object) -> Iterator[str]:
    """Two values, one below the other; for longer texts, the lines that differ."""
    import difflib

    import msgspec

    if isinstance(recorded, str) and isinstance(asked, str) and "\n" in recorded + asked:
        lines = difflib.unified_diff(
            recorded.splitlines(), asked.splitlines(), "recorded", "asked", "", "", 1
        )
        yield from (f"    {line.rstrip()}" for line in lines)
        return
    for mark, value in (("-", recorded), ("+", asked)):
        if value is not msgspec.UNSET:
            yield f"    {mark} {msgspec.json.encode(value).decode()}"


@click.command(cls=JsonCommand)
@click.argument("run")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write.",
)
@click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
@click.option("--no-files", is_flag=True, help="Leave out the repository's commits and files.")
def prove(run: str, output: Path, force: bool, no_files: bool) -> None:
    """Write a proof of RUN into one file

    Contains the run's events, its plan, leases, budgets and handoffs from the ledger; only the hashes of
    other events; the objects they refer to; and the commits, trees and files that were checked. `planforge
    check-proof` needs nothing else.
    """
    from planforge.app.history.proofs import prove as write

    show(write(here(), run, output, force=force, files=not no_files), _proved)


def _proved(made: Proved) -> str:
    others = f" and the hashes of {made.others} others" if made.others else ""
    return (
        f"{made.file}: {counted(made.events, 'event')}{others}, {counted(made.objects, 'object')}, "
        f"{counted(made.size, 'byte')}\n"
        f"head: {made.head.seq} {made.head.hash}\n"
        f"next: {command(Action('check-proof', made.file))}"
    )


@click.command("check-proof", cls=JsonCommand)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--rerun", is_flag=True, help="Run the recorded checks again. This runs code from the proof.")
@click.option(
    "--repo",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="With --rerun: take the files from this repository, not from the proof.",
)
def check_proof(file: Path, rerun: bool, repo: Path | None) -> int:
    """Check a proof, without the repository and its ledger

    Follows the hash chain and checks every object, commit and file by its hash, that what landed was checked,
    that what ran was approved once, and replays the run. Each fault is a line that names the event; the exit
    code is then 1. It is 2 if FILE is not a proof.

    Compare the printed head with one from another source: a person who rewrites the whole ledger can also
    write a new proof.
    """
    from planforge.app.history.proof_checks import check

    if repo is not None and not rerun:
        raise click.UsageError("`--repo` needs `--rerun`")
    proof, found = check(file)
    reruns: list[Rerun] = []
    if rerun and found.holds:
        import asyncio

        from planforge.app.history.reruns import rerun as run_again

        talk(f"running the checks of {found.about.run} again: this is code from the proof")
        reruns = asyncio.run(run_again(proof, repo))
    holds = found.holds and all(again.agrees for again in reruns)
    document = {"proof": found, "holds": holds, "reruns": reruns}
    show(document, lambda _: _checked(found, reruns))
    return 0 if holds else 1


def _checked(found: Checked, reruns: list[Rerun]) -> Iterator[str]:
    for fault in found.faults:
        name = f"event {fault.seq} ({fault.kind} of {fault.stream}): " if fault.seq else ""
        yield f"✗ {name}{fault.problem}"
    if found.holds:
        others = f" and {found.others} others" if found.others else ""
        whole = f"{counted(found.events, 'event')}{others}, {counted(found.objects, 'object')}"
        yield f"✓ {found.about.run} is what was recorded: {whole}"
        assert found.replay is not None
        yield from _replay(found.replay)
        if found.files == "none":
            yield "  the repository's files are not in it, so commits and trees are not checked"
    for again in reruns:
        mark = "✓" if again.agrees else "✗"
        was = "" if again.agrees else f", recorded was {again.recorded}"
        yield f"{mark} event {again.seq}: tree {again.tree[:12]} again: {again.found}{was}"
    yield f"head: {found.head.seq} {found.head.hash}"


@click.command(cls=JsonCommand)
@click.argument("run")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting to change.")
def backtest(run: str, settings: tuple[str, ...]) -> None:
    """Replay RUN with other settings, and compare the outcome and the cost

    Replays the run with its recorded answers, up to its end or to the first question without one. Settings
    are those of `planforge.toml`: `forge.cap` (or `loop.cap`), `run.attempts`, `run.jobs`,
    `run.escalate_after`, `run.max_files`, `run.handoffs`, and `run.parallel`.

    \b
    Examples:
      planforge backtest run-001 --set loop.cap=3
      planforge backtest run-002 --set run.attempts=1 --set run.jobs=1
    """
    from planforge.app.history.replays import backtested

    show(backtested(here().ledger, run, settings), _backtest)


def _backtest(report: BacktestReport) -> Iterator[str]:
    found = report.backtest
    for change in report.changed:
        yield f"{change.setting}: {change.value} instead of {change.recorded}"
    if found.parted is None:
        yield "it decides everything the same way"
    else:
        yield f"it differs from the recording: {found.parted.problem}"
        yield from (f"  {line}" for line in _parting(found.parted))
    yield found.stopped or f"it would have ended: {_end(found.end)}"
    yield f"recorded: {_end(found.recorded_end)}"
    yield table(list(_costs(found)), "  ")
    yield from (f"assumed: {assumption}" for assumption in found.assumptions)


def _parting(found: Difference) -> Iterator[str]:
    if not found.fields:
        yield from _sides(found.recorded, found.asked)
    for field in found.fields:
        yield f"{field.path}:"
        yield from _sides(field.recorded, field.asked)


def _end(end: End | None) -> str:
    if end is None:
        return "it has not ended"
    return f"{'done' if end.succeeded else 'failed'} ({end.reason}), exit code {end.exit_code}"


def _costs(found: Backtest) -> Iterator[tuple[str, str, str]]:
    yield "", "recorded", "then" if found.ended else "up to there"
    names = ("agent calls", "tokens", "checks", "seconds of checks", "attempts", "rounds")
    yield from zip(names, _cost(found.recorded_cost), _cost(found.cost), strict=True)


def _cost(cost: Cost) -> tuple[str, ...]:
    unknown = f" and {cost.calls_without_tokens} calls unknown" if cost.calls_without_tokens else ""
    return (
        str(cost.agent_calls),
        f"{cost.tokens}{unknown}",
        str(cost.checks),
        f"{cost.check_seconds:g}",
        str(cost.attempts),
        str(cost.rounds),
    )
