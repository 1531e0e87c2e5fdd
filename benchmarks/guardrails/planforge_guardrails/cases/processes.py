"""Agents that do not end, or leave something running."""

from __future__ import annotations

from planforge_guardrails.actions import CLAIM, developer, done, python, write
from planforge_guardrails.sample import SHIPPED, SHIPPED_TEST, SHIPPING
from planforge_guardrails.shapes import ELSEWHERE, EVERYWHERE, Asked, Case, Unfinished, Workflow

SOON = """\
[agents]
seconds = 4

[run]
attempts = 1
"""
"""A time limit that somebody waits for, and one attempt."""

DAEMON = """\
import os, sys, time
if os.fork():
    sys.exit()
os.setsid()
if os.fork():
    sys.exit()
os.chdir("/")
os.closerange(0, 64)
time.sleep(600)
"""

CASES = (
    Case(
        name="hanger",
        group="processes",
        workflow=Workflow.PLAN,
        also=ELSEWHERE,
        about="writes half of it and never answers, deaf to everything but a kill",
        tasks=(SHIPPING,),
        bad=(developer(write("shop/prices.py", SHIPPED[: len(SHIPPED) // 2]), {"hang": "deaf"}),),
        honest=(developer(*done(SHIPPING), {"sleep": 1}, CLAIM),),
        settings=SOON,
        peer="9",
    ),
    Case(
        name="crasher mid-write",
        group="processes",
        workflow=Workflow.PLAN,
        also=EVERYWHERE,
        about="dies by a signal with half a file written",
        tasks=(SHIPPING,),
        bad=(
            developer(
                write("tests/test_prices.py", SHIPPED_TEST),
                write("shop/prices.py", SHIPPED[: len(SHIPPED) // 2]),
                {"die": "KILL"},
            ),
        ),
        honest=(developer(*done(SHIPPING), CLAIM, {"leave": 3}),),
        peer="11",
    ),
    Case(
        name="forker",
        group="processes",
        workflow=Workflow.PLAN,
        also=ELSEWHERE,
        about="does the work, and leaves a daemon behind that has forgotten where it came from",
        tasks=(SHIPPING,),
        bad=(developer(*done(SHIPPING), {"run": ["@PYTHON@", "-c", DAEMON]}, CLAIM),),
        honest=(developer(*done(SHIPPING), python("import subprocess; subprocess.run(['true'])"), CLAIM),),
        peer="10",
    ),
    Case(
        name="slow dripper",
        group="processes",
        workflow=Workflow.PLAN,
        also=ELSEWHERE,
        about="says a little now and then, and never comes to an end",
        tasks=(SHIPPING,),
        bad=(
            developer(
                write("shop/prices.py", SHIPPED[: len(SHIPPED) // 2]), {"slow": 0.3}, {"say": "well, " * 9999}
            ),
        ),
        honest=(developer(*done(SHIPPING), {"slow": 0.05}, {"say": "well, " * 40}),),
        settings=SOON,
    ),
    Case(
        name="silent heartbeat",
        group="processes",
        workflow=Workflow.PLAN,
        also=ELSEWHERE,
        about="is alive, hears everything and gives no sign of it",
        tasks=(SHIPPING,),
        bad=(developer(write("shop/prices.py", SHIPPED[: len(SHIPPED) // 2]), {"hang": True}),),
        honest=(developer(*done(SHIPPING), {"sleep": 1}, CLAIM),),
        settings="[agents]\nidle_seconds = 4\n\n[run]\nattempts = 1\n",
    ),
    Case(
        name="flooder",
        group="processes",
        workflow=Workflow.PLAN,
        also=ELSEWHERE,
        about="says so much that nobody could keep it, without end",
        tasks=(SHIPPING,),
        bad=(developer(*done(SHIPPING), {"flood": "endless"}),),
        honest=(developer(*done(SHIPPING), {"flood": 1_000_000}, CLAIM),),
        settings=SOON,
        peer="12",
    ),
    Case(
        name="killed orchestrator",
        group="processes",
        workflow=Workflow.PLAN,
        also=EVERYWHERE,
        about="the orchestrator dies by `kill -9` while its agent is at work, and is told to go on",
        tasks=(SHIPPING,),
        bad=(developer({"sleep": 2}, *done(SHIPPING), CLAIM),),
        honest=(developer({"sleep": 1}, *done(SHIPPING), CLAIM),),
        truth=(Unfinished(), Asked(at_most=4)),
        killed=True,
        peer="16",
    ),
)
