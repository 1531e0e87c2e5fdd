"""
A pipeline of one's own, tried on a scripted agent and a scripted model: no account, no network.

The pipeline has a coding agent write a module, runs what was written, and has a model review it. The script
has the agent lie about its work the first time, and the model's server refuse the first question.

    python examples/scripted_agents.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from planforge.testing import ModelServer, rehearsal_command

SCRIPT = {
    "name": "a liar and a busy model",
    "scenes": [
        {
            "when": ["Write double.py", "It failed"],
            "do": [{"write": {"path": "double.py", "text": "print(21 * 2)\n"}}, {"say": "Now it works."}],
        },
        {
            "when": ["Write double.py"],
            "do": [{"write": {"path": "double.py", "text": "print(21 * 3\n"}}, {"say": "It works."}],
        },
        {
            "when": ["Review"],
            "do": [
                {"http": {"status": 429, "reset": 1, "times": 1}},
                {"say": '{"verdict": "pass"}'},
                {"usage": {"input": 120, "output": 8}},
            ],
        },
    ],
}


def ask_agent(command: list[str], task: str) -> str:
    """Put a task to an agent that speaks the Agent Client Protocol; what it says."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        said = ""
        session = ""
        for number, method in enumerate(("initialize", "session/new", "session/prompt")):
            params: dict[str, object] = {"protocolVersion": 1, "cwd": str(Path.cwd()), "mcpServers": []}
            params |= {"sessionId": session, "prompt": [{"type": "text", "text": task}]}
            agent.stdin.write(
                json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"
            )
            agent.stdin.flush()
            while (message := json.loads(agent.stdout.readline())).get("id") != number:
                update = message["params"]["update"]
                if update["sessionUpdate"] == "agent_message_chunk":
                    said += update["content"]["text"]
            session = message["result"].get("sessionId", session)
        agent.stdin.close()
    return said


def ask_model(url: str, question: str) -> str:
    """Put a question to a model that speaks Anthropic's Messages, and come again when it says so."""
    body = {"model": "scripted-1", "max_tokens": 100, "messages": [{"role": "user", "content": question}]}
    request = urllib.request.Request(f"{url}/v1/messages", json.dumps(body).encode())  # noqa: S310
    while True:
        try:
            with urllib.request.urlopen(request) as response:  # noqa: S310
                return str(json.load(response)["content"][0]["text"])
        except urllib.error.HTTPError as error:
            if error.code != 429:
                raise
            print(f"the model is busy for {error.headers['retry-after']} s")
            time.sleep(float(error.headers["retry-after"]))


def pipeline(command: list[str], model: str) -> str:
    """Written, run and reviewed."""
    task = "Write double.py, which prints twice 21."
    for _ in range(3):
        print(f"agent: {ask_agent(command, task)}")
        ran = subprocess.run([sys.executable, "double.py"], capture_output=True, text=True, check=False)
        if ran.stdout == "42\n":
            return str(json.loads(ask_model(model, f"Review:\n{Path('double.py').read_text()}"))["verdict"])
        print("it does not print 42")
        task += " It failed."
    return "given up"


def main() -> None:
    """Try the pipeline."""
    script = Path("script.json")
    script.write_text(json.dumps(SCRIPT))
    with ModelServer(script) as server:
        print(f"verdict: {pipeline(rehearsal_command(script), server.url)}")
        print(f"the model was asked {len(server.requests)} times, last for: {server.requests[-1].prompt!r}")


if __name__ == "__main__":
    main()
