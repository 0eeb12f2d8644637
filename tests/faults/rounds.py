"""How often a fault is tried, and from which seed: every test prints its seed, and takes one to repeat."""

import os
import random
import secrets

MORE = float(os.environ.get("FACTORY_FAULT_ROUNDS", "1"))
"""Multiplies every number of rounds: 1 for each commit, more at night."""


def rounds(usual: int) -> int:
    return max(1, round(usual * MORE))


def seeded(name: str) -> random.Random:
    """A source of chance; FACTORY_FAULT_SEED repeats what was printed."""
    seed = int(os.environ.get("FACTORY_FAULT_SEED") or secrets.randbits(32))
    print(f"{name}: FACTORY_FAULT_SEED={seed}")  # noqa: T201  shown when the test fails
    return random.Random(seed)
