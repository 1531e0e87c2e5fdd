"""
The verdict of a review stage: one line, in a closed vocabulary.

    **Verdict:** Approved

Any other wording, a line without its bold markers, two lines that differ, or none at all is `unknown`.
"""

from __future__ import annotations

import re

from planforge.rules.verdicts.answers import dissent, spoken, too_large
from planforge.rules.verdicts.judgement import Judgement, Verdict, judged, stated, unknown

VOCABULARY = {
    "approved": Verdict.APPROVED,
    "approve": Verdict.APPROVED,
    "[approved]": Verdict.APPROVED,
    "revision required": Verdict.REVISION,
    "revision": Verdict.REVISION,
    "needs revision": Verdict.REVISION,
    "changes requested": Verdict.REVISION,
}
LINE = re.compile(
    r"^[ \t]*(?:(?:[-*+#]+|\d{1,9}[.)])[ \t]+)*\\?\*\*(?ai:verdict):\*\*(?P<said>.*)$", re.MULTILINE
)


def parse_review(text: str) -> Judgement:
    """Decide what a review says; never raises, and never guesses."""
    if fault := too_large(text):
        return unknown(fault)
    answer = spoken(text)
    lines = [" ".join(found["said"].split()).lower() for found in LINE.finditer(answer.prose)]
    verdict, fault = stated(lines, VOCABULARY, "**Verdict:**", "is not a verdict")
    if fault:
        return unknown(fault)
    if verdict is Verdict.APPROVED and (doubt := answer.doubt or dissent(answer.prose)):
        return unknown(doubt)
    return judged(verdict, f"it says `{lines[-1]}`")
