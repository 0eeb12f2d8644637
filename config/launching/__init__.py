"""Bringing the whole product up on one machine, and taking all of it down again."""
