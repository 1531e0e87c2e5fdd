"""Which files patterns stand for, and whether two of them can meet, against going through all paths."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import translate
from functools import cache
from itertools import chain, product
from re import compile as expression

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planforge.errors import InvalidInput
from planforge.kernel.paths import (
    covers,
    exact,
    fixed,
    is_glob,
    matches,
    normalise,
    normalise_all,
    overlap,
    parents,
)
from tries import tries


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("src/app.py", "src/app.py"),
        ("./src//app.py", "src/app.py"),
        ("src/", "src"),
        ("src/./a/", "src/a"),
        (".", "**"),
        ("./", "**"),
        ("**/**/a/**/**", "**/a/**"),
        ("packages/*/", "packages/*/**"),
        ("src/**/", "src/**"),
        ("a b/é.py", "a b/é.py"),
        ("...", "..."),
        ("a..b", "a..b"),
        ("[!a-c]x", "[!a-c]x"),
    ],
)
def test_a_pattern_has_one_spelling(written: str, normal: str) -> None:
    assert normalise(written) == normal
    assert normalise(normal) == normal


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("", "is empty"),
        ("/etc/passwd", "is an absolute path"),
        ("/", "is an absolute path"),
        ("..", "leads out of the repository"),
        ("../secret", "leads out of the repository"),
        ("src/../a.py", "leads out of the repository"),
        ("a/..", "leads out of the repository"),
        ("a\0b", "has a NUL in it"),
        ("src\\a.py", "has a backslash in it"),
        ("a\udcff", "is not text"),
        ("[z-a].py", "runs backwards"),
    ],
)
def test_what_is_no_path_of_the_repository_is_refused_in_one_line(pattern: str, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem) as refused:
        normalise(pattern)
    assert "\n" not in refused.value.message
    if problem != "runs backwards":
        with pytest.raises(InvalidInput, match=problem):
            exact(pattern)


def test_the_path_of_a_file_is_no_pattern_whatever_characters_it_has() -> None:
    assert exact("./app/[id]//page*.tsx") == "app/[id]/page*.tsx"
    with pytest.raises(InvalidInput, match="is not a file"):
        exact("./")


def test_a_set_of_patterns_has_one_order_and_each_pattern_once() -> None:
    assert normalise_all(["src/", "b.py", "./src", "a.py"]) == ("a.py", "b.py", "src")


def test_the_directories_above_a_path_and_the_part_of_a_glob_that_is_no_glob() -> None:
    assert (parents("a/b/c.py"), parents("a.py")) == (["a/b", "a"], [])
    assert [fixed(pattern) for pattern in ("a/b*/c", "**", "a/b", "a/b/**/c")] == ["a", "", "a/b", "a/b"]


MATCHES = [
    ("src", "src", True),
    ("src", "src/a.py", True),
    ("src", "src/deep/er/a.py", True),
    ("src", "srcs/a.py", False),
    ("src/a.py", "src", False),
    ("src/*.py", "src/a.py", True),
    ("src/*.py", "src/.py", True),
    ("src/*.py", "src/deep/a.py", False),
    ("src/*", "src/deep/a.py", False),
    ("src/**", "src/deep/a.py", True),
    ("src/**", "src", True),
    ("src/**/a.py", "src/a.py", True),
    ("src/**/a.py", "src/x/y/a.py", True),
    ("**/a.py", "a.py", True),
    ("**", "anything/at/all", True),
    ("?.py", "é.py", True),
    ("?.py", "ab.py", False),
    ("[a-c].py", "b.py", True),
    ("[a-c].py", "d.py", False),
    ("[!a-c].py", "d.py", True),
    ("[^a-c].py", "b.py", False),
    ("[]-]", "]", True),
    ("[]-]", "-", True),
    ("a[", "a[", True),
    ("a**b", "a/b", False),
    ("a**b", "axb", True),
    ("app/[id]/*.tsx", "app/[id]/page.tsx", True),
    ("app/[id]/*.tsx", "app/d/page.tsx", True),
    ("app/[id]/*.tsx", "app/id/page.tsx", False),
    ("[.]", ".", False),
    ("*", "a\nb", True),
]


@pytest.mark.parametrize(("pattern", "path", "expected"), MATCHES)
def test_a_pattern_stands_for_these_paths_and_not_for_those(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected


OVERLAPS = [
    ("src", "src/a.py", True),
    ("src/a.py", "src/b.py", False),
    ("src", "srcs", False),
    ("src/*.py", "src/*.md", False),
    ("src/*.py", "src/test_*", True),
    ("src/*.py", "src", True),
    ("*.py", "src", False),
    ("**/*.py", "src", True),
    ("a/**/c", "a/b", True),
    ("*/b", "a/*", True),
    ("*/b/c", "a/*", False),
    ("a*", "*b", True),
    ("a?", "?", False),
    ("*a*", "*b*", True),
    ("[a-c]x", "[c-e]x", True),
    ("[a-c]x", "[d-e]x", False),
    ("[!a]", "a", False),
    ("[!a]", "[!b]", True),
    ("**", "**", True),
    ("[.]", "**", True),
    ("[.]", ".*", False),
    ("[.]?", "?[.]", False),
    (".?*", "..*", True),
    ("app/[id]/page.tsx", "app/[id]/*", True),
    ("[id]", "[[]id]", True),
]


@pytest.mark.parametrize(("one", "other", "expected"), OVERLAPS)
def test_two_patterns_overlap_if_some_path_matches_both(one: str, other: str, expected: bool) -> None:
    assert overlap(one, other) is expected
    assert overlap(other, one) is expected


def test_wildcards_without_end_are_answered_at_once() -> None:
    many = "*a" * 60
    assert not matches(f"{many}b", "a" * 400)
    assert overlap("/".join(["**", many] * 10), "/".join(["**", f"{many}b", "**"] * 10))


# Against going through all paths, by a matcher that has nothing in common with ours


@cache
def readings(segment: str) -> list[str]:
    """A segment by the standard library, with its brackets as a choice and as they are written."""
    written = segment.replace("[", "[[]")
    return [translate(segment), translate(written)]


def names(pattern: str, name: str) -> bool:
    return name not in (".", "..") and any(expression(way).match(name) for way in readings(pattern))


def plainly_matches(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """What `matches` must say, written down as it is defined."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        return plainly_matches(pattern[1:], path) or (bool(path) and plainly_matches(pattern, path[1:]))
    return bool(path) and names(pattern[0], path[0]) and plainly_matches(pattern[1:], path[1:])


def plainly(pattern: str, path: str) -> bool:
    segments = tuple(pattern.split("/"))
    return plainly_matches(segments if is_glob(pattern) else (*segments, "**"), tuple(path.split("/")))


# Two patterns of three pieces that meet at all meet in a name of at most six characters, two of two pieces in
# one of four. Of the characters two are in the patterns, `0` is in their ranges, `x` stands for the rest.
# Brackets as they are written make names of their own.
SHORT_NAMES = sorted(
    {"".join(name) for length in range(1, 7) for name in product("a.x", repeat=length)}
    | {"".join(name) for length in range(1, 5) for name in product("a.x0", repeat=length)}
)
plain = st.sampled_from(["a", ".", "*", "?"])
brackets = st.sampled_from(["[a]", "[.]", "[!a]", "[!.]", "[.-a]", "[!.-a]"])
three = st.lists(plain, min_size=1, max_size=3) | st.lists(plain | brackets, min_size=1, max_size=2)
segments = three.map("".join).filter(lambda text: text not in (".", "..", "**"))


def written_names(pattern: str, other: str) -> Iterator[str]:
    """Names that a pattern with brackets stands for as it is written, such as may meet the other."""
    parts = {other[start:end] for start in range(len(other)) for end in range(start, len(other) + 1)}
    fillings = {"*": sorted({"", *"a.x0", *parts}), "?": [*"a.x0[]!-"]}
    if "[" in pattern:
        yield from map("".join, product(*(fillings.get(character, [character]) for character in pattern)))


@given(one=segments, other=segments)
@settings(max_examples=tries(400), deadline=None)
def test_within_a_segment_overlap_is_what_going_through_all_names_finds(one: str, other: str) -> None:
    every = chain(SHORT_NAMES, written_names(one, other), written_names(other, one))
    assert overlap(one, other) is any(plainly(one, name) and plainly(other, name) for name in every)


# Patterns of up to three segments that meet at all meet in a path of at most six.
SHORT_PATHS = ["/".join(path) for length in range(1, 7) for path in product("abx", repeat=length)]
trees = st.lists(st.sampled_from(["a", "b", "*", "**", "[!a]", "?"]), min_size=1, max_size=3)
patterns = trees.map("/".join).map(normalise)


@given(one=patterns, other=patterns)
@settings(max_examples=tries(300), deadline=None)
def test_across_segments_overlap_is_what_going_through_all_paths_finds(one: str, other: str) -> None:
    both = [path for path in SHORT_PATHS if plainly(one, path) and plainly(other, path)]
    assert overlap(one, other) is bool(both)


anything = st.lists(segments | st.just("**"), min_size=1, max_size=4).map("/".join).map(normalise)
any_path = st.lists(st.text("a.x[]*", min_size=1, max_size=4), min_size=1, max_size=4).map("/".join)
paths = any_path.filter(lambda path: not {".", ".."} & set(path.split("/")))


@given(pattern=anything, path=paths)
@settings(max_examples=tries(500), deadline=None)
def test_matches_is_what_the_definition_says(pattern: str, path: str) -> None:
    assert matches(pattern, path) is plainly(pattern, path)


@given(one=anything, other=anything, path=paths)
@settings(max_examples=tries(500), deadline=None)
def test_overlap_is_the_same_both_ways_and_never_misses_a_common_path(
    one: str, other: str, path: str
) -> None:
    assert overlap(one, other) is overlap(other, one)
    assert overlap(one, other) or not (plainly(one, path) and plainly(other, path))


@given(outer=anything, inner=anything | paths.map(normalise), path=paths)
@settings(max_examples=tries(500), deadline=None)
def test_what_is_surely_covered_is_covered(outer: str, inner: str, path: str) -> None:
    if covers(outer, inner) and plainly(inner, path):
        assert plainly(outer, path)
