"""The files people read and edit, parsed and rendered: plans and their phases."""
