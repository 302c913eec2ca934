"""Values of every type and encoding, and hostile values for documented calls on them."""

from lib import documented
from lib.boundary import B

GROUPS = {b"string", b"bitmap", b"hyperloglog", b"list", b"hash", b"set", b"sorted-set", b"geo",
          b"stream", b"generic"}

# They wait for others: test_wait_aof.py, test_replication_primary.py.
NOT_YET = {"WAIT", "WAITAOF"}
# Takes a payload with a checksum, which nobody guesses: test_dump.py.
NOT_GUESSED = {"RESTORE"}

# A value of every type and encoding at k.
STATES = {
    "missing": [], "integer": [["SET", "k", "12"]], "text": [["SET", "k", "hello world", "EX", "99"]],
    "long": [["SET", "k", "x" * 3000]],
    "list": [["RPUSH", "k", "a", "12", "b", "a", "-1"]],
    "quicklist": [["RPUSH", "k"] + ["e" * 90 + str(n) for n in range(200)]],
    "intset": [["SADD", "k", "1", "2", "-3"]], "set": [["SADD", "k", "a", "5", "c" * 100]],
    "hash": [["HSET", "k", "a", "5", "b", "w"], ["HEXPIRE", "k", "100", "FIELDS", "1", "b"]],
    "hashtable": [["HSET", "k", "a", "5", "b", "w" * 100]],
    "due": [["HSET", "k", "a", "5", "b", "w"], ["HPEXPIREAT", "k", "{soon}", "FIELDS", "1", "a"]],
    "zset": [["ZADD", "k", "1", "a", "2", "b"], ["EXPIREMEMBER", "k", "b", "100"]],
    "skiplist": [["ZADD", "k", "1", "a", "-inf", "b" * 100, "inf", "c"]],
    "geo": [["GEOADD", "k", "13.3", "38.1", "a", "15", "37.5", "b"]],
    "hyperloglog": [["PFADD", "k", "a", "b", "c"]],
    "stream": [["XADD", "k", "1-1", "a", "5"], ["XADD", "k", "2-1", "a", "6"],
               ["XGROUP", "CREATE", "k", "g", "0"],
               ["XREADGROUP", "GROUP", "g", "c", "STREAMS", "k", ">"]],
    "deleted": [["XADD", "k", "1-1", "a", "5"], ["XGROUP", "CREATE", "k", "g", "0"],
                ["XREADGROUP", "GROUP", "g", "c", "STREAMS", "k", ">"], ["XDEL", "k", "1-1"]],
    "nested": [["KEYDB.NHSET", "k.a.b", "c"]],
    "job": [["KEYDB.CRON", "k", "repeat", "1000000000", "return redis.call('PING')"]],
}

# Half a gigabyte, which is within the limits of a string and so no mistake.
LARGE_OFFSET = str(2**32 - 1)
OFFSETS = {"SETBIT", "BITFIELD"}


def choose(name, call, chance):
    """Hostile values for one or two places, or for none."""
    free = documented.places(call)
    chosen = chance.sample(free, min(len(free), chance.choice([0, 1, 1, 1, 2])))
    values = {place: chance.choice(B) for place in chosen}
    if name in OFFSETS:
        values = {p: v for p, v in values.items() if v != LARGE_OFFSET}
    return values


def names(client):
    found = documented.documents(client)
    return {name: fields for name, fields in sorted(found.items())
            if fields[b"group"] in GROUPS and b"subcommands" not in fields}


def prepared(client, state):
    now = client.call("TIME")
    soon = str(int(now[0]) * 1000 + int(now[1]) // 1000 + 1)
    return [["DEL", "k", "other"]] + [[w.format(soon=soon) for w in words] for words in STATES[state]]
