"""What people work on: its rows, its documents, and what is shown of it."""
