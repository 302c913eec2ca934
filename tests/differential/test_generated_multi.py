"""Generated transactions to our server and to the oracle; and what changes of keys, made by oneself
and by others, do to those who watch them."""

import pytest

from lib.differences import DIFFERENCES
from lib.differential import Pair, Reply, rule_for, show
from lib.grammar_multi import MultiGrammar, WatchGrammar
from lib.resp import encode
from lib.seeds import generator, seeds

LENGTH = 400
ROUNDS = 60


def check(server, oracle, proto, seed, pipelined):
    program = MultiGrammar(generator(seed, "multi", proto)).program(LENGTH)
    Pair(server, oracle, proto, DIFFERENCES).check(program, seed, pipelined)


@pytest.mark.parametrize("pipelined", [True, False], ids=["pipelined", "stepped"])
@pytest.mark.parametrize("proto", [2, 3], ids=["resp2", "resp3"])
@pytest.mark.parametrize("seed", seeds(8))
def test_same_replies(server, oracle, proto, pipelined, seed):
    check(server, oracle, proto, seed, pipelined)


# The words whose reply is a matter of chance: they change their key all the same.
CHANCE = (b"SPOP",)


def walk(server, steps):
    """The replies of all steps, taken by two connections."""
    clients = [server.connect(), server.connect()]
    try:
        clients[0].ok("FLUSHALL")
        got = []
        for who, words in steps:
            clients[who].send_raw(encode(*words))
            got.append(Reply(*clients[who].read_reply()))
        return got
    finally:
        for client in clients:
            client.close()


def check_watching(server, oracle, seed):
    steps = WatchGrammar(generator(seed, "watch")).steps(ROUNDS)
    ours, theirs = walk(server, steps), walk(oracle, steps)
    for at, (who, words) in enumerate(steps):
        a, b = ours[at], theirs[at]
        if words[0] in CHANCE:
            continue
        _, compare = rule_for(words)
        if not compare(a, b, words) and not any(d.covers(words, a, b) for d in DIFFERENCES):
            begin = max(0, at - 25)
            told = "\n".join("  %d: %s -> %r" % (w, show(ws), ours[n])
                             for n, (w, ws) in enumerate(steps[begin:at + 1], begin))
            raise AssertionError("seed %s\n%s\nours:   %r\noracle: %r" % (seed, told, a, b))


@pytest.mark.parametrize("seed", seeds(12))
def test_same_aborts(server, oracle, seed):
    check_watching(server, oracle, seed)


@pytest.mark.slow
def test_many_seeds(server, oracle):
    for seed in seeds(150, base=1000):
        for proto in (2, 3):
            check(server, oracle, proto, seed, pipelined=seed % 2 == 0)
        check_watching(server, oracle, seed)
