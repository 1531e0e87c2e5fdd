"""Proofs that somebody tampered with, as cleverly as they like: down to a whole new chain of hashes."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec

from planforge.app.history.proof_checks import Checked, checked
from planforge.app.history.proofs import summary_of
from planforge.kernel.ledger.rows import chain, content
from planforge.kernel.replay.proof import DATE, EVENTS, MANIFEST, Line, recorded

HISTORIES = Path(__file__).parent / "histories"

Row = dict[str, Any]
FIELDS = ("seq", "stream", "version", "kind", "revision", "key", "at")


@cache
def _parts(name: str) -> dict[str, bytes]:
    with zipfile.ZipFile(HISTORIES / f"{name}.proof") as file:
        return {entry: file.read(entry) for entry in file.namelist()}


class Forgery:
    """The parts of a proof, to be changed and put together again."""

    def __init__(self, name: str) -> None:
        self.parts = dict(_parts(name))
        self.rows: list[Row] = [json.loads(line) for line in self.parts[EVENTS].splitlines()]
        self.manifest: dict[str, Any] = json.loads(self.parts[MANIFEST])

    def find(self, kind: str, number: int = 0, **fields: object) -> Row:
        """The event of this kind with these fields in its body."""
        found = [row for row in self.rows if row.get("kind") == kind and fields.items() <= body(row).items()]
        return found[number]

    def change(self, row: Row, **fields: object) -> None:
        """Change the body of an event and nothing else."""
        row["body"] = json.dumps(body(row) | fields, separators=(",", ":"))

    def keep(self, content: bytes) -> str:
        """Add an object."""
        name = sha256(content).hexdigest()
        self.parts[f"objects/{name}"] = content
        return name

    def insert(self, after: Row, **row: object) -> Row:
        """Add an event."""
        new = after | row
        self.rows.insert(self.rows.index(after) + 1, new)
        return new

    def replace_everywhere(self, old: str, new: str) -> None:
        """Say `new` for `old` in every event and object, with addresses and fingerprints to match."""
        left = [(old, new)]
        while left:
            before, after = left.pop()
            for name in [name for name in self.parts if name.startswith("objects/")]:
                if before.encode() in self.parts[name]:
                    content = self.parts.pop(name).replace(before.encode(), after.encode())
                    left.append((name.removeprefix("objects/"), self.keep(content)))
            for row in self.rows:
                if row["line"] == "event":
                    row["body"] = row["body"].replace(before, after)
        for row in self.rows:
            if row.get("kind") == "EffectIntended":
                self.change(row, fingerprint=sha256(self.payload(body(row)["body"])).hexdigest())

    def payload(self, payload: dict[str, Any]) -> bytes:
        """The body of an effect, wherever it is."""
        if payload["object"]:
            return self.parts[f"objects/{payload['object']}"]
        return json.dumps(payload["inline"], separators=(",", ":"), ensure_ascii=False).encode()

    def renumber(self) -> None:
        """Number events and streams as if nothing had been added or removed."""
        versions: dict[str, int] = {}
        for seq, row in enumerate(self.rows, self.manifest["before"]["seq"] + 1):
            row["seq"] = seq
            if row["line"] == "event" and row["stream"] in ("run-001", "run-002", "plan-001"):
                versions[row["stream"]] = row["version"] = versions.get(row["stream"], 0) + 1

    def rehash(self) -> None:
        """Make the chain anew, the end and the summary in the manifest included."""
        digest = bytes.fromhex(self.manifest["before"]["hash"])
        for row in self.rows:
            digest = chain(digest, own_hash(row))
            if row["line"] == "event":
                row["hash"] = digest.hex()
        self.manifest["head"] = {"seq": self.rows[-1]["seq"], "hash": digest.hex()}
        lines = [msgspec.convert(row, Line) for row in self.rows]
        self.manifest["summary"] = msgspec.to_builtins(summary_of(recorded(lines)))

    def seal(self) -> None:
        """Make the manifest say what the parts are."""
        encoded = (json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in self.rows)
        self.parts[EVENTS] = "".join(f"{line}\n" for line in encoded).encode()
        rest = {name: content for name, content in self.parts.items() if name not in (MANIFEST, EVENTS)}
        parts = {EVENTS: self.parts[EVENTS]} | dict(sorted(rest.items()))
        self.manifest["contents"] = [
            {"name": name, "size": len(content), "sha256": sha256(content).hexdigest()}
            for name, content in parts.items()
        ]
        self.parts = {MANIFEST: json.dumps(self.manifest).encode()} | parts

    def data(self) -> bytes:
        buffer = BytesIO()
        with zipfile.ZipFile(buffer, "w") as file:  # not packed, which takes most of the time
            for name, content in self.parts.items():
                file.writestr(zipfile.ZipInfo(name, DATE), content)
        return buffer.getvalue()

    def problems(self) -> list[str]:
        """What the check says, one line each."""
        return [f"{fault.seq} {fault.kind}: {fault.problem}" for fault in self.checked().faults]

    def checked(self) -> Checked:
        return checked(self.data())[1]


def body(row: Row) -> dict[str, Any]:
    return dict(json.loads(row["body"]))


def own_hash(row: Row) -> bytes:
    if row["line"] == "other":
        return bytes.fromhex(row["content"])
    return content(*(row[name] for name in FIELDS), row["body"].encode())


def hidden(row: Row) -> Row:
    """An event as it would look if it were somebody else's."""
    return {"line": "other", "seq": row["seq"], "content": own_hash(row).hex()}


def forged(name: str, *changes: Callable[[Forgery], object], chain: bool = True) -> Forgery:
    """A proof with these changes and everything that can be computed anew computed anew."""
    forgery = Forgery(name)
    for change in changes:
        change(forgery)
    if chain:
        forgery.rehash()
    forgery.seal()
    return forgery
