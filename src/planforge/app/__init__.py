"""One function for each thing a user can do; `compose` alone wires performers to effects."""
