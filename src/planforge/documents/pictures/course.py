"""
The course of a loop: how many findings each round had, and where it ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

import msgspec

from planforge.documents.pictures import picture, text
from planforge.kernel.wording import counted
from planforge.rules.loops.rounds import Counts

KINDS = (("critical", "var(--bad)", "█"), ("medium", "var(--middling)", "▓"), ("minor", "var(--accent)", "░"))
HEIGHT = 180.0
LEFT, TOP = 44.0, 42.0
WIDEST = 72
LETTER = 7.2
"""About how wide one is."""


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """One round."""

    label: str
    counts: Counts
    note: str = ""
    """What was decided then, if it is worth a word."""


def as_text(bars: Sequence[Bar]) -> str:
    """The course for a terminal, a line a round."""
    most = max((bar.counts.total for bar in bars), default=0)
    unit = max(1, -(-most // WIDEST))
    wide = max(len(bar.label) for bar in bars)
    lines = [f"{'█ critical  ▓ medium  ░ minor':>{wide + 32}}" + (f"  (one for {unit})" if unit > 1 else "")]
    for bar in bars:
        drawn = "".join(sign * -(-getattr(bar.counts, kind) // unit) for kind, _, sign in KINDS)
        note = f"  {bar.note}" if bar.note else ""
        lines.append(f"{bar.label:>{wide}} {drawn}{' ' if drawn else ''}{bar.counts.total}{note}")
    return "\n".join(lines)


def as_svg(bars: Sequence[Bar], title: str, ending: str) -> str:
    """The course as a picture."""
    step = max(10.0, min(48.0, 720.0 / max(len(bars), 1)))
    width = max(LEFT + step * len(bars) + 24, 420.0)
    about = f"{counted(len(bars), 'round')}; {ending}"
    parts = [text(LEFT, 22, title), *_grid(bars, width), *_columns(bars, step), *_legend(width)]
    lines = wrap(ending, int((width - LEFT) / LETTER))
    y = TOP + HEIGHT + 46
    parts += [text(LEFT, y + 18 * number, line) for number, line in enumerate(lines)]
    return picture(width, y + 18 * len(lines), title, about, parts)


def _scale(bars: Sequence[Bar]) -> int:
    """The top of the axis: a round number that no bar passes."""
    most = max([bar.counts.total for bar in bars] or [1]) or 1
    size: int = 10 ** (len(str(most)) - 1)
    return next(top for top in (size, 2 * size, 5 * size, 10 * size) if top >= most)


def _grid(bars: Sequence[Bar], width: float) -> Iterator[str]:
    top = _scale(bars)
    for part in (0.0, 0.5, 1.0):
        y = TOP + HEIGHT * (1 - part)
        yield f'<line x1="{LEFT:g}" x2="{width - 12:g}" y1="{y:g}" y2="{y:g}" stroke="var(--line)"/>'
        yield text(LEFT - 8, y + 4, f"{top * part:g}", kind="soft", anchor="end")


def _columns(bars: Sequence[Bar], step: float) -> Iterator[str]:
    top = _scale(bars)
    every = -(-len(bars) // 20)
    for number, bar in enumerate(bars):
        x, y = LEFT + step * number + step * 0.15, TOP + HEIGHT
        for kind, colour, _ in KINDS:
            tall = HEIGHT * getattr(bar.counts, kind) / top
            y -= tall
            if tall:
                yield f'<rect x="{x:g}" y="{y:g}" width="{step * 0.7:g}" height="{tall:g}" fill="{colour}"/>'
        if number % every == 0 or number == len(bars) - 1:
            yield text(x + step * 0.35, TOP + HEIGHT + 16, bar.label, kind="soft", anchor="middle")


def _legend(width: float) -> Iterator[str]:
    x = width - 190
    for kind, colour, _ in KINDS:
        yield f'<rect x="{x:g}" y="30" width="9" height="9" fill="{colour}"/>'
        yield text(x + 13, 38, kind, kind="soft")
        x += 62
