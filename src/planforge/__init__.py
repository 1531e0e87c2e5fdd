"""Planforge takes a request to landed code by driving coding agents, and believes none of them."""

__version__ = "0.1.0"
