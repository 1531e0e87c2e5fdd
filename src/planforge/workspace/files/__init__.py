"""Files that agents can swap: opened, copied, and links that lead out."""
