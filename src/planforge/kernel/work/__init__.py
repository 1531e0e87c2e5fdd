"""What people work on, and what they decide about it."""
