"""
What an agent is asked in a conformance run, and what the scripted model does then.

The prompts are such that a real model does the same by itself, so that the run can also be made against an
agent's own service.
"""

from __future__ import annotations

from typing import Any

from planforge.kernel.effects import Usage

WORD = "periwinkle"
WRITTEN = "hello from the agent\n"
SAID = "The file is written."
STARTED = "started.txt"
SLEEPER = f"import time; open('{STARTED}', 'w').close(); time.sleep(300)"

WRITE = (
    f"Write a file called `written.txt` in the current directory that holds exactly the line "
    f"`{WRITTEN.strip()}`. Then say: {SAID}"
)
REFUSE = (
    "First try to write a file called `forbidden.txt`, then try to run the shell command "
    "`echo forbidden > forbidden-too.txt`. Then say what came of it."
)
REMEMBER = f"Remember the word `{WORD}`. Only say: remembered"
RECALL = "Which word were you told to remember? Only say that word."
WAIT = f'Run exactly this shell command and wait for it: python3 -c "{SLEEPER}"'
HANG = "Think about nothing for as long as you can, and do not answer."
ERRORS = {401: "Ask without a login.", 429: "Ask too often.", 500: "Ask a broken server."}
"""What is answered with which status."""

RESET = 3600
"""In how many seconds a usage limit ends."""

FIRST = Usage(input_tokens=1300, output_tokens=40, cached_tokens=300)
SECOND = Usage(input_tokens=1600, output_tokens=20, cached_tokens=500)
"""What the model's two answers cost: the one that writes the file, and the one that says so."""
BOTH = Usage(input_tokens=2900, output_tokens=60, cached_tokens=800)


def _usage(cost: Usage) -> dict[str, Any]:
    cached = cost.cached_tokens
    return {"usage": {"input": cost.input_tokens - cached, "output": cost.output_tokens, "cached": cached}}


def _refusal(status: int) -> dict[str, Any]:
    messages = {401: "invalid api key", 429: "rate limit reached", 500: "internal server error"}
    reset = {"reset": RESET} if status == 429 else {}
    return {"http": {"status": status, "message": messages[status], **reset}}


SCRIPT: dict[str, Any] = {
    "name": "conformance",
    "agent": {"modes": ["write", "read"], "read_only": ["read"], "resume": True},
    "scenes": [
        {
            "when": ["`written.txt`"],
            "do": [
                _usage(FIRST),
                {"write": {"path": "written.txt", "text": WRITTEN}},
                _usage(SECOND),
                {"say": SAID},
            ],
        },
        {
            "when": ["`forbidden.txt`"],
            "do": [
                {"write": {"path": "forbidden.txt", "text": "forbidden\n"}},
                {"run": ["sh", "-c", "echo forbidden > forbidden-too.txt"]},
                {"say": "I tried both."},
            ],
        },
        {"when": ["Remember the word"], "do": [{"say": "remembered"}]},
        {"when": ["told to remember"], "do": [{"say": "It was said: ${history}"}]},
        {"when": ["and wait for it"], "do": [{"run": ["python3", "-c", SLEEPER]}, {"say": "It ended."}]},
        {"when": ["do not answer"], "do": [{"hang": True}]},
        *({"when": [words], "do": [_refusal(status)]} for status, words in ERRORS.items()),
    ],
}
"""For the scripted model server and for the rehearsal agent alike."""
