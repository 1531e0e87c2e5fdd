"""`planforge verdict`: what a review says."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from planforge.interfaces.cli.show import json_option, show

EXIT_CODES = {"approved": 0, "revision": 1, "unknown": 2}


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--kind",
    type=click.Choice(["audit", "review", "polish", "module"]),
    required=True,
    help="Whose answer it is: an auditor's of a plan, a review stage's, a polish loop's, a module's.",
)
@json_option
def verdict(file: Path, kind: str, as_json: bool) -> int:
    """Say what a review comes to: approved, revision or unknown

    Exits with 0, 1 or 2. Whatever is not in the vocabulary of its kind is unknown, and so are two verdicts
    that differ, a verdict in a quotation or in code, and a file that is not there. `-` reads standard input.

    \b
    Examples:
      planforge verdict CODE_REVIEW.md --kind review
      planforge verdict - --kind audit --json < answer.txt
    """
    from planforge.rules.verdicts import KINDS
    from planforge.rules.verdicts.judgement import unknown

    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        found = KINDS[kind](data.decode("utf-8"))
    except OSError as error:
        found = unknown(f"`{file}` cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        found = unknown(f"`{file}` is not UTF-8")
    document = {
        "verdict": found.verdict,
        "max_severity": found.max_severity,
        "loops": found.loops,
        "findings": found.findings,
        "reason": found.reason,
    }
    show(document, lambda: f"{found.verdict.value}: {found.reason}", as_json=as_json)
    return EXIT_CODES[found.verdict.value]
