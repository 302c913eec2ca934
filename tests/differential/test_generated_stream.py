"""Generated sequences of the commands of streams to our server and to the oracle."""

import pytest

from lib.differences import DIFFERENCES
from lib.differential import Pair
from lib.grammar import templates
from lib.grammar_stream import PRELUDE, STREAMS, StreamGrammar
from lib.seeds import generator, seeds

LENGTH = 500


def check(server, oracle, proto, seed):
    random = generator(seed, "stream", proto)
    program = StreamGrammar(random, templates(STREAMS), wrong_type=True).program(LENGTH)
    Pair(server, oracle, proto, DIFFERENCES, PRELUDE).check(program, seed)


@pytest.mark.parametrize("proto", [2, 3], ids=["resp2", "resp3"])
@pytest.mark.parametrize("seed", seeds(8))
def test_same_replies(server, oracle, proto, seed):
    check(server, oracle, proto, seed)


@pytest.mark.slow
def test_same_replies_many_seeds(server, oracle):
    for seed in seeds(150, base=1000):
        for proto in (2, 3):
            check(server, oracle, proto, seed)
