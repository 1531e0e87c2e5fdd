"""`planforge verdict`: parse a review and print its verdict."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from planforge import __version__
from planforge.errors import InvalidInput
from planforge.interfaces.cli import inputs
from planforge.interfaces.cli.output import JsonCommand, show
from planforge.rules.verdicts import KINDS, Judgement, sarif
from planforge.rules.verdicts.judgement import unknown

EXIT_CODES = {"approved": 0, "revision": 1, "unknown": 2}


@click.command(cls=JsonCommand)
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--kind",
    type=click.Choice(["audit", "review", "polish", "module", "sarif"]),
    required=True,
    help="The kind of review: of a plan, a review stage, a polish loop, a module, or by a tool.",
)
@click.option(
    "--sarif",
    "out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the findings to this file, as SARIF 2.1.0.",
)
def verdict(file: Path, kind: str, out: Path | None) -> int:
    """Parse a review and print its verdict: approved, revision or unknown

    Exits with 0, 1 or 2 in this order. The verdict is unknown if its word is not in the vocabulary of its
    kind, if there are two different verdicts, if it is in a quotation or in code, or if the file is missing.
    `-` reads standard input.

    Kind `sarif` is the report of a tool: an error in it means revision, and a tool that did not finish is
    unknown.

    \b
    Examples:
      planforge verdict CODE_REVIEW.md --kind review
      planforge verdict - --kind audit --json < answer.txt
      ruff check --output-format sarif | planforge verdict - --kind sarif
      planforge verdict review-M-001.md --kind module --sarif findings.sarif
    """
    try:
        found = KINDS[kind](inputs.text(file))
    except InvalidInput as error:
        found = unknown(error.message)
    if out:
        _write(out, found)
    show(document(found), f"{found.verdict.value}: {found.reason}")
    return EXIT_CODES[found.verdict.value]


def document(found: Judgement) -> dict[str, object]:
    """A judgement as every command prints it with `--json`; a review without a severity says `none`."""
    return {
        "verdict": found.verdict,
        "max_severity": found.max_severity or "none",
        "loops": found.loops,
        "findings": [
            {**msgspec.structs.asdict(each), "fingerprint": each.fingerprint} for each in found.findings
        ],
        "reason": found.reason,
    }


def _write(out: Path, found: Judgement) -> None:
    document = msgspec.json.format(msgspec.json.encode(sarif.log(found, __version__)))
    try:
        out.write_bytes(document + b"\n")
    except OSError as error:
        raise InvalidInput(f"`{out}` cannot be written: {error.strerror}") from error
