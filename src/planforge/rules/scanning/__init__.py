"""
Finds what makes a green test suite worth less than it looks.

`scanner.examine` reads one file and says where it breaks a rule of `issues.RULES`. It looks at code and
comments, never at strings, documents or fixtures. `integrity.compare` compares two states of a
suite. Nothing here reads a file or a clock.
"""
