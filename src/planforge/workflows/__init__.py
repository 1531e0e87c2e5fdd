"""The ways to work, written as flows: they await effects, do nothing themselves and read no clock."""
