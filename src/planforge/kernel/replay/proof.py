"""
One file that shows how a run came about, and can be checked without the ledger it was taken from.

A proof is a zip archive with a fixed order and fixed dates:

- `manifest.json`: what the proof is about, and the hash of everything else in it;
- `events.jsonl`: a slice of the ledger without gaps. Events of the run, its plan,
  leases, budgets and handoffs are there as they are stored; of an event between
  them that is somebody else's, only its content hash, which is enough to follow
  the hash chain past it;
- `objects/HASH`: the bodies that those events refer to;
- `git/HASH`: the commits, trees and files that were proposed, checked and landed.

Nothing of it is ever unpacked to disk; `proof_faults` reads one that is not trusted.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from io import BytesIO
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from planforge.errors import LedgerUnreadable
from planforge.kernel.events import Recorded
from planforge.kernel.ledger.rows import chain
from planforge.kernel.ledger.rows import recorded as read_row
from planforge.kernel.objects import address

FORMAT = 1
MANIFEST, EVENTS = "manifest.json", "events.jsonl"
DATE = (1980, 1, 1, 0, 0, 0)

Number = Annotated[int, Meta(ge=0, le=2**53)]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A structure of the file; what it does not know it refuses."""


class Row(Part, frozen=True, kw_only=True, tag_field="line", tag="event"):
    """An event, exactly as the ledger stores it."""

    seq: Number
    stream: str
    version: Number
    kind: str
    revision: Number
    key: str
    at: str
    body: str
    hash: Hash

    @property
    def fields(self) -> tuple[int, str, int, str, int, str, str, bytes]:
        """What its hash is made of, beside the hash before it."""
        body = self.body.encode()
        return self.seq, self.stream, self.version, self.kind, self.revision, self.key, self.at, body


class Skipped(Part, frozen=True, kw_only=True, tag_field="line", tag="other"):
    """An event that is somebody else's."""

    seq: Number
    content: Hash


Line = Row | Skipped


class Position(Part, frozen=True, kw_only=True):
    """A place in the ledger: an event and the hash of everything up to it."""

    seq: Number
    hash: str


class Content(Part, frozen=True, kw_only=True):
    """A part of the archive."""

    name: str
    size: Number
    sha256: Hash


class CheckCommand(Part, frozen=True, kw_only=True):
    """How a tree was checked, so that it can be checked again."""

    command: tuple[str, ...]
    report: str
    junit: str
    seconds: float


class About(Part, frozen=True, kw_only=True):
    """What a proof is of."""

    run: str
    flow: str
    flow_version: Number
    plans: tuple[str, ...]


class Summary(Part, frozen=True, kw_only=True):
    """What is in the events, for people who open the archive by hand. It is made from them, and compared."""

    approvals: tuple[str, ...]
    evidence: tuple[str, ...]
    landed: tuple[str, ...]


Files = Literal["whole", "changed", "none"]


class Manifest(Part, frozen=True, kw_only=True):
    """What is inside."""

    format: Number
    about: About
    before: Position
    """The event before the first; 0 and nothing where the slice begins with the ledger."""
    head: Position
    files: Files
    """Which files of the repository are in it: all that were checked, those that changed, or none."""
    checks: tuple[CheckCommand, ...]
    summary: Summary
    contents: tuple[Content, ...]


class Proof:
    """A proof in memory. It is a recording, so a run can be replayed from it."""

    def __init__(
        self,
        manifest: Manifest,
        lines: Sequence[Line],
        objects: Mapping[str, bytes],
        git: Mapping[str, bytes],
    ) -> None:
        self.manifest = manifest
        self.lines = lines
        self.objects = Kept(objects)
        self.git = git

    def recorded(self) -> Iterator[Recorded]:
        """The events that are there, in order."""
        return recorded(self.lines)

    def stream(self, name: str, /) -> Iterator[Recorded]:
        """The events of one stream, oldest first."""
        return (item for item in self.recorded() if item.stream == name)


def recorded(lines: Sequence[Line]) -> Iterator[Recorded]:
    """The events among the lines, in order."""
    for row in lines:
        if isinstance(row, Row):
            yield read_row(*row.fields, bytes.fromhex(row.hash))


class Kept:
    """Objects that are in a proof."""

    def __init__(self, content: Mapping[str, bytes]) -> None:
        self.content = content

    def get(self, name: str) -> bytes:
        """The content kept under `name`, checked."""
        if name not in self.content:
            raise LedgerUnreadable(f"object `{name[:12]}` is missing from the proof")
        if address(self.content[name]) != name:
            raise LedgerUnreadable(f"object `{name[:12]}` is not what its name says")
        return self.content[name]


def pack(
    lines: Sequence[Line],
    objects: Mapping[str, bytes],
    git: Mapping[str, bytes],
    *,
    about: About,
    before: Position,
    files: Files,
    checks: Sequence[CheckCommand],
    summary: Summary,
) -> bytes:
    """The archive. The same arguments give the same bytes."""
    encoder = msgspec.json.Encoder(order="deterministic")
    parts = {EVENTS: b"".join(encoder.encode(line) + b"\n" for line in lines)}
    parts |= {f"git/{name}": git[name] for name in sorted(git)}
    parts |= {f"objects/{name}": objects[name] for name in sorted(objects)}
    manifest = Manifest(
        format=FORMAT,
        about=about,
        before=before,
        head=_end(before, lines),
        files=files,
        checks=tuple(checks),
        summary=summary,
        contents=tuple(
            Content(name=name, size=len(content), sha256=sha256(content).hexdigest())
            for name, content in parts.items()
        ),
    )
    return archive({MANIFEST: msgspec.json.format(encoder.encode(manifest), indent=1)} | parts)


def archive(parts: Mapping[str, bytes]) -> bytes:
    """A zip archive of `parts` in their order, with no date and no owner of their own."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, content in parts.items():
            entry = zipfile.ZipInfo(name, DATE)
            entry.compress_type, entry.create_system, entry.external_attr = (
                zipfile.ZIP_DEFLATED,
                3,
                0o644 << 16,
            )
            file.writestr(entry, content)
    return buffer.getvalue()


def _end(before: Position, lines: Sequence[Line]) -> Position:
    seq, digest = before.seq, bytes.fromhex(before.hash)
    for line in lines:
        seq = line.seq
        digest = after(digest, line)
    return Position(seq=seq, hash=digest.hex())


def after(previous: bytes, line: Line) -> bytes:
    """The hash of the ledger after a line."""
    return bytes.fromhex(line.hash) if isinstance(line, Row) else chain(previous, bytes.fromhex(line.content))
