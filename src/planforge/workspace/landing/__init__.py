"""Landing: branches, merges, the person's checkout, other repositories."""
