"""What an attempt must leave as it was: the repository, the person's files, our own state."""
