"""
Which status follows which, as a picture.

Statuses stand below each other; ways on go down on the right, ways back go up on the left, each in a lane of
its own. A status that can be reached in the same way from many others is drawn with a note instead of with
all those lines. What a person can make happen is drawn in full, what happens by itself is dashed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from planforge.documents.pictures import picture, text

WIDE, ROW, LINE = 190.0, 30.0, 19.0
"""How wide a box is, how much room there is between two, and how much one way needs at its edge."""
LANE = 15.0
WORDS = 6.4
"""About how wide a letter is."""
MARGIN, TOP = 24.0, 52.0
MANY = 4
"""From so many statuses on, the same way to one place is told instead of drawn."""


class Arrow(msgspec.Struct, frozen=True, kw_only=True):
    """One way from a status to another."""

    source: str
    target: str
    label: str
    person: bool


def as_text(states: Sequence[str], arrows: Iterable[Arrow], final: Iterable[str]) -> str:
    """The same for a terminal: each status with the ways out of it."""
    ends, found = set(final), list(arrows)
    lines: list[str] = []
    for state in states:
        lines.append(f"{state}{'  (final)' if state in ends else ''}")
        ways = [arrow for arrow in found if arrow.source == state]
        wide = max((len(arrow.label) for arrow in ways), default=0)
        lines += [f"  {'▸' if way.person else '·'} {way.label:<{wide}}  → {way.target}" for way in ways]
    return "\n".join([*lines, "", "▸ a person's doing   · happens by itself"])


def as_svg(
    name: str, about: str, states: Sequence[str], arrows: Sequence[Arrow], final: Iterable[str]
) -> str:
    """The picture."""
    drawn, told = _sorted_out(arrows)
    order = {state: number for number, state in enumerate(states)}
    down = _ways(drawn, order, forwards=True)
    up = _ways(drawn, order, forwards=False)
    left = MARGIN + _room(up)
    boxes = _boxes(states, down, up, left)
    right = left + WIDE + max(_room(down), *(_note_room(told, state) for state in states))
    height = max(y + tall for _, y, tall in boxes.values()) + 44
    parts = [
        text(MARGIN, 26, f"{name}: {about}"),
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0 0 L8 4 L0 8 z" fill="var(--soft)"/></marker></defs>',
        *_lines(down, boxes, forwards=True),
        *_lines(up, boxes, forwards=False),
        *_statuses(boxes, set(final), states[0]),
        *_notes(told, boxes),
        text(MARGIN, height - 14, "full line: a person's doing · dashed: happens by itself", kind="soft"),
    ]
    said = "; ".join(f"{arrow.source} to {arrow.target} by {arrow.label}" for arrow in arrows)
    return picture(max(right + MARGIN, 420), height, f"{name}: {about}", said, parts)


class _Way(Arrow, frozen=True, kw_only=True):
    """One line of the picture."""

    at: int
    """Which of the ways at the edge of its box it is."""
    lane: int


def _sorted_out(arrows: Sequence[Arrow]) -> tuple[list[Arrow], list[Arrow]]:
    """Those that are drawn, and those that are told because so many are alike."""
    alike = Counter((arrow.label, arrow.target) for arrow in arrows)
    drawn = [arrow for arrow in arrows if alike[arrow.label, arrow.target] < MANY]
    return drawn, [arrow for arrow in arrows if alike[arrow.label, arrow.target] >= MANY]


def _ways(arrows: Iterable[Arrow], order: Mapping[str, int], *, forwards: bool) -> list[_Way]:
    """The ways on, or those back, each in the nearest lane that no other one of the same rows is in."""
    taken: list[list[tuple[int, int]]] = []
    edges: dict[str, int] = {}
    found = []
    for arrow in sorted(arrows, key=lambda each: abs(order[each.target] - order[each.source])):
        source, target = order[arrow.source], order[arrow.target]
        if (target > source) is not forwards:
            continue
        rows = (min(source, target), max(source, target))
        lane = next((n for n, lane in enumerate(taken) if _is_free(lane, rows)), len(taken))
        if lane == len(taken):
            taken.append([])
        taken[lane].append(rows)
        at = edges.get(arrow.source, 0)
        edges[arrow.source] = at + 1
        found.append(_Way(**msgspec.structs.asdict(arrow), at=at, lane=lane))
    return found


def _is_free(lane: Iterable[tuple[int, int]], rows: tuple[int, int]) -> bool:
    return all(rows[1] < first or last < rows[0] for first, last in lane)


def _room(ways: Sequence[_Way]) -> float:
    """How wide the lanes and their words are."""
    words = max((len(way.label) for way in ways), default=0) * WORDS
    return words + LANE * (max((way.lane for way in ways), default=-1) + 2) if ways else 0.0


def _note_room(told: Iterable[Arrow], state: str) -> float:
    return max((len(note) * WORDS + 30 for note in _note(told, state)), default=0.0)


def _note(told: Iterable[Arrow], state: str) -> list[str]:
    """How a status is reached from many others."""
    labels = Counter(arrow.label for arrow in told if arrow.target == state)
    return [f"← {label} (from {count} others)" for label, count in labels.items()]


Boxes = dict[str, tuple[float, float, float]]


def _boxes(states: Sequence[str], down: Sequence[_Way], up: Sequence[_Way], left: float) -> Boxes:
    """Where each status stands, and how tall it is."""
    boxes: Boxes = {}
    y = TOP
    for state in states:
        most = max(sum(way.source == state for way in down), sum(way.source == state for way in up))
        tall = max(34.0, LINE * most + 10)
        boxes[state] = (left, y, tall)
        y += tall + ROW
    return boxes


def _statuses(boxes: Boxes, final: set[str], first: str) -> Iterator[str]:
    for state, (x, y, tall) in boxes.items():
        edge = "var(--good)" if state in final else "var(--accent)" if state == first else "var(--line)"
        thick = 2 if state in final or state == first else 1
        yield (
            f'<rect x="{x:g}" y="{y:g}" width="{WIDE:g}" height="{tall:g}" rx="8" fill="var(--fill)" '
            f'stroke="{edge}" stroke-width="{thick}"/>'
        )
        yield text(x + WIDE / 2, y + tall / 2 + 4.5, state, anchor="middle")


def _notes(told: Sequence[Arrow], boxes: Boxes) -> Iterator[str]:
    for state, (x, y, tall) in boxes.items():
        for number, note in enumerate(_note(told, state)):
            at = (x + WIDE + 10, y + tall / 2 + 4 + number * 14)
            yield f'<rect class="page" x="{at[0]:g}" y="{at[1] - 11:g}" width="{len(note) * 6}" height="15"/>'
            yield text(*at, note, kind="soft")


def _lines(ways: Sequence[_Way], boxes: Boxes, *, forwards: bool) -> Iterator[str]:
    words = max((len(way.label) for way in ways), default=0) * WORDS
    for way in ways:
        x, y, _ = boxes[way.source]
        _, to_y, to_tall = boxes[way.target]
        begin, end = y + 16 + LINE * way.at, to_y + to_tall - 6
        edge = x + WIDE if forwards else x
        side = 1 if forwards else -1
        lane = edge + side * (words + LANE * (way.lane + 1.4))
        dashes = "" if way.person else ' stroke-dasharray="5 4"'
        path = f"M{edge:g} {begin:g} H{lane:g} V{end:g} H{edge + side * 2:g}"
        yield f'<path d="{path}" fill="none" stroke="var(--soft)"{dashes} marker-end="url(#tip)"/>'
        anchor = "start" if forwards else "end"
        yield text(edge + side * 8, begin - 4, way.label, kind="soft", anchor=anchor)
