"""How often a test that looks for rare things looks: a few times in `make test`, and as ROUNDS says in
`make test-long`. Such tests have the mark `rounds`."""

import os

_GIVEN = os.environ.get("ROUNDS")
# What `long` below is for.
USUAL = 500


def rounds(short, long):
    """`short`, or in the long target `long` for ROUNDS=500 and so in proportion."""
    return max(1, int(_GIVEN) * long // USUAL) if _GIVEN else short
