"""
Asks the rehearsal agent one thing and allows it everything: `python -m ….bare_agent < prompt`.

The least that a client of the Agent Client Protocol can be. Ends when the agent has answered or is gone, and
ends the agent by closing its input, as a shell script would.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def main() -> int:
    """Ask what stands on standard input, in the current directory."""
    prompt = sys.stdin.read()
    agent = subprocess.Popen(
        [sys.executable, "-m", "planforge.testing.rehearsal"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert agent.stdin is not None
    try:
        session = _request(agent, 2, "session/new", {"cwd": str(Path.cwd()), "mcpServers": []})
        if session is None:
            return 1
        text = [{"type": "text", "text": prompt}]
        answer = _request(
            agent, 3, "session/prompt", {"sessionId": session["result"]["sessionId"], "prompt": text}
        )
        return 0 if answer and "result" in answer else 1
    except (OSError, KeyError):
        return 1
    finally:
        agent.stdin.close()
        agent.wait()


def _request(agent: subprocess.Popen[bytes], number: int, method: str, params: dict[str, Any]) -> Any:
    """Send a request and wait for its answer; None if the agent is gone."""
    assert agent.stdout is not None
    _send(agent, {"id": number, "method": method, "params": params})
    for line in agent.stdout:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if not isinstance(message, dict):
            continue
        if message.get("id") == number and "method" not in message:
            return message
        _show(message)
        if message.get("method") == "session/request_permission":
            chosen = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
            _send(agent, {"id": message["id"], "result": chosen})
    return None


def _show(message: dict[str, Any]) -> None:
    """Print what the agent says, as the script would."""
    match message:
        case {"params": {"update": {"sessionUpdate": "agent_message_chunk", "content": {"text": str(text)}}}}:
            sys.stdout.write(text)


def _send(agent: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert agent.stdin is not None
    agent.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    agent.stdin.flush()


if __name__ == "__main__":
    sys.exit(main())
