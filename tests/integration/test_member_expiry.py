"""Deadlines of hash fields (Redis 7.4's HEXPIRE family) and of members of sets, sorted sets and
hashes (KeyDB's EXPIREMEMBER): exact on read whatever the command, and gone with their members."""

import threading
import time

import pytest

from lib.bounds import eventually
from lib.pubsub import subscribe, until_token
from lib.resp import Error
from lib.server import parse_info

pytestmark = pytest.mark.usefixtures("ours_only")

SHORT_MS = 3
FAR_MS = 4000000000000


def now_ms(client):
    seconds, micros = client.call("TIME")
    return int(seconds) * 1000 + int(micros) // 1000


def stat(client, name, section="stats"):
    return int(parse_info(client.call("INFO", section))[name])


class Kind:
    """A type of collections with members 0..n-1, some of them large ones."""

    def __init__(self, name, encodings, add):
        self.name, self.encodings, self.add_words = name, encodings, add

    def make(self, client, key, members, encoding):
        client.call("DEL", key)
        for m in members:
            client.call(*self.add_words(key, m))
        if members:
            assert client.call("OBJECT", "ENCODING", key) == encoding.encode()


HASH = Kind("hash", {"listpack": b"f%d", "hashtable": b"f%d" + b"x" * 80},
            lambda k, m: ["HSET", k, m, b"1" + m[1:2]])
SET = Kind("set", {"intset": b"%d", "listpack": b"m%d", "hashtable": b"m%d" + b"x" * 80},
           lambda k, m: ["SADD", k, m])
ZSET = Kind("zset", {"listpack": b"m%d", "skiplist": b"m%d" + b"x" * 80},
            lambda k, m: ["ZADD", k, b"2" if m[-1:] in b"02468" else b"3", m])
KINDS = {k.name: k for k in (HASH, SET, ZSET)}
each_encoding = pytest.mark.parametrize("kind, encoding", [
    (k.name, e) for k in KINDS.values() for e in k.encodings])


def members_of(kind, encoding, numbers):
    return [KINDS[kind].encodings[encoding] % n for n in numbers]


# @a and @b stand for the members that expire, @c for one that stays; k is the key, o another one of
# the same type that has @a and @c.
READS = {
    "hash": [
        "HGET k @a", "HGET k @c", "HMGET k @a @b @c", "HGETALL k", "HKEYS k", "HVALS k", "HLEN k",
        "HEXISTS k @a", "HEXISTS k @c", "HSTRLEN k @a", "HSCAN k 0", "HSCAN k 0 NOVALUES",
        "HRANDFIELD k 99", "HRANDFIELD k 99 WITHVALUES", "HTTL k FIELDS 2 @a @c",
        "HPTTL k FIELDS 1 @b", "HEXPIRETIME k FIELDS 2 @a @c", "HPEXPIRETIME k FIELDS 2 @a @c",
    ],
    "set": [
        "SMEMBERS k", "SCARD k", "SISMEMBER k @a", "SISMEMBER k @c", "SMISMEMBER k @a @b @c",
        "SSCAN k 0", "SRANDMEMBER k 99", "SINTER k o", "SUNION k o", "SDIFF k o", "SDIFF o k",
        "SINTERCARD 2 k o", "SINTER o k k", "SORT k ALPHA", "SORT_RO o ALPHA", "SORT k ALPHA STORE d",
    ],
    "zset": [
        "ZRANGE k 0 -1", "ZRANGE k 0 -1 WITHSCORES", "ZREVRANGE k 0 -1", "ZRANGEBYSCORE k -inf +inf",
        "ZREVRANGEBYSCORE k +inf -inf", "ZRANGEBYLEX k - +", "ZCARD k", "ZCOUNT k -inf +inf",
        "ZLEXCOUNT k - +", "ZSCORE k @a", "ZSCORE k @c", "ZMSCORE k @a @b @c", "ZRANK k @c",
        "ZREVRANK k @c", "ZRANK k @a", "ZSCAN k 0", "ZRANDMEMBER k 99", "ZINTER 2 k o WITHSCORES",
        "ZUNION 2 k o WITHSCORES", "ZDIFF 2 k o WITHSCORES", "ZDIFF 2 o k WITHSCORES",
        "ZINTERCARD 2 k o", "SORT k ALPHA", "BZPOPMIN k o 1", "ZRANGE k 1 2 BYSCORE", "ZRANGE k 0 0 REV", "GEOSEARCH k FROMLONLAT 0 0 "
        "BYRADIUS 100 km",
    ],
    "any": [
        "EXISTS k", "TYPE k", "TTL k", "PTTL k @a", "TTL k @c", "OBJECT ENCODING k", "TOUCH k",
        "KEYS *", "KEYS k", "SCAN 0 TYPE {kind}", "DUMP k", "EXPIRETIME k", "KEYDB.MEXISTS k o",
        "DEBUG DIGEST-VALUE k", "DEBUG DIGEST",
    ],
}
WRITES = {
    "hash": [
        "HDEL k @a", "HDEL k @a @c", "HSETNX k @a new", "HSET k @a new", "HINCRBY k @a 5",
        "HINCRBYFLOAT k @b 1.5", "HEXPIRE k 100 FIELDS 2 @a @c", "HPERSIST k FIELDS 2 @a @c",
        "HPEXPIREAT k 1 FIELDS 2 @a @c", "KEYDB.HRENAME k @a z", "KEYDB.HRENAME k @c @a",
    ],
    "set": [
        "SADD k @a", "SREM k @a @c", "SPOP k 99", "SMOVE k o @a", "SMOVE o k @a", "SINTERSTORE d k o",
        "SUNIONSTORE d k o", "SDIFFSTORE k o k", "SPOP k 1 ",
    ],
    "zset": [
        "ZADD k NX 9 @a", "ZADD k XX 9 @a", "ZADD k INCR 5 @a", "ZINCRBY k 7 @a", "ZREM k @a @c",
        "ZPOPMIN k 99", "ZPOPMAX k", "ZMPOP 1 k MIN COUNT 9", "ZREMRANGEBYRANK k 0 0",
        "ZREMRANGEBYSCORE k 2 2", "ZREMRANGEBYLEX k - +", "ZUNIONSTORE d 2 k o", "ZINTERSTORE d 2 k o",
        "ZDIFFSTORE d 2 o k", "ZRANGESTORE d k 0 -1", "GEOADD k 1 1 @a",
    ],
    "any": [
        "EXPIREMEMBER k @a 100", "PEXPIREMEMBERAT k @a 4000000000000", "PERSIST k @a", "DEL k",
        "UNLINK k", "RENAME k d", "RENAMENX k o", "COPY k d", "COPY o k", "MOVE k 1", "EXPIRE k 100",
        "PERSIST k", "SET k x NX", "GETDEL k",
    ],
}


def words_of(line, kind, names):
    line = line.replace("{kind}", kind)
    return [names.get(w, w) if w.startswith("@") else w for w in line.split()]


def tidy(value):
    """Without orders that nobody promises."""
    if isinstance(value, list):
        return sorted((tidy(v) for v in value), key=repr)
    return value


def outcome(client, kind, encoding, line, left, expiring):
    """The reply of a command and what is there afterwards; `expiring` members are made to go first.
    A fixed number of keys: their clock is of no interest."""
    client.ok("FLUSHALL")
    a, b, c, d = members_of(kind, encoding, range(4))
    k = KINDS[kind]
    k.make(client, "k", left + expiring, encoding)
    k.make(client, "o", [a, c], encoding)
    at = now_ms(client) + SHORT_MS
    for m in expiring:
        assert client.call("PEXPIREMEMBERAT", "k", m, str(at)) == 1
    eventually(lambda: now_ms(client) > at, "the time comes")
    reply = client.call(*words_of(line, kind, {"@a": a, "@b": b, "@c": c}))
    after = [tidy(client.call("KEYS", "*"))]
    for key in ("k", "o", "d", "z"):
        kind_now = client.call("TYPE", key)
        after.append(kind_now)
        read = {b"hash": ["HGETALL", key], b"set": ["SMEMBERS", key],
                b"zset": ["ZRANGE", key, "0", "-1", "WITHSCORES"]}.get(kind_now)
        after.append(tidy(client.call(*read)) if read else None)
        after.append(client.call("PTTL", key) > 0)
        after += [client.call("PTTL", key, m) > 0 for m in (a, b, c, d)]
    return tidy(reply), after


COMMANDS = [(kind, line) for kind in KINDS for line in
            READS[kind] + WRITES[kind] + READS["any"] + WRITES["any"]]


@pytest.mark.parametrize("kind, line", COMMANDS, ids=lambda v: v)
def test_a_member_is_gone_at_once_for_every_command(client, kind, line):
    """Each command behaves as on a key that never had the members, with nobody but the command
    itself to clean up; also when no member is left."""
    client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    for encoding in KINDS[kind].encodings:
        a, b, c, d = members_of(kind, encoding, range(4))
        if line.startswith("SPOP k 1"):
            others = [[c], []]
        else:
            others = [[c, d], []]
        for left in others:
            expected = outcome(client, kind, encoding, line, left, [])
            assert outcome(client, kind, encoding, line, left, [a, b]) == expected, (encoding, left)


# -- deadlines go with their members

@each_encoding
def test_a_member_that_comes_back_has_no_deadline(client, kind, encoding):
    k = KINDS[kind]
    a, b = members_of(kind, encoding, [0, 1])
    remove = {"hash": "HDEL", "set": "SREM", "zset": "ZREM"}[kind]
    k.make(client, "k", [a, b], encoding)
    assert client.call("EXPIREMEMBER", "k", a, "100") == 1
    assert client.call(remove, "k", a) == 1
    client.call(*k.add_words("k", a))
    assert client.call("TTL", "k", a) == -1


@each_encoding
def test_the_key_keeps_its_own_ttl(client, kind, encoding):
    a, b = members_of(kind, encoding, [0, 1])
    KINDS[kind].make(client, "k", [a, b], encoding)
    client.call("PEXPIREAT", "k", str(FAR_MS))
    assert client.call("PEXPIREMEMBERAT", "k", a, str(FAR_MS - 5000)) == 1
    assert client.call("PEXPIRETIME", "k") == FAR_MS
    assert client.call("PERSIST", "k", a) == 1
    assert client.call("PERSIST", "k", a) == 0
    assert client.call("PEXPIRETIME", "k") == FAR_MS
    assert client.call("PEXPIREMEMBERAT", "k", a, str(FAR_MS - 5000)) == 1
    assert client.call("PERSIST", "k") == 1
    assert client.call("PTTL", "k") == -1
    assert client.call("PTTL", "k", a) > 0


@each_encoding
def test_rename_copy_and_move_keep_deadlines(client, kind, encoding):
    a, b = members_of(kind, encoding, [0, 1])
    KINDS[kind].make(client, "k", [a, b], encoding)
    assert client.call("PEXPIREMEMBERAT", "k", a, str(FAR_MS)) == 1
    client.call("RENAME", "k", "renamed key with another length")
    assert client.call("COPY", "renamed key with another length", "copy") == 1
    assert client.call("MOVE", "renamed key with another length", "1") == 1
    for db, key in (("0", "copy"), ("1", "renamed key with another length")):
        client.ok("SELECT", db)
        assert client.call("TTL", key, a) > 1000
        assert client.call("TTL", key, b) == -1
        assert client.call("OBJECT", "ENCODING", key) == encoding.encode()
    client.ok("SELECT", "0")
    assert client.call("PERSIST", "copy", a) == 1
    client.ok("SELECT", "1")
    assert client.call("TTL", "renamed key with another length", a) > 1000
    client.ok("SELECT", "0")


@each_encoding
def test_a_change_of_encoding_keeps_deadlines(client, kind, encoding):
    k = KINDS[kind]
    a, b = members_of(kind, encoding, [0, 1])
    k.make(client, "k", [a, b], encoding)
    assert client.call("EXPIREMEMBER", "k", a, "100000", "ms") == 1
    for n in range(600):
        client.call(*k.add_words("k", b"%d" % (n + 10)))
    assert client.call("OBJECT", "ENCODING", "k") in (b"hashtable", b"skiplist")
    assert 90 < client.call("TTL", "k", a) <= 100
    assert client.call("TTL", "k", b) == -1


def test_what_a_new_value_does(client):
    for words, stays in ((["HSET", "h", "a", "2"], False), (["HMSET", "h", "a", "2"], False),
                         (["HINCRBY", "h", "a", "1"], True), (["HSETNX", "h", "a", "1"], True),
                         (["HINCRBYFLOAT", "h", "a", "1"], True),
                         (["HINCRBYFLOAT", "h", "a", "1e300"], True),
                         (["KEYDB.HRENAME", "h", "b", "a"], False),
                         (["KEYDB.HRENAME", "h", "a", "a"], True)):
        client.call("DEL", "h")
        client.call("HSET", "h", "a", "1", "b", "2")
        assert client.call("HEXPIRE", "h", "100", "FIELDS", "1", "a") == [1]
        client.call(*words)
        assert (client.call("HTTL", "h", "FIELDS", "1", "a")[0] > 0) == stays, words


def test_hrename_takes_the_deadline_along(client):
    client.call("HSET", "h", "a", "1")
    client.call("HPEXPIREAT", "h", str(FAR_MS), "FIELDS", "1", "a")
    assert client.call("KEYDB.HRENAME", "h", "a", "b") == 1
    assert client.call("HPEXPIRETIME", "h", "FIELDS", "2", "a", "b") == [-2, FAR_MS]


def test_other_sets_are_other_memberships(client):
    client.call("SADD", "s", "a", "b")
    assert client.call("EXPIREMEMBER", "s", "a", "100") == 1
    assert client.call("SMOVE", "s", "t", "a") == 1
    assert client.call("TTL", "t", "a") == -1
    assert client.call("EXPIREMEMBER", "s", "b", "100") == 1
    client.call("SUNIONSTORE", "u", "s", "t")
    assert client.call("TTL", "u", "b") == -1
    client.call("SUNIONSTORE", "s", "s", "t")
    assert client.call("TTL", "s", "b") == -1


def test_popping_most_of_a_set_keeps_the_deadlines_of_the_rest(client):
    members = ["m%d" % i for i in range(1000)]
    client.call("SADD", "s", *members)
    for m in members[:500]:
        client.call("PEXPIREMEMBERAT", "s", m, str(FAR_MS))
    gone = set(client.call("SPOP", "s", "990"))
    assert len(gone) == 990
    for m in members[:500]:
        assert (client.call("TTL", "s", m) > 0) == (m.encode() not in gone)


def test_zadd_keeps_deadlines(client):
    for m in ("a", "b" + "x" * 80):
        client.call("ZADD", "z", "1", m)
        assert client.call("EXPIREMEMBER", "z", m, "100") == 1
        client.call("ZADD", "z", "2", m)
        client.call("ZINCRBY", "z", "2", m)
        assert client.call("TTL", "z", m) > 0


# -- the HEXPIRE family's replies

def test_hexpire_replies(client):
    client.call("HSET", "h", "a", "1", "b", "2")
    assert client.call("HEXPIRE", "h", "100", "FIELDS", "3", "a", "nothing", "a") == [1, -2, 1]
    left = client.call("HTTL", "h", "FIELDS", "3", "a", "b", "nothing")
    assert 50 < left[0] <= 100 and left[1:] == [-1, -2]
    assert client.call("HPERSIST", "h", "FIELDS", "4", "a", "a", "b", "nothing") == [1, -1, -1, -2]
    assert client.call("HEXPIRE", "h", "0", "FIELDS", "2", "a", "a") == [2, -2]
    assert client.call("HPEXPIREAT", "h", "1", "FIELDS", "2", "a", "b") == [-2, 2]
    assert client.call("EXISTS", "h") == 0
    for words in (["HEXPIRE", "h", "1"], ["HPEXPIRE", "h", "1"], ["HEXPIREAT", "h", "1"],
                  ["HPEXPIREAT", "h", "1"], ["HPERSIST", "h"], ["HTTL", "h"], ["HPTTL", "h"],
                  ["HEXPIRETIME", "h"], ["HPEXPIRETIME", "h"]):
        assert client.call(*words, "FIELDS", "2", "a", "b") == [-2, -2]
    assert client.call("EXISTS", "h") == 0


def test_hexpire_units(client):
    client.call("HSET", "h", "a", "1")
    fields = ["FIELDS", "1", "a"]
    client.call("HEXPIREAT", "h", "4000000000", *fields)
    assert client.call("HPEXPIRETIME", "h", *fields) == [FAR_MS]
    client.call("HPEXPIREAT", "h", str(FAR_MS + 1), *fields)
    assert client.call("HPEXPIRETIME", "h", *fields) == [FAR_MS + 1]
    assert client.call("HEXPIRETIME", "h", *fields) == [4000000001]  # rounded up
    client.call("HPEXPIRE", "h", "100001", *fields)
    assert 50 < client.call("HTTL", "h", *fields)[0] <= 101
    assert 90000 < client.call("HPTTL", "h", *fields)[0] <= 100001
    client.call("HEXPIRE", "h", "200", *fields)
    assert 190000 < client.call("HPTTL", "h", *fields)[0] <= 200000


@pytest.mark.parametrize("condition, without, earlier, same, later", [
    ("NX", 1, 0, 0, 0), ("XX", 0, 1, 1, 1), ("GT", 0, 0, 0, 1), ("LT", 1, 1, 0, 0),
    ("nx", 1, 0, 0, 0), ("gT", 0, 0, 0, 1)])
def test_hexpire_conditions(client, condition, without, earlier, same, later):
    for at, expected in ((None, without), (FAR_MS - 1, earlier), (FAR_MS, same), (FAR_MS + 1, later)):
        client.call("HSET", "h", "a", "1", "b", "1")
        if at is not None:
            client.call("HPEXPIREAT", "h", str(FAR_MS), "FIELDS", "1", "a")
        new = FAR_MS if at is None else at
        assert client.call("HPEXPIREAT", "h", str(new), condition, "FIELDS", "1", "a") == [expected]
        now = client.call("HPEXPIRETIME", "h", "FIELDS", "1", "a")[0]
        assert now == (new if expected else -1 if at is None else FAR_MS)


def test_conditions_hold_for_times_that_are_over(client):
    client.call("HSET", "h", "a", "1", "b", "1")
    assert client.call("HPEXPIREAT", "h", "1", "XX", "FIELDS", "2", "a", "b") == [0, 0]
    assert client.call("HPEXPIREAT", "h", "1", "GT", "FIELDS", "2", "a", "b") == [0, 0]
    assert client.call("HPEXPIREAT", "h", "1", "LT", "FIELDS", "2", "a", "b") == [2, 2]
    assert client.call("EXISTS", "h") == 0


ERRORS = [
    ("HEXPIRE h x FIELDS 1 a", b"ERR value is not an integer or out of range"),
    ("HEXPIRE h -1 FIELDS 1 a", b"ERR invalid expire time, must be >= 0"),
    ("HPEXPIREAT h -1 FIELDS 1 a", b"ERR invalid expire time, must be >= 0"),
    ("HEXPIRE h 9223372036854775807 FIELDS 1 a", b"ERR invalid expire time in 'hexpire' command"),
    ("HEXPIRE h 70368744177 FIELDS 1 a", b"ERR invalid expire time in 'hexpire' command"),
    ("HPEXPIRE h 70368744177663 FIELDS 1 a", b"ERR invalid expire time in 'hpexpire' command"),
    ("HPEXPIREAT h 70368744177664 FIELDS 1 a", b"ERR invalid expire time in 'hpexpireat' command"),
    ("HEXPIREAT h 70368744178 FIELDS 1 a", b"ERR invalid expire time in 'hexpireat' command"),
    ("HEXPIRE h 1 FIELDS 0 a", b"ERR Parameter `numFields` should be greater than 0"),
    ("HEXPIRE h 1 FIELDS -1 a", b"ERR Parameter `numFields` should be greater than 0"),
    ("HEXPIRE h 1 FIELDS x a", b"ERR Parameter `numFields` should be greater than 0"),
    ("HEXPIRE h 1 FIELDS 2 a", b"ERR The `numfields` parameter must match the number of arguments"),
    ("HEXPIRE h 1 FIELDS 1 a b", b"ERR The `numfields` parameter must match the number of arguments"),
    ("HEXPIRE h 1 NX FIELDS 1", b"ERR The `numfields` parameter must match the number of arguments"),
    ("HEXPIRE h 1 FIELDS 9223372036854775807 a",
     b"ERR The `numfields` parameter must match the number of arguments"),
    ("HEXPIRE h 1 FIELDZ 1 a", b"ERR Mandatory argument FIELDS is missing or not at the right position"),
    ("HEXPIRE h 1 NX GT FIELDS 1 a",
     b"ERR Mandatory argument FIELDS is missing or not at the right position"),
    ("HEXPIRE h 1 NX a FIELDS", b"ERR Mandatory argument FIELDS is missing or not at the right position"),
    ("HEXPIRE h 1 FIELDS 1", b"ERR wrong number of arguments for 'hexpire' command"),
    ("HTTL h FIELDS 1", b"ERR wrong number of arguments for 'httl' command"),
    ("HTTL h FIELDS 0 a", b"ERR Number of fields must be a positive integer"),
    ("HPERSIST h FIELDS 0 a", b"ERR Number of fields must be a positive integer"),
    ("HPERSIST h FIELDS 2 a", b"ERR The `numfields` parameter must match the number of arguments"),
    ("HTTL h FIELD 1 a", b"ERR Mandatory argument FIELDS is missing or not at the right position"),
    ("HPERSIST h a b 1", b"ERR Mandatory argument FIELDS is missing or not at the right position"),
    ("EXPIREMEMBER h a x", b"ERR value is not an integer or out of range"),
    ("EXPIREMEMBER h a 1 minutes", b"ERR Invalid unit arg"),
    ("EXPIREMEMBER h a 1 s s", b"ERR Invalid number of arguments"),
    ("EXPIREMEMBER str a 1", b"ERR object type is unsupported"),
    ("EXPIREMEMBER list a 1", b"ERR object type is unsupported"),
    ("EXPIREMEMBER h a 9223372036854775807", b"ERR invalid expire time in 'expiremember' command"),
    ("EXPIREMEMBERAT h a 9223372036854775807", b"ERR invalid expire time in 'expirememberat' command"),
    ("EXPIREMEMBERAT h a", b"ERR wrong number of arguments for 'expirememberat' command"),
    ("TTL h a b", b"ERR Invalid arguments"), ("PTTL h a b", b"ERR Invalid arguments"),
    ("PERSIST h a b", b"ERR Invalid arguments"),
]


@pytest.mark.parametrize("line, error", ERRORS, ids=[e[0] for e in ERRORS])
def test_errors(client, line, error):
    client.call("HSET", "h", "a", "1")
    client.call("SET", "str", "v")
    client.call("RPUSH", "list", "a")
    reply = client.call(*line.split())
    assert isinstance(reply, Error) and reply == error
    assert client.call("HTTL", "h", "FIELDS", "1", "a") == [-1]


@pytest.mark.parametrize("line", [
    "HEXPIRE k 1 FIELDS 1 a", "HPEXPIRE k 1 FIELDS 1 a", "HEXPIREAT k 1 FIELDS 1 a",
    "HPEXPIREAT k 1 FIELDS 1 a", "HPERSIST k FIELDS 1 a", "HTTL k FIELDS 1 a", "HPTTL k FIELDS 1 a",
    "HEXPIRETIME k FIELDS 1 a", "HPEXPIRETIME k FIELDS 1 a"])
def test_wrong_types(client, line):
    for make in (["SET", "k", "v"], ["SADD", "k", "a"], ["ZADD", "k", "1", "a"], ["RPUSH", "k", "a"]):
        client.call("DEL", "k")
        client.call(*make)
        assert client.call(*line.split()).startswith(b"WRONGTYPE")


# -- KeyDB's replies

def test_expiremember_replies(client):
    client.call("SADD", "s", "a", "b")
    assert client.call("EXPIREMEMBER", "nothing", "a", "1") == 0
    assert client.call("EXPIREMEMBER", "s", "nothing", "1") == 0
    assert client.call("EXPIREMEMBER", "s", "a", "100") == 1
    assert 50 < client.call("TTL", "s", "a") <= 100
    assert client.call("EXPIREMEMBER", "s", "a", "50000", "MS") == 1
    assert 10 < client.call("TTL", "s", "a") <= 50
    assert client.call("EXPIREMEMBERAT", "s", "a", "4000000000") == 1
    assert client.call("TTL", "s", "b") == -1
    assert client.call("TTL", "s", "nothing") == -1
    assert client.call("TTL", "nothing", "a") == -2
    assert client.call("PTTL", "nothing", "a") == -2
    assert client.call("PERSIST", "nothing", "a") == 0
    assert client.call("PERSIST", "s", "b") == 0
    assert client.call("EXPIREMEMBER", "s", "a", "-1") == 1
    assert client.call("SMEMBERS", "s") == [b"b"]
    assert client.call("EXPIREMEMBERAT", "s", "b", "1") == 1
    assert client.call("EXISTS", "s") == 0
    client.call("SET", "str", "v")
    assert client.call("TTL", "str", "v") == -1
    assert client.call("PERSIST", "str", "v") == 0


# -- cleaning up

@each_encoding
def test_members_are_reclaimed_without_being_asked_for(client, kind, encoding):
    members = members_of(kind, encoding, range(4))
    for delay_ms in (20, 200, 2000, 20000):
        client.call("DEL", "all", "some")
        KINDS[kind].make(client, "all", members, encoding)
        KINDS[kind].make(client, "some", members, encoding)
        before = stat(client, "expired_subkeys")
        at = now_ms(client) + delay_ms
        for m in members:
            client.call("PEXPIREMEMBERAT", "all", m, str(at))
        client.call("PEXPIREMEMBERAT", "some", members[0], str(at))
        if now_ms(client) < at:
            break  # all deadlines were set before the time came: what has a past one goes at once
    eventually(lambda: stat(client, "expired_subkeys") == before + 5, "all five go")
    assert client.call("DBSIZE") == 1
    assert b"subexpiry" not in client.call("INFO", "keyspace")


def test_many_members_at_once(client):
    """More than one hold takes out: by the sweep, by a reader, by a writer."""
    for clean in (["HLEN", "h"], ["HSET", "h", "stays", "v"], None):
        client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0" if clean else "1")
        client.call("DEL", "h")
        client.call("HSET", "h", "stays", "v")
        fields = ["f%d" % i for i in range(20000)]
        at = now_ms(client) + 400
        for n in range(0, len(fields), 5000):
            part = fields[n:n + 5000]
            client.call("HSET", "h", *[w for f in part for w in (f, "v")])
            replies = client.call("HPEXPIREAT", "h", str(at), "FIELDS", str(len(part)), *part)
            assert set(replies) <= {1, 2}
        eventually(lambda: now_ms(client) > at, "the time comes")
        if clean:
            client.call(*clean)
        assert client.call("HKEYS", "h") == [b"stays"]
        assert client.call("HLEN", "h") == 1


def test_subexpiry_in_info(client):
    client.call("HSET", "h", "a", "1")
    assert b"subexpiry" not in client.call("INFO", "keyspace")
    client.call("HEXPIRE", "h", "100", "FIELDS", "1", "a")
    assert b"subexpiry=1" in client.call("INFO", "keyspace")
    client.call("HPERSIST", "h", "FIELDS", "1", "a")
    assert b"subexpiry" not in client.call("INFO", "keyspace")


def test_memory_usage_counts_deadlines(client):
    client.call("HSET", "h", *[w for i in range(100) for w in ("f%d" % i, "v")])
    before = client.call("MEMORY", "USAGE", "h", "SAMPLES", "0")
    client.call("HEXPIRE", "h", "100", "FIELDS", "100", *["f%d" % i for i in range(100)])
    with_deadlines = client.call("MEMORY", "USAGE", "h", "SAMPLES", "0")
    assert with_deadlines > before + 100 * 16
    client.call("HPERSIST", "h", "FIELDS", "100", *["f%d" % i for i in range(100)])
    # What was packed in the key's own block has one for itself now.
    assert before <= client.call("MEMORY", "USAGE", "h", "SAMPLES", "0") <= before + 64


def test_digests_do_not_see_deadlines(client):
    client.call("HSET", "h", "a", "1")
    before = client.call("DEBUG", "DIGEST")
    client.call("HEXPIRE", "h", "100", "FIELDS", "1", "a")
    assert client.call("DEBUG", "DIGEST") == before


# -- events

def expected_events(kind):
    return {"hash": b"hexpired", "set": b"srem", "zset": b"zrem"}[kind]


@each_encoding
@pytest.mark.parametrize("met_by", ["reader", "writer", "nobody"])
def test_events_of_members_that_expire(connect, client, kind, encoding, met_by):
    client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "1" if met_by == "nobody" else "0")
    client.ok("CONFIG", "SET", "notify-keyspace-events", "EA")
    a, b = members_of(kind, encoding, [0, 1])
    for delay_ms in (100, 1000, 10000):
        KINDS[kind].make(client, "some", [a, b], encoding)
        KINDS[kind].make(client, "all", [a], encoding)
        listener = connect()
        subscribe(listener, "PSUBSCRIBE", "__keyevent@0__:*")
        at = now_ms(client) + delay_ms
        for key in ("some", "all"):
            assert client.call("PEXPIREMEMBERAT", key, a, str(at)) == 1
        if now_ms(client) < at:
            break  # all deadlines were set before the time came: what has a past one goes at once
    eventually(lambda: now_ms(client) > at, "the time comes")
    event = b"__keyevent@0__:" + expected_events(kind)
    expected = [(event, b"all"), (event, b"some"), (b"__keyevent@0__:del", b"all")]
    if met_by == "reader":
        assert client.call("EXISTS", "some", "all") == 1
    elif met_by == "writer":
        assert client.call("EXPIREMEMBER", "some", a, "100") == 0
        assert client.call("EXPIREMEMBER", "all", a, "100") == 0
    found = []

    def all_came():
        for m in until_token(listener, b"so far"):
            if m[2] != b"__keyevent@0__:expiremember":
                found.append((m[2], m[3]))
        return len(found) >= len(expected)

    eventually(all_came, "all events")
    assert sorted(found) == sorted(expected)
    assert found.index((event, b"all")) < found.index((b"__keyevent@0__:del", b"all"))


# -- together with others

def test_a_watched_key_that_lost_a_member_has_changed(client):
    client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    for queued in (["HGET", "h", "a"], ["SET", "other", "v"], ["DEBUG", "SLEEP", "0"]):
        for stays in ([], ["b", "2"]):
            client.call("DEL", "h")
            client.call("HSET", "h", "a", "1", *stays)
            at = now_ms(client) + 50
            client.call("HPEXPIREAT", "h", str(at), "FIELDS", "1", "a")
            client.ok("WATCH", "h")
            seen = client.call("HEXISTS", "h", "a")  # after WATCH: so it was there then
            eventually(lambda: now_ms(client) > at, "the time comes")
            client.ok("MULTI")
            assert client.call(*queued) == b"QUEUED"
            reply = client.call("EXEC")
            assert reply is None or not seen


def test_transactions_read_and_write_what_is_left(client):
    client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    for tail in ([], [["HSET", "h", "new", "1"]], [["DEBUG", "SLEEP", "0"]]):
        client.call("DEL", "h", "s")
        client.call("HSET", "h", "a", "1", "b", "2")
        client.call("SADD", "s", "x", "y")
        at = now_ms(client) + SHORT_MS
        client.call("HPEXPIREAT", "h", str(at), "FIELDS", "1", "a")
        client.call("PEXPIREMEMBERAT", "s", "x", str(at))
        eventually(lambda: now_ms(client) > at, "the time comes")
        client.ok("MULTI")
        for words in [["ECHO", "1"], ["HGETALL", "h"], ["SMEMBERS", "s"], ["HLEN", "h"]] + tail:
            assert client.call(*words) == b"QUEUED"
        assert client.call("EXEC")[:4] == [b"1", [b"b", b"2"], [b"y"], 1]


def test_sort_by_fields_that_expire(client):
    client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    client.call("RPUSH", "l", "1", "2", "3")
    at = now_ms(client) + 30
    for n, weight in (("1", "30"), ("2", "20"), ("3", "10")):
        client.call("HSET", "w" + n, "weight", weight, "name", "n" + n, "other", "x")
    client.call("HPEXPIREAT", "w2", str(at), "FIELDS", "2", "weight", "name")
    eventually(lambda: now_ms(client) > at, "the time comes")
    assert client.call("SORT", "l", "BY", "w*->weight", "GET", "w*->name") == [None, b"n3", b"n1"]


# -- many at once

def test_a_pipeline_of_reads_and_writes(client):
    """Reads that must come again keep their place among the requests of their client."""
    client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    for _ in range(20):
        client.call("DEL", "h", "s")
        client.call("HSET", "h", "a", "1", "b", "2")
        client.call("SADD", "s", "x", "y")
        at = now_ms(client) + SHORT_MS
        client.call("HPEXPIREAT", "h", str(at), "FIELDS", "1", "a")
        client.call("PEXPIREMEMBERAT", "s", "x", str(at))
        eventually(lambda: now_ms(client) > at, "the time comes")
        for words in (["ECHO", "1"], ["HGETALL", "h"], ["SMEMBERS", "s"], ["ECHO", "2"],
                      ["HGET", "h", "a"], ["EXISTS", "h", "s"]):
            client.send(*words)
        assert [client.read() for _ in range(6)] == [
            b"1", [b"b", b"2"], [b"y"], b"2", None, 2]


def test_nobody_sees_a_member_after_its_time(connect, client):
    """Threads read while members expire: a member is never seen by who asks after its deadline by
    the server's own clock, and never missed before."""
    stop = threading.Event()
    faults = []

    def read(number):
        c = connect()
        while not stop.is_set():
            # "at" is missing while the deadline changes: only rounds in which it stays count.
            ends = c.call("GET", "at")
            before = now_ms(c)
            value = c.call("HGET", "h", "a")
            after = now_ms(c)
            if ends is None or c.call("GET", "at") != ends:
                continue
            if value is not None and int(ends) < before:
                faults.append(("seen", number, before, ends))
            if value is None and int(ends) > after:
                faults.append(("missed", number, after, ends))

    threads = [threading.Thread(target=read, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    try:
        for _ in range(100):
            at = now_ms(client) + 8
            client.call("DEL", "at")
            client.call("HSET", "h", "a", str(at), "b", "stays")
            client.call("HPEXPIREAT", "h", str(at), "FIELDS", "1", "a")
            if client.call("HGET", "h", "a") is not None:
                client.call("SET", "at", str(at))
            time.sleep(0.012)
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert not faults
