"""Operations on large sets go in slices, between which others write: the reply is that of one moment
all the same."""

from lib.bounds import eventually
from lib.workers import run_workers

MEMBERS = 20000
MOVERS = 20
ROUNDS = 3
BEGUN, DONE = "begun", "done"


def fill(client):
    for name in ("a", "b"):
        for begin in range(0, MEMBERS, 10000):
            client.call("SADD", name, *["%s:%d" % (name, i) for i in range(begin, begin + 10000)])
    client.call("SADD", "a", *["mover:%d" % i for i in range(MOVERS)])


def move_until_done(client):
    """Moves members to and fro: at no moment is one in both sets, or in none."""
    moves = 0
    while not client.call("EXISTS", DONE):
        source, target = ("a", "b") if moves // MOVERS % 2 == 0 else ("b", "a")
        assert client.call("SMOVE", source, target, "mover:%d" % (moves % MOVERS)) == 1
        moves += 1
        client.call("SET", BEGUN, "1")
    return moves


def read(client):
    everything = 2 * MEMBERS + MOVERS
    for _ in range(ROUNDS):
        union = client.call("SUNION", "a", "b")
        assert len(union) == everything == len(set(union))
        assert client.call("SINTERCARD", "2", "a", "b") == 0
        assert client.call("SINTER", "a", "b") == []
        left = client.call("SDIFF", "a", "b")
        assert MEMBERS <= len(left) <= MEMBERS + MOVERS


def test_members_that_move_are_in_one_set_at_each_moment(server):
    with server.connect() as client:
        fill(client)

    def work(client, number):
        if number == 0:
            return move_until_done(client)
        try:
            eventually(lambda: client.call("EXISTS", BEGUN), "the other one is at work")
            read(client)
        finally:
            client.call("SET", DONE, "1")
        return None

    assert run_workers(server.address(), work, 2)[0] > 0


def test_due_members_are_in_no_reply(server):
    """Members whose time comes while an operation runs: what begins after it does not see them."""
    with server.connect() as client:
        fill(client)
        seconds, us = client.call("TIME")
        at_ms = int(seconds) * 1000 + int(us) // 1000 + 300
        for i in range(MOVERS):
            client.call("PEXPIREMEMBERAT", "a", "mover:%d" % i, str(at_ms + i))
        while True:
            seconds, us = client.call("TIME")
            over = int(seconds) * 1000 + int(us) // 1000 > at_ms + MOVERS
            count = len(client.call("SUNION", "a", "b"))
            assert 2 * MEMBERS <= count <= 2 * MEMBERS + MOVERS
            if over:
                assert count == 2 * MEMBERS
                return
