"""Generated command sequences to our server and to the oracle; reply bytes compared."""

import pytest

from lib import grammar
from lib.differences import DIFFERENCES
from lib.differential import Pair
from lib.seeds import generator, seeds

GROUPS = {
    "string": grammar.STRINGS,
    "generic": grammar.GENERIC,
    "hash": grammar.HASHES,
    "mixed": grammar.STRINGS + grammar.GENERIC + grammar.HASHES,
    "geo": grammar.GEO,
    "bitmap": grammar.BITMAPS,
    "hyperloglog": grammar.HYPERLOGLOGS,
    "connection": grammar.CONNECTION,
    "list": grammar.LISTS,
    "list_small": grammar.LISTS,
    "server": grammar.SERVER,
    "set": grammar.SETS,
}
# A connection or server program may change its protocol on the way, so it is read step by step.
STEPPED = ("connection", "server")
LENGTH = 400


# Tiny nodes, the inner ones compressed: every border is met often.
SMALL_LISTS = [("CONFIG", "SET", "list-max-listpack-size", "3"),
               ("CONFIG", "SET", "list-compress-depth", "1")]


def prelude(server, group):
    """The key "wrong" is of a type that the group's commands refuse."""
    if group.startswith("list") or group == "set":
        return [("SET", "wrong", "x")] + (SMALL_LISTS if group == "list_small" else [])
    return [("RPUSH", "wrong", "x")] if server.knows("RPUSH") else [("SADD", "wrong", "x")]


@pytest.mark.parametrize("proto", [2, 3], ids=["resp2", "resp3"])
@pytest.mark.parametrize("group", sorted(GROUPS))
@pytest.mark.parametrize("seed", seeds(6))
def test_same_replies(server, oracle, group, proto, seed):
    before = prelude(server, group)
    random = generator(seed, group, proto)
    program = grammar.Grammar(random, grammar.templates(GROUPS[group]), bool(before))
    pair = Pair(server, oracle, proto, DIFFERENCES, before)
    pair.check(program.program(LENGTH), seed, pipelined=group not in STEPPED)


@pytest.mark.slow
@pytest.mark.parametrize("group", sorted(GROUPS))
def test_same_replies_many_seeds(server, oracle, group):
    before = prelude(server, group)
    for seed in seeds(150, base=1000):
        for proto in (2, 3):
            random = generator(seed, group, proto)
            program = grammar.Grammar(random, grammar.templates(GROUPS[group]), bool(before))
            Pair(server, oracle, proto, DIFFERENCES, before).check(
                program.program(LENGTH), seed, group not in STEPPED)
