"""Skins over `planforge.app` that do not know each other."""
