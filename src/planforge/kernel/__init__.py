"""What is true and how it moves: events, the ledger, effects, the driver, scores."""
