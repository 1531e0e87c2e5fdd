"""Who does the work: which agent plays a role, in which conversation, within which limits."""
