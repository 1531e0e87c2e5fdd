"""
What must hold before a stage begins, and after it has ended.

A gate is data: directives, one a line, in `planforge.toml`, in a Markdown fence, or built in Python.
`grammar.py` reads it, `evaluation.py` holds it against the facts. A gate that cannot be read is an error
in its definition; a gate that fails stops the stage, with a reason code, what was seen, and what to do
about it.
"""
