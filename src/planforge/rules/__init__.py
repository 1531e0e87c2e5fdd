"""What must hold, all of it pure: findings, verdicts, loop policies, acceptance of an attempt."""
