from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planforge.errors import LedgerUnreadable
from planforge.kernel.ledger import Ledger
from planforge.kernel.objects import encode
from planforge.kernel.payloads import INLINE_LIMIT, pack, unpack


@pytest.mark.parametrize(
    ("size", "is_object"), [(2, False), (INLINE_LIMIT, False), (INLINE_LIMIT + 1, True), (100_000, True)]
)
def test_a_body_is_an_object_only_if_it_is_large(ledger: Ledger, size: int, is_object: bool) -> None:
    body = encode("x" * (size - 2))
    assert len(body) == size
    payload = pack(ledger, body)
    assert (payload.object is not None) is is_object
    assert unpack(ledger, payload) == body


def test_a_large_body_that_was_changed_is_not_believed(ledger: Ledger, tmp_path: Path) -> None:
    payload = pack(ledger, encode("x" * INLINE_LIMIT))
    for path in (tmp_path / ".planforge" / "objects").rglob("*"):
        if path.is_file():
            path.write_bytes(encode("y" * INLINE_LIMIT))
    with pytest.raises(LedgerUnreadable, match="was changed"):
        unpack(ledger, payload)


@given(st.dictionaries(st.text(), st.integers(min_value=-(2**63), max_value=2**63 - 1)))
def test_equal_values_have_one_encoding_in_whatever_order_they_were_made(value: dict[str, int]) -> None:
    backwards = dict(reversed(value.items()))
    assert encode(value) == encode(backwards)
