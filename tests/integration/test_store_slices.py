"""Large operations on sets and sorted sets go in slices, between which others write and the world changes:
what is stored is the result of one moment, at which it appears, and nothing that stands around writes
is passed by."""

import random

import pytest

from lib.bounds import eventually
from lib.resp import Error
from lib.seeds import seeds
from lib.workers import run_workers

MEMBERS = 20000
MOVERS = 20
BEGUN, DONE = "begun", "done"


def add(client, key, members, scores=None):
    """Members with scores, or of a set."""
    for at in range(0, len(members), 5000):
        part = members[at:at + 5000]
        if scores is None:
            client.call("SADD", key, *part)
        else:
            words = [w for i, m in enumerate(part) for w in (scores(at + i), m)]
            client.call("ZADD", key, *words)


def names(prefix, count=MEMBERS):
    return ["%s:%d" % (prefix, i) for i in range(count)]


def fill(client):
    """Sorted sets z, y and sets a, b with members of their own and some that are in z or a first."""
    for key, other, scores in (("z", "y", lambda i: 1 + i * 7919 % 1000), ("a", "b", None)):
        add(client, key, names(key) + names("mover", MOVERS), scores)
        add(client, other, names(other), scores)


def work_until_done(others):
    """The worker with number 0 does `others` until the one with number 1 is through its part."""
    def choose(main):
        def work(client, number):
            if number == 0:
                rounds = 0
                while not client.call("EXISTS", DONE):
                    others(client, rounds)
                    rounds += 1
                    client.call("SET", BEGUN, "1")
                return rounds
            try:
                eventually(lambda: client.call("EXISTS", BEGUN), "the other one is at work")
                return main(client)
            finally:
                client.call("SET", DONE, "1")
        return work
    return choose


def move(client, number):
    """To and fro: at no moment is a member in both keys, or in none."""
    there = number // MOVERS % 2 == 0
    member = "mover:%d" % (number % MOVERS)
    client.call("SMOVE", *(("a", "b") if there else ("b", "a")), member)
    source, target = ("z", "y") if there else ("y", "z")
    client.call("MULTI")
    client.call("ZREM", source, member)
    client.call("ZADD", target, 5, member)
    client.call("EXEC")


def store_all(client):
    everything = 2 * MEMBERS + MOVERS
    for _ in range(3):
        assert client.call("ZUNIONSTORE", "zu", 2, "z", "y") == everything
        assert client.call("ZCARD", "zu") == everything
        assert client.call("SUNIONSTORE", "su", "a", "b") == everything
        assert client.call("SCARD", "su") == everything
        assert client.call("ZINTERSTORE", "zi", 2, "y", "z") == 0
        assert client.call("SINTERSTORE", "si", "a", "b") == 0
        assert MEMBERS <= client.call("ZDIFFSTORE", "zd", 2, "z", "y") <= MEMBERS + MOVERS
        assert MEMBERS <= client.call("SDIFFSTORE", "sd", "b", "a") <= MEMBERS + MOVERS
        assert client.call("ZINTERCARD", 2, "z", "y") == 0
        union = client.call("ZUNION", 2, "z", "y")
        assert len(union) == everything == len(set(union))
        assert client.call("EXISTS", "zi", "si") == 0


def test_members_that_move_are_in_one_key_at_each_moment(server):
    with server.connect() as client:
        fill(client)
    assert run_workers(server.address(), work_until_done(move)(store_all), 2)[0] > 0


def test_a_result_is_of_a_moment_between_request_and_reply(server):
    """Two keys always have the same version of a member: a result with two versions, or with one
    that was over before the request, or that came after the reply, was never true."""
    with server.connect() as client:
        fill(client)
        client.call("ZADD", "z", 0, "version")
        client.call("ZADD", "y", 0, "version")
        client.call("SET", "version", 0)

    def raise_version(client, number):
        client.call("MULTI")
        for key in ("z", "y"):
            client.call("ZADD", key, number + 1, "version")
        client.call("SET", "version", number + 1)
        client.call("EXEC")

    def store(client):
        for _ in range(6):
            before = int(client.call("GET", "version"))
            client.call("ZUNIONSTORE", "out", 2, "z", "y")
            after = int(client.call("GET", "version"))
            score = float(client.call("ZSCORE", "out", "version"))
            assert score % 2 == 0 and before <= score / 2 <= after

    assert run_workers(server.address(), work_until_done(raise_version)(store), 2)[0] > 0


def test_others_see_the_result_whole_or_not_at_all(server):
    """While one client stores by turns two results, another never sees anything else."""
    with server.connect() as client:
        fill(client)
        client.call("SUNIONSTORE", "out", "a", "b")

    def look(client, _):
        assert client.call("SCARD", "out") in (2 * MEMBERS + MOVERS, MEMBERS + MOVERS)

    def store(client):
        for _ in range(8):
            client.call("SDIFFSTORE", "out", "a", "b")
            client.call("SUNIONSTORE", "out", "a", "b")

    assert run_workers(server.address(), work_until_done(look)(store), 2)[0] > 0


@pytest.fixture
def filled(client):
    fill(client)
    return client


ALL = 2 * MEMBERS + MOVERS
STORE = ("ZUNIONSTORE", "out", 2, "z", "y")


def test_a_pause_of_writes_holds_what_is_not_stored_yet(filled, connect):
    """Either it was stored before the pause, or it is when the pause is over."""
    for _ in range(5):
        writer = connect()
        filled.call("SET", "out", "old")
        writer.send(*STORE)
        filled.ok("CLIENT", "PAUSE", 100000, "WRITE")
        if filled.call("TYPE", "out") == b"string":
            assert writer.nothing_comes(0.2)
            assert filled.call("TYPE", "out") == b"string"
        filled.ok("CLIENT", "UNPAUSE")
        assert writer.read() == ALL
        assert filled.call("ZCARD", "out") == ALL
        assert writer.call("PING") == b"PONG"


def test_a_gate_that_is_shut_meanwhile(filled, connect):
    for _ in range(5):
        writer = connect()
        filled.call("DEL", "out")
        writer.send(*STORE)
        filled.ok("CONFIG", "SET", "min-replicas-to-write", 1)
        reply = writer.read()
        filled.ok("CONFIG", "SET", "min-replicas-to-write", 0)
        if isinstance(reply, Error):
            assert reply.startswith(b"NOREPLICAS") and filled.call("EXISTS", "out") == 0
        else:
            assert reply == ALL == filled.call("ZCARD", "out")


def test_a_client_that_goes_away(filled, connect):
    for _ in range(10):
        writer = connect()
        writer.send(*STORE)
        writer.close()
    last = connect()  # comes after all of them
    eventually(lambda: last.call("CLIENT", "LIST").count(b"\n") == 2, "only we are there")
    assert filled.call("ZCARD", "out") in (0, ALL)
    assert filled.call(*STORE) == ALL


def test_watched_and_waited_for(filled, connect):
    watcher, waiter = connect(), connect()
    watcher.ok("WATCH", "out")
    waiter.send("BZPOPMAX", "out", 0)
    eventually(lambda: b"cmd=bzpopmax" in filled.call("CLIENT", "LIST"), "it waits")
    assert filled.call(*STORE) == ALL
    key, _, score = waiter.read()
    assert key == b"out" and float(score) == 1000
    assert filled.call("ZCARD", "out") == ALL - 1
    watcher.ok("MULTI")
    watcher.call("PING")
    assert watcher.call("EXEC") is None


def test_one_event(filled, connect):
    filled.ok("CONFIG", "SET", "notify-keyspace-events", "KEA")
    listener = connect()
    listener.call("SUBSCRIBE", "__keyspace@0__:out")
    filled.call("SET", "out", "old")
    assert filled.call(*STORE) == ALL
    filled.call("SDIFFSTORE", "out", "a", "a")
    assert [listener.read()[2] for _ in range(3)] == [b"set", b"zunionstore", b"del"]
    # Who listens himself is told behind his own reply.
    own = connect()
    own.hello(3)
    own.send("SUBSCRIBE", "__keyspace@0__:out")
    assert own.call(*STORE) == ALL
    own.call("PING")
    assert own.pushes[-1][2] == b"zunionstore"


def test_within_transactions_and_scripts_it_is_whole(filled):
    filled.ok("MULTI")
    filled.call(*STORE)
    filled.call("ZCARD", "out")
    filled.call("ZUNION", 2, "z", "y")
    stored, card, union = filled.call("EXEC")
    assert stored == card == len(union) == ALL
    script = "return {redis.call('SUNIONSTORE', 'out', 'a', 'b'), redis.call('SCARD', 'out')}"
    assert filled.call("EVAL", script, 3, "out", "a", "b") == [ALL, ALL]


def test_what_is_sent_behind_it_sees_it(filled):
    replies = filled.pipeline([STORE, ("ZCARD", "out"), ("SDIFFSTORE", "out", "a", "a"),
                               ("EXISTS", "out"), ("SUNIONSTORE", "out", "a", "b"),
                               ("ZUNIONSTORE", "out", 2, "out", "z"), ("ZCARD", "out")])
    assert replies == [ALL, ALL, 0, 0, ALL, 3 * MEMBERS + MOVERS, 3 * MEMBERS + MOVERS]


@pytest.mark.parametrize("seed", seeds(2))
def test_the_log_gives_the_same_data(make_server, seed):
    """Stores in slices beside writers to their sources, with every write in the AOF: what a new
    process loads is what the old one had."""
    server = make_server({"appendonly": "yes", "appendfsync": "always",
                          "auto-aof-rewrite-percentage": "0"}, files=("appendonlydir",))
    with server.connect() as client:
        fill(client)

    def write(client, _):
        choice = random.Random(seed * 1000 + _)
        key = choice.choice(("z", "y"))
        client.call("ZINCRBY", key, choice.randint(1, 9), "%s:%d" % (key, choice.randrange(MEMBERS)))
        client.call("SADD", "a", "late:%d" % choice.randrange(1000))
        client.call("SREM", "b", "b:%d" % choice.randrange(MEMBERS))

    def store(client):
        for _ in range(3):
            client.call("ZUNIONSTORE", "zu", 2, "z", "y", "WEIGHTS", 2, 3)
            client.call("SUNIONSTORE", "a", "a", "b")
            client.call("ZDIFFSTORE", "zd", 2, "z", "zu")
            client.call("SDIFFSTORE", "sd", "b", "a")
            client.call("ZINTERSTORE", "y", 2, "z", "y", "AGGREGATE", "MAX")

    run_workers(server.address(), work_until_done(write)(store), 2)
    with server.connect() as client:
        before = client.call("DEBUG", "DIGEST")
    server.kill()
    server.start()
    with server.connect() as client:
        assert client.call("DEBUG", "DIGEST") == before
