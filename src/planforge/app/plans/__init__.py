"""Plans and fixes: made, carried out, taken in."""
