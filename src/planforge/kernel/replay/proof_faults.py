"""
Reading a proof that somebody else wrote: bounded, and with every fault named.

What is no proof at all is refused. What is one, but not whole, is read as far as
it goes, and each thing that is wrong with it is a fault.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from hashlib import sha256
from io import BytesIO

import msgspec

from planforge.errors import InvalidInput
from planforge.kernel.ledger import Fault
from planforge.kernel.ledger.rows import hash_after
from planforge.kernel.replay.proof import (
    DATE,
    EVENTS,
    FORMAT,
    MANIFEST,
    Line,
    Manifest,
    Number,
    Proof,
    Row,
    after,
)

NAME = re.compile(r"manifest\.json|events\.jsonl|objects/[0-9a-f]{64}|git/(?:[0-9a-f]{40}|[0-9a-f]{64})")

FILE_LIMIT = 256 * 1024 * 1024
"""The size of a proof that is looked at."""
PART_LIMIT = 256 * 1024 * 1024
TOTAL_LIMIT = 512 * 1024 * 1024
"""The size of all parts once unpacked."""
PARTS_LIMIT = 200_000


def unpack(data: bytes) -> tuple[Proof, list[Fault]]:
    """A proof from its bytes, and what is wrong with its parts. What is no proof at all is refused."""
    parts, faults = _parts(data)
    if MANIFEST not in parts:
        raise InvalidInput("this is not a proof: it has no manifest")
    manifest = _manifest(parts[MANIFEST])
    faults += _listed(manifest, parts)
    lines = []
    for number, text in enumerate(parts.get(EVENTS, b"").splitlines(), 1):
        try:
            lines.append(msgspec.json.decode(text, type=Line))
        except (msgspec.MsgspecError, RecursionError) as error:
            faults.append(fault(f"line {number} of `{EVENTS}` cannot be read: {error}"))
    proof = Proof(manifest, lines, _under("objects/", parts), _under("git/", parts))
    return proof, faults


def _under(prefix: str, parts: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name.removeprefix(prefix): content for name, content in parts.items() if name.startswith(prefix)}


def _parts(data: bytes) -> tuple[dict[str, bytes], list[Fault]]:
    if len(data) > FILE_LIMIT:
        raise InvalidInput(f"this is not a proof: it is larger than {FILE_LIMIT // 2**20} MiB")
    try:
        with zipfile.ZipFile(BytesIO(data)) as file:
            return _read(file)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise InvalidInput(f"this is not a proof: {error}") from error


def _read(file: zipfile.ZipFile) -> tuple[dict[str, bytes], list[Fault]]:
    entries = file.infolist()
    if len(entries) > PARTS_LIMIT:
        raise InvalidInput(f"this is not a proof: it has {len(entries)} parts")
    parts: dict[str, bytes] = {}
    faults = []
    if file.comment or any(entry.extra or entry.comment or entry.date_time != DATE for entry in entries):
        faults.append(fault("the archive has more in it than a proof has"))
    left = TOTAL_LIMIT
    for entry in entries:
        if not NAME.fullmatch(entry.filename) or entry.filename in parts:
            faults.append(fault(f"`{entry.filename[:80]!a}` has no place in a proof"))
            continue
        with file.open(entry) as stream:
            content = stream.read(min(PART_LIMIT, left) + 1)
        if len(content) > min(PART_LIMIT, left):
            raise InvalidInput("this is not a proof: it unpacks to more than a proof may hold")
        left -= len(content)
        parts[entry.filename] = content
    return parts, faults


def _manifest(content: bytes) -> Manifest:
    class Format(msgspec.Struct):
        format: Number

    try:
        found = msgspec.json.decode(content, type=Format).format
        if found != FORMAT:
            raise InvalidInput(
                f"the proof has format {found}, this Planforge reads format {FORMAT}",
                "use the Planforge version that wrote it",
            )
        return msgspec.json.decode(content, type=Manifest)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidInput(f"this is not a proof: its manifest cannot be read: {error}") from error


def _listed(manifest: Manifest, parts: Mapping[str, bytes]) -> Iterator[Fault]:
    """What the manifest says of the parts must be so, of all of them, in their order."""
    names = [content.name for content in manifest.contents]
    for content in manifest.contents:
        if content.name not in parts:
            yield fault(f"`{content.name}` is missing")
        elif sha256(parts[content.name]).hexdigest() != content.sha256:
            yield fault(f"`{content.name}` is not what the manifest says")
        elif len(parts[content.name]) != content.size:
            yield fault(f"`{content.name}` is not as long as the manifest says")
    for name in parts:
        if name not in names and name != MANIFEST:
            yield fault(f"`{name}` is not in the manifest")
    if [MANIFEST, *names] != list(parts) or names != [
        *names[:1],
        *sorted(names[1:]),
    ]:
        yield fault("the parts are not in their order")


def chain_faults(proof: Proof) -> Iterator[Fault]:
    """Every event that is not what the chain says."""
    before, head = proof.manifest.before, proof.manifest.head
    if not re.fullmatch("[0-9a-f]{64}" if before.seq else "", before.hash):
        yield fault("the hash before the first event is none")
        return
    seq, digest = before.seq, bytes.fromhex(before.hash)
    for line in proof.lines:
        seq += 1
        if line.seq != seq:
            yield _of(line, f"event {seq} should be here")
            return
        if isinstance(line, Row) and bytes.fromhex(line.hash) != hash_after(digest, *line.fields):
            yield _of(line, "its content does not match its hash")
        digest = after(digest, line)
    if (seq, digest.hex()) != (head.seq, head.hash):
        yield fault(f"the slice ends with event {seq}, {digest.hex()[:12]}, and not as the manifest says")


def stream_faults(proof: Proof) -> Iterator[Fault]:
    """Events of the run and its plans that are missing, as far as their numbers tell."""
    about = proof.manifest.about
    versions = dict.fromkeys((about.run, *about.plans), 0)
    for line in proof.lines:
        if isinstance(line, Row) and line.stream in versions:
            versions[line.stream] += 1
            if line.version != versions[line.stream]:
                yield _of(line, f"it is number {line.version} of its stream, not {versions[line.stream]}")
                return
    for stream, version in versions.items():
        if not version:
            yield fault(f"no event of `{stream}` is in the proof")


def _of(line: Line, problem: str) -> Fault:
    if isinstance(line, Row):
        return Fault(seq=line.seq, stream=line.stream, kind=line.kind, problem=problem)
    return Fault(seq=line.seq, problem=problem)


def fault(problem: str) -> Fault:
    """Something wrong with the proof and not with one event."""
    return Fault(seq=0, problem=problem)
