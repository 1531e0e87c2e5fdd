"""What people work on: items, the statuses that each kind goes through, and what is decided about them."""
