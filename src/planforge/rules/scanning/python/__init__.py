"""Python, by its own syntax tree: what its tests are, what they assert, and where they break a rule."""
