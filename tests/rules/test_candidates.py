"""Which files a text is about: bounded, the best first."""

from __future__ import annotations

from planforge.rules.candidates import MOST, MOST_TERMS, named, ranked, terms


def test_words_to_look_for_are_few_and_those_in_backticks_come_first() -> None:
    found = terms("Please add a limit to every request of the gateway, see `TokenBucket` and `refill`.")
    assert found[:2] == ("tokenbucket", "refill")
    assert set(found[2:]) == {"gateway", "request", "limit"}
    assert len(terms(" ".join(f"word{number}x" for number in range(100)))) == MOST_TERMS
    assert terms("do it 123 to the a of") == ()


def test_a_path_that_is_named_is_found_whatever_stands_around_it() -> None:
    paths = {"src/a.py", "README.md", "src/b c.py"}
    text = "Change `src/a.py` (see ./README.md, src/no.py and src/a.py)."
    assert named(text, paths) == ("src/a.py", "README.md")
    assert named("/etc/passwd ../src/a.py", paths) == ()


def test_what_is_named_comes_first_then_names_then_texts_and_never_more_than_the_most() -> None:
    paths = ["docs/x.md", "src/limit.py", "src/limits/other.py", "src/text.py", "src/nothing.py"]
    found = ranked(paths, ("limit",), {"src/text.py"}, ("docs/x.md",))
    assert found == ("docs/x.md", "src/limit.py", "src/text.py", "src/limits/other.py")
    many = [f"src/limit_{number:03d}.py" for number in range(100)]
    assert len(ranked(many, ("limit",), ())) == MOST
