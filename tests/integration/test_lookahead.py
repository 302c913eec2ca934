"""Batches whose calls look members up in large collections (engine/lookahead.h), while earlier calls of the same
batch, or other clients, delete, rename and retype the keys: every reply is what the calls one by one would give."""

import random
import threading

from lib.resp import Error

MEMBERS = 600
KEYS = ["k%d" % number for number in range(4)]
ALWAYS_LARGE = {"hash-max-listpack-entries": "4", "set-max-listpack-entries": "4", "set-max-intset-entries": "4",
                "zset-max-listpack-entries": "4"}


def member(number):
    """Some stand in a table's slot, some have a block of their own."""
    return "m%d" % number if number % 3 else "member:%024d" % number


def words_of(kind):
    members = [member(number) for number in range(MEMBERS)]
    if kind == "set":
        return ["SADD"], members
    if kind == "hash":
        return ["HSET"], [word for name in members for word in (name, "value of " + name)]
    return ["ZADD"], [word for number, name in enumerate(members) for word in (number, name)]


def fill(kind, key):
    verb, words = words_of(kind)
    return verb + [key] + words


LOOKUPS = (
    ("SADD {k} {a} {b}", "set"), ("SREM {k} {a}", "set"), ("SISMEMBER {k} {a}", "set"),
    ("SMISMEMBER {k} {a} {b} none", "set"), ("SMOVE {k} {o} {a}", "set"),
    ("HSET {k} {a} 1 {b} 2", "hash"), ("HMSET {k} {a} 1", "hash"), ("HGET {k} {a}", "hash"),
    ("HMGET {k} {a} {b} none", "hash"), ("HDEL {k} {a}", "hash"), ("HEXISTS {k} {a}", "hash"),
    ("HSTRLEN {k} {a}", "hash"), ("HSETNX {k} {a} 3", "hash"), ("HINCRBY {k} count:{a} 3", "hash"),
    ("HINCRBYFLOAT {k} float:{a} 1.5", "hash"),
    ("ZADD {k} 5 {a} 6 {b}", "zset"), ("ZADD {k} XX CH 7 {a}", "zset"), ("ZREM {k} {a}", "zset"),
    ("ZSCORE {k} {a}", "zset"), ("ZMSCORE {k} {a} {b} none", "zset"), ("ZINCRBY {k} 2 {a}", "zset"),
    ("ZRANK {k} {a}", "zset"), ("ZREVRANK {k} {b}", "zset"), ("GEOPOS {k} none", "zset"),
)
CHANGES = ("DEL {k}", "UNLINK {k}", "RENAME {o} {k}", "COPY {o} {k} REPLACE", "SET {k} text", "SET {k} 12",
           "PEXPIRE {k} -1", "LPUSH {k} x", "SORT {o} ALPHA STORE {k}", "MULTI", "EXEC")


def random_batch(rng, length):
    batch = []
    while len(batch) < length:
        texts = {"k": rng.choice(KEYS), "o": rng.choice(KEYS), "a": member(rng.randrange(MEMBERS)),
                 "b": member(rng.randrange(MEMBERS))}
        chance = rng.random()
        if chance < 0.08:
            batch.append(rng.choice(CHANGES).format(**texts).split())
        elif chance < 0.14:
            batch.append(fill(rng.choice(["set", "hash", "zset"]), texts["k"]))
        else:
            batch.append(rng.choice(LOOKUPS)[0].format(**texts).split())
    return batch + [["DISCARD"], ["DEL"] + KEYS]


def plain(reply):
    return ("error", bytes(reply)) if isinstance(reply, Error) else reply


def test_a_batch_equals_its_calls_one_by_one(make_server):
    server = make_server(ALWAYS_LARGE)
    with server.connect() as together, server.connect() as alone:
        alone.call("SELECT", "1")
        for seed in range(12):
            batch = random_batch(random.Random(seed), 200)
            got = together.pipeline(batch)
            for request, reply in zip(batch, got):
                assert plain(alone.call(*request)) == plain(reply), (seed, request[:4])


def test_the_key_of_the_next_calls_goes(make_server):
    """What was looked at for the calls behind is freed by the calls before them."""
    server = make_server(ALWAYS_LARGE)
    ask = {"set": ["SISMEMBER", "k"], "hash": ["HEXISTS", "k"], "zset": ["ZSCORE", "k"]}
    missing = {"set": 0, "hash": 0, "zset": None}
    with server.connect() as client:
        for kind in ask:
            for gone in (["DEL", "k"], ["RENAME", "k", "elsewhere"], ["SET", "k", "text"], ["FLUSHALL"],
                         ["SWAPDB", "0", "1"], ["PEXPIRE", "k", "-1"]):
                client.call("FLUSHALL")
                client.call(*fill(kind, "k"))
                asked = [ask[kind] + [member(number)] for number in range(0, MEMBERS, 10)]
                replies = client.pipeline(asked + [gone] + asked + [["DEL", "k"], fill(kind, "k")] + asked)
                count = len(asked)
                assert all(reply not in (0, None) for reply in replies[:count])
                behind = replies[count + 1:2 * count + 1]
                if gone[0] == "SET":
                    assert all(isinstance(reply, Error) for reply in behind)
                else:
                    assert behind == [missing[kind]] * count, gone
                assert all(reply not in (0, None) for reply in replies[-count:])
                assert replies[-count:] == replies[:count]


def test_transactions_look_ahead_too(make_server):
    server = make_server(ALWAYS_LARGE)
    with server.connect() as client:
        client.call(*fill("hash", "k"))
        asked = [["HGET", "k", member(number)] for number in range(20)]
        replies = client.pipeline([["MULTI"]] + asked + [["DEL", "k"]] + asked + [["EXEC"]])
        told = [("value of " + member(number)).encode() for number in range(20)]
        assert replies[-1] == told + [1] + [None] * 20


def test_others_take_the_keys_away_meanwhile(make_server):
    """Readers look ahead under the lock in shared mode, others delete and retype in between: each reply is one that
    some order of the calls explains."""
    server = make_server(dict(ALWAYS_LARGE, **{"min-clients-per-thread": "1"}))
    rounds, failures = 40, []

    def run(seed):
        rng = random.Random(seed)
        try:
            with server.connect() as client:
                for _ in range(rounds):
                    if seed % 2:
                        client.pipeline([r for r in random_batch(rng, 30) if r[0] not in ("MULTI", "EXEC", "DISCARD")])
                        continue
                    names = [member(rng.randrange(MEMBERS)) for _ in range(60)]
                    replies = client.pipeline([["HGET", rng.choice(KEYS), name] for name in names])
                    for name, reply in zip(names, replies):
                        known = (None, ("value of " + name).encode(), b"1", b"2", b"3")
                        if reply not in known and not (isinstance(reply, Error) and reply.startswith(b"WRONGTYPE")):
                            failures.append((name, reply))
        except Exception as error:  # pylint: disable=broad-except
            failures.append(error)

    workers = [threading.Thread(target=run, args=(seed,)) for seed in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []
