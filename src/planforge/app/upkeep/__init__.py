"""What keeps a project in order."""
