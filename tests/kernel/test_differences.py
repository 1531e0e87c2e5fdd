"""Whether two sides are the same: fields, redacted bodies, and scores of earlier formulas."""

from __future__ import annotations

import msgspec
import pytest

from planforge.kernel.replay.differences import differing, same_but_redacted


def test_the_fields_that_differ_are_named_with_both_values() -> None:
    one = {"effect": "Say", "body": {"words": "one", "more": [1, 2], "left": 1}}
    other = {"effect": "Say", "body": {"words": "two", "more": [1, 3], "right": None}}
    fields = differing("/0", "differs", one, other).fields
    assert [(field.path, field.recorded, field.asked) for field in fields] == [
        ("body.words", "one", "two"),
        ("body.more[1]", 2, 3),
        ("body.left", 1, msgspec.UNSET),
        ("body.right", msgspec.UNSET, None),
    ]
    assert b'"body.right","asked":null' in msgspec.json.encode(fields)


@pytest.mark.parametrize("other", [None, {"effect": "Shout", "body": {}}, {"fact": "Say"}])
def test_fields_of_different_things_are_not_compared(other: object) -> None:
    assert differing("/0", "differs", {"effect": "Say", "body": {}}, other).fields == ()


@pytest.mark.parametrize(
    ("stored", "asked", "same"),
    [
        (b"one", b"one", True),
        (b"one", b"two", False),
        (b"[redacted:KEY]", b"s3cret", True),
        (b"a [redacted:KEY] b", b"a s3cret b", True),
        (b"a [redacted:KEY] b [redacted:K2] c", b"a x b y c", True),
        (b"a [redacted:KEY] b", b"a s3cret c", False),
        (b"a [redacted:KEY] b", b"z s3cret b", False),
        (b"a [redacted:KEY] b [redacted:K2] c", b"a x y c", False),
        (b"aa[redacted:KEY]aa", b"aaa", False),
    ],
)
def test_a_redacted_body_is_the_same_where_it_was_not_redacted(
    stored: bytes, asked: bytes, same: bool
) -> None:
    assert same_but_redacted(stored, asked) is same
