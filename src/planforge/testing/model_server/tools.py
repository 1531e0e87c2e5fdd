"""
A scene's actions as calls of the tools that a program offers.

Tools are known by their names, and their arguments by the names in their schemas,
so one table does for all programs. A model that wants a tool it was not offered
asks for it all the same, by the name that this program's tools usually have: that
is how a test shows that the program refuses.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Mapping, Sequence

from planforge.testing.model_server.conversation import Call, Tool
from planforge.testing.script import actions

WRITERS = ("Write", "write_file", "write", "create_file")
EDITORS = ("Edit", "replace", "edit", "edit_file")
READERS = ("Read", "read_file", "read")
SHELLS = ("Bash", "exec_command", "shell_command", "shell", "local_shell", "run_shell_command", "bash")
ANSWERS = ("StructuredOutput", "structured_output", "final_result")
"""Tools by which a program has the model hand in an answer of a given form."""
FAMILIES: tuple[tuple[frozenset[str], Mapping[str, str]], ...] = (
    (
        frozenset({"Read", "Grep", "Glob", "Bash", "Edit", "Write"}),
        {"write": "Write", "edit": "Edit", "read": "Read", "shell": "Bash"},
    ),
    (
        frozenset({"read_file", "grep_search", "list_directory", "write_file"}),
        {"write": "write_file", "edit": "replace", "read": "read_file", "shell": "run_shell_command"},
    ),
    (
        frozenset({"exec_command", "shell", "view_image", "update_plan"}),
        {"write": "exec_command", "edit": "exec_command", "read": "exec_command", "shell": "exec_command"},
    ),
    (
        frozenset({"read", "grep", "glob", "find", "ls", "search", "list"}),
        {"write": "write", "edit": "edit", "read": "read", "shell": "bash"},
    ),
)
PATH_NAMES = ("file_path", "filePath", "absolute_path", "path", "filename")
COMMAND_NAMES = ("command", "cmd", "script")
TEXT_NAMES = ("content", "text", "contents")
OLD_NAMES = ("old_string", "oldString", "oldText", "old")
NEW_NAMES = ("new_string", "newString", "newText", "new")
PATIENCE = 30_000


def call_for(action: actions.Doing, tools: Sequence[Tool], cwd: str) -> Call | None:
    """The call that has the program do this, or None if it offers no tools at all."""
    match action:
        case actions.Tool(name, given):
            return Call(name, given, _kind_of(name, tools))
        case actions.Write(path, text, append=False) if offered(WRITERS, tools) or not offered(SHELLS, tools):
            return _filled("write", WRITERS, tools, _file(path, cwd) | dict.fromkeys(TEXT_NAMES, text))
        case actions.Edit(path, old, new) if offered(EDITORS, tools) or not offered(SHELLS, tools):
            return _edit(tools, _file(path, cwd), old, new)
        case actions.Read(path) if offered(READERS, tools) or not offered(SHELLS, tools):
            return _filled("read", READERS, tools, _file(path, cwd))
    return _shell(_command(action), tools)


def read_first(path: str, tools: Sequence[Tool], cwd: str) -> Call | None:
    """A look into a file, for programs that want it read before it is written; None if they offer none."""
    return call_for(actions.Read(path), tools, cwd) if offered(READERS, tools) else None


def wait_for(session: int, tools: Sequence[Tool]) -> Call | None:
    """A call that waits for a command which a program reported to be still running."""
    if not offered(("write_stdin",), tools):
        return None
    return Call("write_stdin", {"session_id": session, "chars": "", "yield_time_ms": PATIENCE})


def handing_in(answer: Mapping[str, object], tools: Sequence[Tool]) -> Call | None:
    """The call that hands in an answer of a given form, if this program wants it so."""
    found = offered(ANSWERS, tools)
    return Call(found.name, answer) if found else None


def offered(names: Sequence[str], tools: Sequence[Tool]) -> Tool | None:
    """The first of these tools that is offered."""
    by_name = {tool.name: tool for tool in tools}
    return next((by_name[name] for name in names if name in by_name), None)


def _kind_of(name: str, tools: Sequence[Tool]) -> str:
    found = offered((name,), tools)
    return found.kind if found else "function"


def _file(path: str, cwd: str) -> dict[str, object]:
    """The file under every name that tools have for it, absolute if it is known where the program works."""
    return dict.fromkeys(PATH_NAMES, posixpath.normpath(posixpath.join(cwd, path)) if cwd else path)


def _filled(
    sort: str, names: Sequence[str], tools: Sequence[Tool], values: Mapping[str, object]
) -> Call | None:
    """A call with the values that the tool's schema names; other required ones are made up."""
    found = offered(names, tools) or _usual(sort, tools)
    if found is None:
        return None
    given = {name: value for name, value in values.items() if name in found.properties}
    if not found.properties:  # it is not offered, or says nothing of itself: the commonest names will do
        given = {
            name: values[name] for name in ("file_path", "content", "command", "old_string") if name in values
        }
    made_up = {name: "scripted" for name in found.required if name not in given}
    return Call(found.name, {**given, **made_up}, found.kind)


def _usual(sort: str, tools: Sequence[Tool]) -> Tool | None:
    """The tool that a program with such tools usually has for this; None for one without any."""
    names = {tool.name for tool in tools}
    for members, usual in FAMILIES:
        if names & members:
            return Tool(usual[sort], {})
    return Tool(FAMILIES[0][1][sort], {}) if tools else None


def _edit(tools: Sequence[Tool], file: Mapping[str, object], old: str, new: str) -> Call | None:
    found = offered(EDITORS, tools)
    values = {**file, **dict.fromkeys(OLD_NAMES, old), **dict.fromkeys(NEW_NAMES, new)}
    if found and "edits" in found.properties:
        values["edits"] = [{"oldText": old, "newText": new}]
    return _filled("edit", EDITORS, tools, values)


def _shell(command: str, tools: Sequence[Tool]) -> Call | None:
    found = offered(SHELLS, tools) or _usual("shell", tools)
    if found is None:
        return None
    if found.name in ("shell", "local_shell") and _takes_list(found):
        return Call(found.name, {"command": ["bash", "-lc", command]}, found.kind)
    if found.name == "exec_command":
        return Call(found.name, {"cmd": command, "yield_time_ms": PATIENCE}, found.kind)
    return _filled("shell", SHELLS, tools, dict.fromkeys(COMMAND_NAMES, command))


def _takes_list(found: Tool) -> bool:
    described = found.properties.get("command", {})
    return found.kind == "local_shell" or (isinstance(described, dict) and described.get("type") == "array")


def _command(action: actions.Doing) -> str:
    match action:
        case actions.Write(path, text, append):
            folder = posixpath.dirname(path)
            make = f"mkdir -p -- {shlex.quote(folder)} && " if folder else ""
            return f"{make}printf %s {shlex.quote(text)} {'>>' if append else '>'} {shlex.quote(path)}"
        case actions.Edit(path, old, new):
            code = (
                "import sys; p, o, n = sys.argv[1:]; t = open(p, newline='').read(); "
                "o in t or sys.exit(1); open(p, 'w', newline='').write(t.replace(o, n, 1))"
            )
            return shlex.join(["python3", "-c", code, path, old, new])
        case actions.Delete(path):
            return shlex.join(["rm", "--", path])
        case actions.Read(path):
            return shlex.join(["cat", "--", path])
        case actions.Run(argv):
            return shlex.join(argv)
        case actions.Detach(seconds):
            return f"setsid sleep {seconds} </dev/null >/dev/null 2>&1 & echo $!"
        case actions.Tool():
            raise AssertionError("a tool is called by its own name")
