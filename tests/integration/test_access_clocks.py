"""Access clocks (keyspace/access.h): which commands count as an access, also under CLIENT NO-TOUCH, and
what becomes of the clocks when the policy changes."""

import pytest

from lib import commands

IDLE_S = 1000
# The command tables' sample calls have none of sets.
SET = {"SADD": "k m c", "SCARD": "k", "SDIFF": "k1 k2", "SDIFFSTORE": "k3 k1 k2", "SINTER": "k1 k2",
       "SINTERCARD": "2 k1 k2", "SINTERSTORE": "k3 k1 k2", "SISMEMBER": "k m", "SMEMBERS": "k",
       "SMISMEMBER": "k m", "SMOVE": "k1 k2 m", "SPOP": "k", "SRANDMEMBER": "k", "SREM": "k m", "SSCAN": "k 0",
       "SUNION": "k1 k2", "SUNIONSTORE": "k3 k1 k2"}
# Forms that the tables leave out: keys that are replaced, and what options do.
MORE = {"COPY": ["k1 k2", "k1 k2 REPLACE", "k1 new"], "SET": ["k v GET", "k v NX", "k v XX KEEPTTL"],
        "GETEX": ["k", "k PERSIST"], "SORT": ["k1 STORE k2", "k1 BY k* GET k*"], "ZUNIONSTORE": ["k3 2 k1 k2"],
        "ZRANGESTORE": ["k3 k 0 -1"], "GEOSEARCHSTORE": ["k3 k FROMMEMBER m BYBOX 300 400 km"],
        "EXPIRE": ["k -1", "k 10 NX", "k 10 XX"], "RENAME": ["k1 k1", "k1 new"], "RENAMENX": ["k1 new"],
        "LMOVE": ["k1 k1 LEFT RIGHT"], "LPUSH": ["new v"], "APPEND": ["k " + "x" * 2000],
        "SPOP": ["k 2", "k 5"], "XREADGROUP": ["GROUP g c STREAMS k 0"], "DUMP": ["k"],
        "MEMORY": ["USAGE k"], "DEBUG": ["OBJECT k"], "OBJECT": ["ENCODING k"]}
# The oracle looks the key up twice.
TWICE = {"GETSET k v", "SET k v GET", "XREAD COUNT 1 STREAMS k1 k2 0 0"}
STRING = [["SET", "{}", "100007"]]
VALUES = {
    "string": (commands.STRING, STRING), "bitmap": (commands.BITMAP, STRING),
    "generic": (commands.GENERIC, STRING),
    "hyperloglog": (commands.HYPERLOGLOG, [["PFADD", "{}", "a", "b"]]),
    "hash": (commands.HASH, [["HSET", "{}", "f", "100007", "f1", "1.5"]]),
    "list": (commands.LIST, [["RPUSH", "{}", "p", "v", "v", "w"]]),
    "set": (SET, [["SADD", "{}", "m", "a", "b"]]),
    "zset": (commands.SORTED_SET, [["ZADD", "{}", "1", "m", "2", "a", "3", "b"]]),
    "geo": (commands.GEO, [["GEOADD", "{}", "1", "2", "m", "1", "2.1", "a", "1.2", "2", "b"]]),
    "stream": (commands.STREAM, [["XADD", "{}", "1-1", "f", "v"]]),
    "group": (commands.STREAM_GROUP, [["XADD", "{}", "1-1", "f", "v"], ["XGROUP", "CREATE", "{}", "g", "0"]]),
}
KEYS = ["k", "k1", "k2", "k3"]


def calls(kind):
    """Sample calls for keys of the kind."""
    for name in VALUES[kind][0]:
        yield name.split("|") + VALUES[kind][0][name].split()
        for more in MORE.get(name, []):
            yield name.split("|") + more.split()


def prepare(c, kind, *clock):
    """All keys hold a value of the kind, and were not used for long (or as `clock` says)."""
    c.ok("FLUSHALL")
    for words in VALUES[kind][1]:
        c.call(*(w.format("made") for w in words))
    payload = c.call("DUMP", "made")
    for key in KEYS:
        c.ok("RESTORE", key, 0, payload, *(clock or ("IDLETIME", IDLE_S)))
    c.call("DEL", "made")


def used(c):
    """Of the keys that are there: whether their clocks are new."""
    idle = {key: c.call("OBJECT", "IDLETIME", key) for key in KEYS}
    return {key: seconds < IDLE_S for key, seconds in idle.items() if seconds is not None}


@pytest.mark.any_threads
@pytest.mark.parametrize("kind", VALUES)
def test_what_counts_as_an_access(client, oracle, kind):
    """Beside the oracle, by time and (each use counts: factor 0) by number."""
    with oracle.connect() as other:
        seen = []
        for c in (client, other):
            c.ok("CONFIG", "SET", "lfu-log-factor", "0", "lfu-decay-time", "0")
            for words in calls(kind):
                c.ok("CONFIG", "SET", "maxmemory-policy", "noeviction")
                prepare(c, kind)
                c.call(*words)
                seen.append((words, used(c)))
                c.ok("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
                prepare(c, kind, "FREQ", 100)
                c.call(*words)
                seen.append((words, {key: c.call("OBJECT", "FREQ", key) for key in KEYS}))
    ours, theirs = seen[:len(seen) // 2], seen[len(seen) // 2:]
    assert [pair for pair in zip(ours, theirs)
            if pair[0] != pair[1] and " ".join(pair[0][0]) not in TWICE] == []


WAYS = {
    "alone": lambda c, words: c.call(*words),
    "in a transaction": lambda c, words: [c.call("MULTI"), c.call(*words), c.call("EXEC")],
    "in a script": lambda c, words: c.call("EVAL", "return redis.pcall(unpack(ARGV))", 0, *words),
}


@pytest.mark.any_threads
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", VALUES)
def test_only_touch_counts_under_no_touch(client, connect, ours_only, kind, way):
    """Since 7.2.  What is made anew has a new clock."""
    quiet = connect()
    quiet.ok("CLIENT", "NO-TOUCH", "ON")
    for words in calls(kind):
        prepare(client, kind)
        WAYS[way](quiet, words)
        made_anew = {"k2"} if words == ["COPY", "k1", "k2", "REPLACE"] else set()
        expected = {"k1", "k2"} if words[0] == "TOUCH" else made_anew
        assert {key for key, is_new in used(client).items() if is_new} == expected, words
    prepare(client, kind)
    quiet.ok("CLIENT", "NO-TOUCH", "OFF")
    quiet.call("DUMP", "k")
    assert used(client)["k"]


# ---- other policies ----

COUNTING = ("allkeys-lfu", "volatile-lfu")
NOT_COUNTING = ("noeviction", "allkeys-lru", "volatile-lru", "allkeys-random", "volatile-ttl")


def frequencies(c, *keys):
    return [c.call("OBJECT", "FREQ", key) for key in keys]


def idle_times(c, *keys):
    return [c.call("OBJECT", "IDLETIME", key) for key in keys]


def hundreds(c, *keys):
    """Of seconds: the next one may begin before it is asked for."""
    return [seconds // 100 for seconds in idle_times(c, *keys)]


def is_about(seconds, expected):
    return [expected <= s <= expected + 60 for s in seconds]


@pytest.mark.any_threads
@pytest.mark.parametrize("before", NOT_COUNTING)
@pytest.mark.parametrize("after", COUNTING)
def test_a_fair_start_when_uses_are_counted(client, ours_only, before, after):
    client.ok("CONFIG", "SET", "maxmemory-policy", before, "lfu-log-factor", "0", "lfu-decay-time", "0")
    prepare(client, "string")
    client.ok("SET", "k1", "new")
    client.ok("CONFIG", "SET", "maxmemory-policy", after)
    assert frequencies(client, *KEYS) == [5, 5, 5, 5]
    client.ok("SET", "young", "v")
    client.call("GET", "k")
    client.call("LPUSH", "l", "v")
    client.call("GET", "k2")
    client.call("GET", "k2")
    assert frequencies(client, *KEYS, "young", "l") == [6, 5, 7, 5, 5, 5]
    other = COUNTING[after == COUNTING[0]]
    client.ok("CONFIG", "SET", "maxmemory-policy", other)
    assert frequencies(client, *KEYS) == [6, 5, 7, 5]
    # And back, with no count and no time lost.
    client.ok("CONFIG", "SET", "maxmemory-policy", before)
    assert is_about(idle_times(client, "k", "k2", "young"), 0) == [True] * 3
    assert is_about(idle_times(client, "k3"), IDLE_S) == [True]
    client.ok("CONFIG", "SET", "maxmemory-policy", after)
    assert frequencies(client, *KEYS) == [6, 5, 7, 5]


@pytest.mark.any_threads
def test_restore_in_terms_of_the_other_policy(client, oracle):
    with oracle.connect() as other:
        seen = []
        for c in (client, other):
            c.ok("CONFIG", "SET", "lfu-decay-time", "0")
            c.ok("SET", "k", "value")
            payload = c.call("DUMP", "k")
            told = []
            for policy, show in (("allkeys-lfu", frequencies), ("allkeys-lru", hundreds)):
                c.ok("CONFIG", "SET", "maxmemory-policy", policy)
                for option in ([], ["FREQ", 0], ["FREQ", 9], ["FREQ", 255], ["IDLETIME", 0], ["IDLETIME", 5000]):
                    c.ok("RESTORE", "k", 0, payload, "REPLACE", *option)
                    told += show(c, "k")
                for fault in (["FREQ", 256], ["FREQ", -1], ["IDLETIME", -1], ["FREQ", 1, "IDLETIME", 1]):
                    told.append(c.call("RESTORE", "k", 0, payload, "REPLACE", *fault))
            seen.append(told)
    assert seen[0] == seen[1]


SAVED = [("allkeys-lru", "IDLETIME", 5000), ("allkeys-lfu", "FREQ", 200), ("noeviction", "IDLETIME", 5000)]


@pytest.mark.any_threads
def test_files_of_one_policy_and_the_other(make_server):
    """What a file does not tell begins anew."""
    server = make_server(files=["dump.rdb"])
    with server.connect() as c:
        c.ok("CONFIG", "SET", "lfu-decay-time", "0")  # no minute begins meanwhile
        for policy, option, value in SAVED:
            c.ok("CONFIG", "SET", "maxmemory-policy", policy)
            c.ok("SET", "k", "v")
            c.ok("RESTORE", "k", 0, c.call("DUMP", "k"), option, value, "REPLACE")
            c.call("DEL", "plain")
            c.ok("SET", "plain", "v")
            c.ok("SAVE")
            for then in ("allkeys-lfu", "allkeys-lru", "noeviction"):
                c.ok("CONFIG", "SET", "maxmemory-policy", then)
                c.ok("DEBUG", "RELOAD", "NOSAVE")
                if then == "allkeys-lfu":
                    assert frequencies(c, "plain", "k") == [5, 200 if option == "FREQ" else 5]
                else:
                    told = policy == "allkeys-lru"
                    assert all(is_about(idle_times(c, "plain"), 0))
                    assert all(is_about(idle_times(c, "k"), 5000 if told else 0))
