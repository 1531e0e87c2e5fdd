"""
What people decide: `deciders.py` says who may, `record.py` finds a decision and makes it, once.

An approval, a gate and a question are one record (`kernel/work/decisions.py`). `approvals.py`, `gates.py` and
`questions.py` are views on it: what each asks, what a run gets, and how it is shown.
"""
