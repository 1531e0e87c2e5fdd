"""Evidence: gathered by running checks, and by looking at a change."""
