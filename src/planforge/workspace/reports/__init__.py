"""
Reads how many tests ran, and which failed, from what a test program left.

A reader returns what it can prove. None means that no count could be read, which is
not the same as a count of zero; a tally with a doubt has a count that cannot be
believed, and says why. One module for each sort of report: `junit`, `machine` for
what runners write for machines, `texts` and `runners` for what they print for people,
`findings` for linters, `coverage`.
"""
