"""
Pictures, as SVG text and as text for terminals: pure functions of what they show.

They carry no script, no style sheet from elsewhere and no font but the reader's own, follow a dark or a light
page by themselves, and have a title and a description for those who cannot see them.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

STYLE = """\
:root { --ink: #1f2328; --soft: #656d76; --line: #d0d7de; --page: #ffffff; --fill: #f6f8fa;
  --bad: #cf222e; --middling: #bf8700; --good: #1a7f37; --accent: #0969da }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #8d96a0; --line: #30363d;
  --page: #0d1117; --fill: #161b22; --bad: #f85149; --middling: #d29922; --good: #3fb950;
  --accent: #4493f8 } }
text { font: 13px system-ui, sans-serif; fill: var(--ink) } .soft { fill: var(--soft); font-size: 11px }
.page { fill: var(--page) }"""


def picture(width: float, height: float, title: str, about: str, parts: Iterable[str]) -> str:
    """A whole SVG document."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-labelledby="title about">'
    )
    named = f'<title id="title">{escape(title)}</title><desc id="about">{escape(about)}</desc>'
    page = f'<rect class="page" width="{width:g}" height="{height:g}"/>'
    return "\n".join([head, named, f"<style>{STYLE}</style>", page, *parts, "</svg>"]) + "\n"


def text(x: float, y: float, words: str, *, kind: str = "", anchor: str = "start") -> str:
    """Words at a place."""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{kind}">{escape(words)}</text>'
