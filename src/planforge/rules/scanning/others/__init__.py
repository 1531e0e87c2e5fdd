"""Every language but Python, by the lexer: what its tests are, what they assert, where they break a rule."""
