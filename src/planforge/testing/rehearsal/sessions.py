"""
Conversations, and what is left of them when the process has ended.

An agent whose script says that it can load or resume keeps each conversation in a
file, in the directory that `PLANFORGE_REHEARSAL_SESSIONS` names or else beneath
the home directory. Faults that come only so many times are counted there too.
"""

import json
import os

from planforge.testing.rehearsal.streams import INTERNAL_ERROR, Refusal

SESSIONS_VARIABLE = "PLANFORGE_REHEARSAL_SESSIONS"
BENEATH_HOME = ".planforge-rehearsal"
REMEMBERED = 1 << 20


class Session:
    """One conversation: where it works, how it is set, what was said in it."""

    def __init__(self, name: str, cwd: str, mode: str, model: str) -> None:
        self.name = name
        self.cwd = cwd
        self.mode = mode
        self.model = model
        self.said: list[tuple[str, str]] = []
        """Prompts and answers, in turn."""

    @property
    def history(self) -> str:
        """What was said so far, a line break between any two."""
        return "\n".join(text for said in self.said for text in said if text)

    def remember(self, prompt: str, answer: str) -> None:
        """Add a prompt and its answer, in the file too if there is one."""
        self.said.append((prompt, answer[:REMEMBERED]))
        path = f"{directory()}/{self.name}.jsonl"
        if not os.path.exists(path):  # noqa: PTH110
            return
        line = json.dumps({"prompt": prompt, "answer": answer[:REMEMBERED]}) + "\n"
        _add(path, line.encode())


def directory() -> str:
    """Where conversations are kept."""
    beneath_home = os.path.join(os.environ.get("HOME") or ".", BENEATH_HOME)  # noqa: PTH118
    return os.environ.get(SESSIONS_VARIABLE) or beneath_home


def keep(session: Session) -> None:
    """Begin a file for a conversation, so that another process can go on with it."""
    _add(f"{directory()}/{session.name}.jsonl", b"")


def recall(name: str, cwd: str, mode: str, model: str) -> Session | None:
    """The conversation of that name, if there was one."""
    from pathlib import Path

    if not name.replace("-", "").isalnum():
        return None
    try:
        lines = Path(f"{directory()}/{name}.jsonl").read_text().splitlines()
    except FileNotFoundError:
        return None
    session = Session(name, cwd, mode, model)
    session.said = [(said["prompt"], said["answer"]) for said in map(json.loads, lines)]
    return session


def is_due(times: int, what: str) -> bool:
    """Whether something that is to happen `times` times is to happen now; 0 is always."""
    if not times:
        return True
    from hashlib import sha256
    from pathlib import Path

    path = f"{directory()}/times-{sha256(what.encode(errors='surrogatepass')).hexdigest()[:20]}"
    _add(path, b".")
    return Path(path).stat().st_size <= times


def _add(path: str, data: bytes) -> None:
    from pathlib import Path

    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with Path(path).open("ab", buffering=0) as file:
            file.write(data)
    except OSError as error:
        raise Refusal(INTERNAL_ERROR, f"cannot write `{path}`: {error.strerror}") from error
