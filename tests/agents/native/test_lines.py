"""What programs print is read as lines, and never fills memory."""

from __future__ import annotations

import asyncio
import time

import msgspec
import pytest

from planforge.agents.native import lines
from planforge.agents.native.lines import Unreadable


class Word(msgspec.Struct):
    """A small event."""

    type: str = ""
    more: msgspec.Raw = lines.NOTHING


WORD = msgspec.json.Decoder(Word)


def read(*chunks: bytes) -> list[bytes]:
    """The lines of what comes in these chunks."""
    return asyncio.run(_read(chunks))


async def _read(chunks: tuple[bytes, ...]) -> list[bytes]:
    stream = asyncio.StreamReader(limit=1)
    for chunk in chunks:
        stream.feed_data(chunk)
    stream.feed_eof()
    return [line async for line in lines.read(stream, lambda: None)]


@pytest.mark.parametrize(
    ("chunks", "found"),
    [
        ((b"one\ntwo\n",), [b"one", b"two"]),
        ((b"on", b"e\ntw", b"o\n"), [b"one", b"two"]),
        ((b"one\r\n\n  \ntwo",), [b"one", b"two"]),
        ((b"\x00\n\xff\xfe\n",), [b"\x00", b"\xff\xfe"]),
        ((b"",), []),
    ],
)
def test_lines_are_what_is_between_breaks(chunks: tuple[bytes, ...], found: list[bytes]) -> None:
    assert read(*chunks) == found


def test_a_line_that_is_longer_than_a_streams_own_limit_is_read() -> None:
    long = b"x" * 300_000
    assert read(long + b"\n" + long) == [long, long]


def test_a_line_without_an_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINE_LIMIT", 1000)
    assert read(b"x" * 1000 + b"\n") == [b"x" * 1000]
    with pytest.raises(Unreadable, match="bytes without a line break"):
        read(b"x" * 1001)


def test_all_output_together_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "OUTPUT_LIMIT", 1000)
    assert len(read(b"x\n" * 500)) == 500
    with pytest.raises(Unreadable, match="more than 1000 bytes"):
        read(b"x\n" * 501)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"type": "a"}', "a"),
        (b'{"more": [{}, "\xff"], "type": "a"}', "a"),
        (b'{"type": "a\\ud83d"}', "a\ufffd"),
        (b'{"type": "\\ud83d\\ude00"}', "\U0001f600"),
        (b'{"type": "\\\\ud83d \\udead"}', "\\ud83d \ufffd"),
        (b'{"type": "a\\u0000"}', "a\x00"),
    ],
)
def test_an_event_says_what_it_says(line: bytes, said: str) -> None:
    found = lines.decoded(line, WORD)
    assert found is not None
    assert found.type == said


@pytest.mark.parametrize(
    "line",
    [
        b'{"type": "a',
        b'{"type": "a"} and more',
        b'{"type": "\xff"}',
        b'{"type": "a\x00"}',
        b'{"type": 7}',
        b"[]",
        b"null",
        b"hello",
        b'{"type": "\\ud83d',
        b'{"more": ' + b"[" * 2_000_000,
    ],
)
def test_what_is_no_event_is_none(line: bytes) -> None:
    assert lines.decoded(line, WORD) is None


def test_a_part_that_is_too_much_to_look_at_is_not_looked_at() -> None:
    shape = msgspec.json.Decoder(list[Word])
    small = msgspec.Raw(b"[" + b"{}," * 1000 + b"{}]")
    large = msgspec.Raw(b"[" + b"{}," * (lines.LOOKED_AT // 3) + b"{}]")
    looked_at = lines.inner(small, shape)
    assert looked_at is not None
    assert len(looked_at) == 1001
    assert lines.inner(large, shape) is None


def test_a_large_line_costs_no_more_than_its_bytes() -> None:
    line = b'{"more": [' + b"{}," * 10_000_000 + b'{}], "type": "a"}'
    began = time.process_time()
    found = lines.decoded(line, WORD)
    assert found is not None
    assert found.type == "a"
    assert time.process_time() - began < 5
