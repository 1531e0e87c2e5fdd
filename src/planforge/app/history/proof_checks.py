"""
Checking a proof with nothing but the proof.

The order matters: what the events say is looked at only once the chain says that
they are what was written, and the run is decided again only once they hold together.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from planforge.app.history import custody, replays
from planforge.errors import InvalidInput, NotFound, PlanforgeError
from planforge.kernel.files import read_regular
from planforge.kernel.ledger import Fault
from planforge.kernel.replay import Replay
from planforge.kernel.replay import proof_faults as reading
from planforge.kernel.replay.proof import About, Position, Proof, Row


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What a proof is worth."""

    schema_version: int = 1
    holds: bool
    about: About
    head: Position
    """Compare it with what you have noted of the ledger elsewhere: a chain forged as a whole is whole too."""
    events: int
    others: int
    objects: int
    files: str
    faults: tuple[Fault, ...]
    replay: Replay | None
    """None if it was not got to."""


def check(path: Path) -> tuple[Proof, Checked]:
    """Read a proof and say whether it holds."""
    try:
        data = read_regular(path, reading.FILE_LIMIT + 1)
        if len(data) > reading.FILE_LIMIT:
            raise InvalidInput(f"`{path}` is not a proof: it is too large")
    except OSError as error:
        kind = NotFound if isinstance(error, FileNotFoundError) else InvalidInput
        raise kind(f"cannot read `{path}`: {error.strerror}") from error
    return checked(data)


def checked(data: bytes) -> tuple[Proof, Checked]:
    """Say whether the bytes of a proof hold."""
    proof, faults = reading.unpack(data)
    faults += reading.chain_faults(proof)
    faults += reading.stream_faults(proof)
    replay = None
    if not faults:
        try:
            faults += custody.faults(proof, list(proof.recorded()))
            replay = None if faults else replays.replayed(proof, proof.manifest.about.run)
        except (PlanforgeError, msgspec.MsgspecError, RecursionError, ValueError) as error:
            faults.append(reading.fault(str(error) or type(error).__name__))
    if replay is not None and replay.difference is not None:
        faults.append(_fault_of(proof, replay))
    rows = sum(isinstance(line, Row) for line in proof.lines)
    return proof, Checked(
        holds=not faults,
        about=proof.manifest.about,
        head=proof.manifest.head,
        events=rows,
        others=len(proof.lines) - rows,
        objects=len(proof.objects.content),
        files=proof.manifest.files,
        faults=tuple(faults),
        replay=replay,
    )


def _fault_of(proof: Proof, replay: Replay) -> Fault:
    """A difference as a fault of the event that it is about."""
    difference = replay.difference
    assert difference is not None
    problem = f"decided again, it differs: {difference.problem}"
    for item in proof.stream(replay.run):
        if difference.key == item.key and (item.key or item.kind == "RunEnded"):
            return Fault(seq=item.seq, stream=item.stream, kind=item.kind, problem=problem)
    return reading.fault(problem)
