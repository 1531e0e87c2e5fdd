"""The file: the same bytes every time, a chain that passes strangers by, and bounds on what is read."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from io import BytesIO

import msgspec
import pytest

from decided import approval
from planforge.errors import InvalidInput, LedgerUnreadable
from planforge.kernel.ledger import Ledger
from planforge.kernel.ledger.rows import COLUMNS, content
from planforge.kernel.replay import proof_faults
from planforge.kernel.replay.proof import (
    EVENTS,
    MANIFEST,
    About,
    Line,
    Position,
    Proof,
    Row,
    Skipped,
    Summary,
    archive,
    pack,
)
from planforge.kernel.replay.proof_faults import chain_faults, stream_faults, unpack

ABOUT = About(run="plan-001", flow="forge", flow_version=1, plans=())
NOTHING = Summary(approvals=(), evidence=(), landed=())
START = Position(seq=0, hash="")


def rows(ledger: Ledger, *mine: str) -> list[Line]:
    """The events of a ledger, those of other streams as hashes."""
    lines: list[Line] = []
    names = COLUMNS.split(", ")
    for values in ledger.query(f"SELECT {COLUMNS} FROM events ORDER BY seq"):  # noqa: S608
        fields = dict(zip(names, values, strict=True))
        if fields["stream"] not in mine:
            lines.append(Skipped(seq=fields["seq"], content=content(*values[:-1]).hex()))
            continue
        fields |= {"body": fields["body"].decode(), "hash": fields["hash"].hex()}
        lines.append(Row(**fields))
    return lines


def filled(ledger: Ledger) -> Ledger:
    for number in range(1, 4):
        for plan in ("plan-001", "plan-002", "é"):
            ledger.append(plan, [approval(plan, f"{number}")[1]], expected=None)
    return ledger


def packed(lines: list[Line], objects: Mapping[str, bytes] | None = None) -> bytes:
    return pack(lines, objects or {}, {}, about=ABOUT, before=START, files="none", checks=(), summary=NOTHING)


def parts(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def test_the_same_events_give_the_same_bytes(ledger: Ledger) -> None:
    lines = rows(filled(ledger), "plan-001")
    one = packed(lines, {"b" * 64: b"1", "a" * 64: b"2"})
    assert one == packed(lines, {"a" * 64: b"2", "b" * 64: b"1"})
    assert list(parts(one)) == [MANIFEST, EVENTS, f"objects/{'a' * 64}", f"objects/{'b' * 64}"]


def test_the_chain_is_followed_past_events_of_others(ledger: Ledger) -> None:
    proof, faults = unpack(packed(rows(filled(ledger), "plan-001")))
    assert faults == []
    assert list(chain_faults(proof)) == []
    assert list(stream_faults(proof)) == []
    assert sum(isinstance(line, Skipped) for line in proof.lines) == 6
    ((head,),) = ledger.query("SELECT hash FROM events ORDER BY seq DESC LIMIT 1")
    assert proof.manifest.head == Position(seq=9, hash=head.hex())


def test_nothing_of_the_events_of_others_is_in_the_file(ledger: Ledger) -> None:
    data = parts(packed(rows(filled(ledger), "plan-001")))[EVENTS]
    assert b"plan-001" in data
    assert b"plan-002" not in data


def test_a_slice_may_begin_anywhere(ledger: Ledger) -> None:
    lines = rows(filled(ledger), "plan-001")
    ((before,),) = ledger.query("SELECT hash FROM events WHERE seq = 3")
    start = Position(seq=3, hash=before.hex())
    data = pack(lines[3:], {}, {}, about=ABOUT, before=start, files="none", checks=(), summary=NOTHING)
    assert list(chain_faults(unpack(data)[0])) == []


def test_an_event_of_others_that_was_changed_breaks_the_chain_after_it(ledger: Ledger) -> None:
    lines = rows(filled(ledger), "plan-001")
    lines[1] = Skipped(seq=2, content="0" * 64)
    (first, *_) = chain_faults(unpack(packed(lines))[0])
    assert (first.seq, first.problem) == (4, "its content does not match its hash")


def test_an_event_of_others_with_another_number_is_found_although_its_hash_is_right(ledger: Ledger) -> None:
    lines = rows(filled(ledger), "plan-001")
    assert isinstance(lines[1], Skipped)
    lines[1] = Skipped(seq=99, content=lines[1].content)
    assert [fault.problem for fault in chain_faults(unpack(packed(lines))[0])] == ["event 2 should be here"]


def test_a_stream_with_a_gap_is_found_although_the_chain_is_whole(ledger: Ledger) -> None:
    lines = rows(filled(ledger), "plan-001")
    row = lines[3]
    assert isinstance(row, Row)
    lines[3] = Skipped(seq=row.seq, content=content(*row.fields).hex())
    proof = unpack(packed(lines))[0]
    assert list(chain_faults(proof)) == []
    assert [fault.problem for fault in stream_faults(proof)] == ["it is number 3 of its stream, not 2"]


def test_a_proof_is_a_recording(ledger: Ledger) -> None:
    proof = unpack(packed(rows(filled(ledger), "plan-001"), {"a" * 64: b"1"}))[0]
    assert [item.event for item in proof.stream("plan-001")] == [
        item.event for item in ledger.stream("plan-001")
    ]
    with pytest.raises(LedgerUnreadable, match="is not what its name says"):
        proof.objects.get("a" * 64)
    with pytest.raises(LedgerUnreadable, match="is missing from the proof"):
        proof.objects.get("b" * 64)


# What is no proof


def changed(change: Callable[[dict[str, object]], object]) -> bytes:
    manifest = json.loads(parts(packed([]))[MANIFEST])
    change(manifest)
    return archive({MANIFEST: json.dumps(manifest).encode(), EVENTS: b""})


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not a proof"),
        (b"PK\x05\x06" + b"\0" * 18, "it has no manifest"),
        (b"not a zip at all", "not a proof"),
        (archive({EVENTS: b""}), "it has no manifest"),
        (archive({MANIFEST: b"{}"}), "its manifest cannot be read"),
        (archive({MANIFEST: b"[" * 100_000}), "its manifest cannot be read"),
        (changed(lambda it: it.update(format=2)), "the proof has format 2, this Planforge reads format 1"),
        (changed(lambda it: it.update(surprise=1)), "its manifest cannot be read"),
        (packed([])[:-30], "not a proof"),
    ],
)
def test_what_is_no_proof_is_refused_in_one_line(data: bytes, says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        unpack(data)
    assert says in refused.value.message
    assert "\n" not in refused.value.message
    assert refused.value.exit_code == 2


def test_an_archive_that_unpacks_to_too_much_is_refused_before_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = archive(parts(packed([])) | {f"objects/{'a' * 64}": b"\0" * 4_000_000})
    assert len(bomb) < 10_000
    monkeypatch.setattr(proof_faults, "TOTAL_LIMIT", 1_000_000)
    with pytest.raises(InvalidInput, match="unpacks to more than a proof may hold"):
        unpack(bomb)
    monkeypatch.setattr(proof_faults, "FILE_LIMIT", 100)
    with pytest.raises(InvalidInput, match="it is larger than"):
        unpack(bomb)


def test_an_archive_that_lies_about_its_sizes_is_not_believed() -> None:
    data = bytearray(archive(parts(packed([])) | {f"objects/{'a' * 64}": b"\0" * 4_000_000}))
    central = data.rindex(b"PK\x01\x02")
    data[central + 24 : central + 28] = (5).to_bytes(4, "little")
    with pytest.raises(InvalidInput, match="not a proof"):
        unpack(bytes(data))


def test_too_many_parts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof_faults, "PARTS_LIMIT", 1)
    with pytest.raises(InvalidInput, match="it has 2 parts"):
        unpack(packed([]))


@pytest.mark.parametrize(
    "name",
    ["../outside", "/etc/passwd", "objects/../x", "objects/short", "events.jsonl/", "git/" + "g" * 40, "ünï"],
)
def test_a_part_with_another_name_is_a_fault(name: str) -> None:
    _, faults = unpack(archive(parts(packed([])) | {name: b""}))
    assert any("has no place in a proof" in fault.problem for fault in faults)


def test_a_part_that_is_there_twice_is_a_fault() -> None:
    buffer = BytesIO(packed([]))
    with zipfile.ZipFile(buffer, "a") as file, pytest.warns(UserWarning, match="Duplicate"):
        file.writestr(EVENTS, b"other")
    _, faults = unpack(buffer.getvalue())
    assert any("has no place in a proof" in fault.problem for fault in faults)


def test_parts_in_another_order_and_things_between_them_are_faults() -> None:
    data = packed([], {"a" * 64: b"1", "b" * 64: b"2"})
    turned = archive(dict(reversed(parts(data).items())))
    assert any("not in their order" in fault.problem for fault in unpack(turned)[1])
    buffer = BytesIO(data)
    with zipfile.ZipFile(buffer, "a") as file:
        file.comment = b"hello"
    assert any("more in it than" in fault.problem for fault in unpack(buffer.getvalue())[1])


@pytest.mark.parametrize(
    "line",
    [b"nonsense", b"[" * 50_000, b'{"line":"other","seq":-1,"content":""}', b'{"line":"what"}', b"{}"],
)
def test_a_line_that_cannot_be_read_is_a_fault(line: bytes) -> None:
    _, faults = unpack(archive(parts(packed([])) | {EVENTS: line + b"\n"}))
    assert any("line 1 of `events.jsonl` cannot be read" in fault.problem for fault in faults)


def test_a_hash_before_the_first_event_must_be_one() -> None:
    manifest = msgspec.structs.replace(
        unpack(packed([]))[0].manifest, before=Position(seq=0, hash="00"), head=Position(seq=0, hash="00")
    )
    assert [fault.problem for fault in chain_faults(Proof(manifest, [], {}, {}))] == [
        "the hash before the first event is none"
    ]
