"""
For tests of what drives agents: an agent and a model that play scripts.

`ModelServer` is a model on loopback for real programs to ask; `rehearsal_command`
starts an agent that needs no model. Both play the same scripts. Nothing is imported
before it is used, because the rehearsal agent starts from here.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planforge.testing.commands import rehearsal_command
    from planforge.testing.model_server import ModelServer, Request
    from planforge.testing.script import ScriptError

__all__ = ["ModelServer", "Request", "ScriptError", "rehearsal_command"]

_HOMES = {
    "ModelServer": "planforge.testing.model_server",
    "Request": "planforge.testing.model_server",
    "ScriptError": "planforge.testing.script",
    "rehearsal_command": "planforge.testing.commands",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
