"""Pictures hold what they show, and nothing that could run."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from planforge.documents.pictures import course, machine
from planforge.documents.pictures.course import Bar
from planforge.documents.pictures.machine import Arrow
from planforge.kernel.work.lifecycle.tables import MACHINES
from planforge.rules.loops.rounds import Counts

SVG = "{http://www.w3.org/2000/svg}"


def read(drawn: str) -> ElementTree.Element:
    return ElementTree.fromstring(drawn)  # noqa: S314


def words(drawn: str) -> list[str]:
    return [found.text or "" for found in read(drawn).iter(f"{SVG}text")]


@pytest.mark.parametrize("name", MACHINES)
def test_every_status_and_every_event_is_in_the_picture_and_within_it(name: str) -> None:
    found = MACHINES[name]
    arrows = [
        Arrow(source=row.source, target=row.target, label=row.event, person=row.person)
        for row in found.transitions
    ]
    drawn = machine.as_svg(found.name, found.about, found.states, arrows, found.final)
    shown = words(drawn)
    assert set(found.states) <= set(shown)
    for row in found.transitions:
        assert any(row.event in line for line in shown)
    root = read(drawn)
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    for box in root.iter(f"{SVG}rect"):
        assert float(box.get("x", "0")) >= 0
        assert float(box.get("x", "0")) + float(box.get("width", "0")) <= width
        assert float(box.get("y", "0")) + float(box.get("height", "0")) <= height
    told = machine.as_text(found.states, arrows, found.final)
    assert all(f"→ {row.target}" in told for row in found.transitions)


def test_what_is_shown_cannot_break_out_of_the_picture() -> None:
    wicked = '"/><script>alert(1)</script>'
    bars = [Bar(label=wicked, counts=Counts(critical=1, medium=0, minor=0))]
    arrow = Arrow(source=wicked, target=wicked, label=wicked, person=True)
    for drawn in (
        course.as_svg(bars, wicked, wicked),
        machine.as_svg(wicked, wicked, [wicked], [arrow], [wicked]),
    ):
        root = read(drawn)
        assert not list(root.iter(f"{SVG}script"))
        assert wicked in words(drawn)


def test_bars_are_as_tall_as_their_counts() -> None:
    bars = [
        Bar(label="1", counts=Counts(critical=2, medium=1, minor=1)),
        Bar(label="2", counts=Counts(critical=0, medium=0, minor=2)),
    ]
    root = read(course.as_svg(bars, "title", "the end"))
    tall: dict[str, float] = {}
    for box in root.iter(f"{SVG}rect"):
        if float(box.get("height", "0")) > 9 and box.get("class") != "page":
            tall[box.get("fill", "")] = tall.get(box.get("fill", ""), 0) + float(box.get("height", "0"))
    assert tall["var(--bad)"] == pytest.approx(2 * tall["var(--middling)"])
    assert tall["var(--accent)"] == pytest.approx(3 * tall["var(--middling)"])


@pytest.mark.parametrize("most", [0, 1, 71, 72, 73, 100_000])
def test_no_line_in_a_terminal_grows_without_end(most: int) -> None:
    told = course.as_text([Bar(label="1", counts=Counts(critical=most, medium=0, minor=0), note="halt")])
    assert all(len(line) <= 100 for line in told.splitlines())
    assert f"{most}  halt" in told
