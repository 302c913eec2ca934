"""Blocking pops over all server threads: each element once, first come first served, and nobody
waits while there is something for him."""

import pytest

from lib.faulty import FaultyProxy
from lib.queues import Broken, Op, check, plans, record
from lib.seeds import seeds

KEYS = ["q1", "q2", "q3"]


@pytest.mark.parametrize("seed", seeds(3))
def test_queues(server, seed):
    history, left = record(server.address(), plans(seed, KEYS), KEYS)
    check(history, left)


@pytest.mark.parametrize("seed", seeds(2, base=50))
def test_one_queue(server, seed):
    """All at one key: most pops wait."""
    made = plans(seed, ["q"], producers=2, consumers=8, movers=2, ops=100)
    check(*record(server.address(), made, ["q"]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(20, base=100))
def test_many_rounds(server, seed):
    check(*record(server.address(), plans(seed, KEYS, consumers=10, movers=3, ops=300), KEYS))


# ---- the checker ----

GOOD = [
    Op(1, ("BLPOP", "a", "b", "0"), [b"b", b"x"]),
    Op(2, ("BLPOP", "b", "0"), [b"b", b"y"]),
    Op(3, ("BLPOP", "a", "0.1"), None),
    Op(4, ("RPUSH", "b", "x", "y", "z"), 3),
    Op(5, ("BLMOVE", "b", "a", "LEFT", "RIGHT", "0"), b"z"),
    Op(6, ("BLPOP", "b", "a", "0"), [b"a", b"z"]),
    Op(7, ("RPUSH", "b", "w"), 1),
]


def test_the_checker_takes_a_good_history():
    check(GOOD, {"b": [b"w"]})


BAD = {
    "the second waiter first": (1, [b"b", b"y"]),
    "twice": (2, [b"b", b"x"]),
    "from nowhere": (2, [b"b", b"never"]),
    "not at all": (1, None),
    "the wrong key": (6, [b"b", b"z"]),
    "a wrong count": (4, 1),
    "a wait while there is something": (6, None),
}


@pytest.mark.parametrize("ticket, reply", BAD.values(), ids=list(BAD))
def test_the_checker_finds(ticket, reply):
    history = [op._replace(reply=reply) if op.ticket == ticket else op for op in GOOD]
    with pytest.raises(Broken):
        check(history, {"b": [b"w"]})


def test_the_checker_finds_what_is_left():
    with pytest.raises(Broken):
        check(GOOD, {"b": [b"w", b"w"]})
    with pytest.raises(Broken):
        check(GOOD, {})


@pytest.mark.any_threads
def test_a_server_that_polls_is_found(server):
    """Pops that look for elements now and then instead of standing in a queue."""
    proxy = FaultyProxy(server.address(), "polling pops")
    made = plans(1, ["q"], producers=2, consumers=8, movers=0, ops=40)
    try:
        with pytest.raises(Broken):
            check(*record(proxy.address, made, ["q"]))
    finally:
        proxy.close()
