"""Where work is done: hardened git, worktrees, checks that yield evidence, landing."""
