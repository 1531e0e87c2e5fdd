"""What the agent does to the world: files and commands. Each raises what went wrong."""

from planforge.testing.script import actions

Touching = actions.Change | actions.Read


def kind_of(action: Touching) -> str:
    """The kind of tool call that this is."""
    match action:
        case actions.Delete():
            return "delete"
        case actions.Read():
            return "read"
    return "edit"


def touch(action: Touching, path: str) -> None:
    """Do to the file at `path` what the action says."""
    from pathlib import Path

    file = Path(path)
    match action:
        case actions.Read():
            file.read_bytes()
        case actions.Delete():
            file.unlink()
        case actions.Edit(_, old, new):
            text = file.read_bytes().decode()
            if text.count(old) != 1:
                raise ValueError(f"the text to replace stands {text.count(old)} times in `{path}`")
            file.write_bytes(text.replace(old, new).encode())
        case actions.Write(_, text, append):
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a" if append else "w", encoding="utf-8") as stream:
                stream.write(text)
