"""
Agents that are asked by their own command line: one program, one prompt, JSON lines until it ends.

`claude` and `codex` each put a task to their program and say what came of it. `program` sees one through
from its start to its end, and `lines` reads what it prints, within limits.
"""
