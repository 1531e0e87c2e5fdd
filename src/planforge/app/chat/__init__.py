"""
Does what a command of `rules/commands` says, for the terminal now and for web and chat services later.

`perform` calls the function of `app` that the command line calls, and gives back one reply: text, data, exit
code, what to do next. Long work is begun and named in the reply; the caller drives it in the background
(`app/runs/background.py`). `doing.py` has one function for each command, `talking.py` what is put to an agent
and what its answer asks for, `endings.py` how a run in the background ended, `replies.py`
how an action is typed in a chat.

A command knows how far it is from a person. What a person types has depth 0; what an agent's answer asks for
has depth 1, and there nothing is approved, closed or given up, and no agent is asked for further actions.
"""

from planforge.app.chat.doing import perform
from planforge.app.chat.replies import Reply, Speaker, misused, refused, unknown

__all__ = ["Reply", "Speaker", "misused", "perform", "refused", "unknown"]
