"""KeyDB's commands at the ends of what they take (reference/keydb.md, 1.1): no argument, too many, wrong types, missing
keys, zero, below it, past, now, and as far ahead as numbers go; with both protocols, within MULTI and from scripts, on a
replica and after a restart from either kind of file. There is no oracle for these: the table says what is right."""

import pytest

from lib.bounds import eventually
from lib.replication import everything, in_step, replication
from lib.resp import Error

pytestmark = [pytest.mark.any_threads, pytest.mark.usefixtures("ours_only")]

BIGGEST = (1 << 63) - 1
SECONDS_MAX = BIGGEST // 1000

FILL = [line.split() for line in """
SADD s m n
HSET h m 1 n 2
ZADD z 1 m 2 n
SET str v
RPUSH l a
XADD x 1-1 a b
KEYDB.NHSET nh.a v
KEYDB.NHSET nh.b.c 1 2
""".splitlines() if line] + [["SET", "bits", b"\xaa"], ["KEYDB.CRON", "job", "SINGLE", "100000000", "return 1"]]

UNSUPPORTED = b"ERR object type is unsupported"
NO_INTEGER = b"ERR value is not an integer or out of range"
WRONG_TYPE = b"WRONGTYPE Operation against a key holding the wrong kind of value"
SYNTAX = b"ERR syntax error"
NO_KEY = b"ERR no such key"
NO_FIELD = b"ERR hash key doesn't exist"
TOO_LARGE = b"ERR BITOP SHIFT value is too large."
NO_SHIFT = b"ERR BITOP SHIFT's last parameter must be an integer"
ONE_SOURCE = b"ERR BITOP SHIFT must be called with a single source key and an integer shift."


def arity(name):
    return b"ERR wrong number of arguments for '%s' command" % name.encode()


def no_time(name):
    return b"ERR invalid expire time in '%s' command" % name.encode()


def expiring(name, over, far, beyond):
    """Times that are over take the member out at once; far ones are kept; those beyond are no times."""
    low = name.lower()
    rows = [([name], arity(low)), ([name, "s"], arity(low)), ([name, "s", "m"], arity(low))]
    rows += [([name, key, "m", "10"], UNSUPPORTED) for key in ("str", "l", "x", "nh", "job", "bits")]
    rows += [([name, key, "m", "10"], 0) for key in ("missing", "")]
    rows += [([name, key, "nobody", "10"], 0) for key in "shz"] + [([name, "s", "", "10"], 0)]
    words = ["", "x", "1.5", "+1", " 1", "01", "1 ", str(BIGGEST + 1), str(-BIGGEST - 2)]
    rows += [([name, "s", "m", text], NO_INTEGER) for text in words]
    rows += [([name, "s", "m", str(time)], no_time(low)) for time in beyond]
    rows += [([name, key, "m", str(time)], 1) for key in "shz" for time in over + far]
    return rows


TABLE = (
    expiring("EXPIREMEMBER", [0, -1, -SECONDS_MAX], [10, SECONDS_MAX // 2],
             [BIGGEST, -BIGGEST, -BIGGEST - 1, SECONDS_MAX, -SECONDS_MAX - 1]) +
    expiring("EXPIREMEMBERAT", [0, 1, -1, -SECONDS_MAX], [SECONDS_MAX],
             [BIGGEST, -BIGGEST - 1, SECONDS_MAX + 1, -SECONDS_MAX - 1]) +
    expiring("PEXPIREMEMBERAT", [0, 1, -1, -BIGGEST, -BIGGEST - 1], [BIGGEST - 1, BIGGEST], []) +
    [(["EXPIREMEMBER", "s", "m", "10", unit], 1) for unit in ("s", "S", "ms", "MS")] +
    [(["EXPIREMEMBER", "s", "m", "10", unit], b"ERR Invalid unit arg") for unit in ("", "m", "us", "10")] +
    [(["EXPIREMEMBER", "s", "m", str(BIGGEST), "ms"], no_time("expiremember")),
     (["EXPIREMEMBER", "s", "m", str(BIGGEST // 2), "ms"], 1), (["EXPIREMEMBER", "s", "m", "-1", "ms"], 1),
     (["EXPIREMEMBER", "s", "m", "10", "s", "x"], b"ERR Invalid number of arguments"),
     (["EXPIREMEMBERAT", "s", "m", "10", "s"], arity("expirememberat")),
     (["PEXPIREMEMBERAT", "s", "m", "10", "s"], arity("pexpirememberat"))] +
    [row for name in ("TTL", "PTTL") for row in (
        [([name], arity(name.lower())), ([name, "missing", "m"], -2), ([name, "missing"], -2),
         ([name, "s", "m", "x"], b"ERR Invalid arguments")] +
        [([name, key, "m"], -1) for key in ("s", "h", "z", "str", "l", "x", "nh", "job")])] +
    [(["PERSIST"], arity("persist")), (["PERSIST", "s", "m", "x"], b"ERR Invalid arguments"),
     (["PERSIST", "missing", "m"], 0)] +
    [(["PERSIST", key, "m"], 0) for key in ("s", "h", "z", "str", "l", "x", "nh", "job")] +
    [(["KEYDB.HRENAME"] + words, reply) for words, reply in (
        ([], arity("keydb.hrename")), (["h"], arity("keydb.hrename")), (["h", "m"], arity("keydb.hrename")),
        (["h", "m", "k", "x"], arity("keydb.hrename")), (["missing", "a", "b"], None), (["h", "q", "b"], NO_FIELD),
        (["h", "q", "q"], NO_FIELD), (["h", "m", "m"], 1), (["h", "m", "n"], 1), (["h", "m", ""], 1),
        (["s", "m", "b"], WRONG_TYPE), (["str", "m", "b"], WRONG_TYPE), (["nh", "a", "b"], WRONG_TYPE))] +
    [(["KEYDB.MEXISTS"], arity("keydb.mexists")), (["KEYDB.MEXISTS", ""], [0]),
     (["KEYDB.MEXISTS", "s", "s", "missing", "str", "nh", "job"], [1, 1, 0, 1, 1, 1])] +
    [(["KEYDB.NHSET"] + words, reply) for words, reply in (
        ([], arity("keydb.nhset")), (["a"], arity("keydb.nhset")), (["a", "v"], 0), (["nh.a", ""], 1), (["nh", "v"], 1),
        (["nh.a.b", "v"], WRONG_TYPE), (["nh.b", "v"], 1), (["nh.b.d", "v"], 0), (["nh.b.c", "v"], 1),
        (["a.b.c.d", "1", "2"], 0), (["", "v"], SYNTAX), ([".", "v"], SYNTAX), ([".a", "v"], SYNTAX),
        (["a.", "v"], SYNTAX), (["a..b", "v"], SYNTAX), (["str.a", "v"], WRONG_TYPE), (["s", "v"], WRONG_TYPE),
        (["job.a", "v"], WRONG_TYPE))] +
    [(["KEYDB.NHGET"] + words, reply) for words, reply in (
        ([], arity("keydb.nhget")), (["nh.a"], b"v"), (["nh"], [[b"a", b"v"], [b"b", [[b"c", [b"1", b"2"]]]]]),
        (["json", "nh"], b'{"a" : "v", "b" : {"c" : ["1", "2"]}}'), (["JSON", "nh.b.c"], b'["1", "2"]'),
        (["resp", "nh.b.c"], [b"1", b"2"]), (["xml", "nh"], SYNTAX), (["json", "resp", "nh"], SYNTAX),
        (["json"], NO_KEY), (["missing"], NO_KEY), (["json", "missing.a"], NO_KEY), (["nh.a.b"], NO_KEY),
        (["nh.q"], NO_KEY), (["nh."], SYNTAX), ([""], SYNTAX), (["str"], WRONG_TYPE), (["s.m"], WRONG_TYPE))] +
    [(["BITOP"] + words, reply) for words, reply in (
        ([], arity("bitop")), (["LSHIFT", "d"], arity("bitop")), (["LSHIFT", "d", "bits"], ONE_SOURCE),
        (["RSHIFT", "d", "bits", "str", "1"], ONE_SOURCE), (["lshift", "d", "bits", "4"], 2),
        (["LSHIFT", "d", "bits", "0"], 1), (["LSHIFT", "d", "bits", "-4"], 1), (["LSHIFT", "d", "bits", "-8"], 0),
        (["RSHIFT", "d", "bits", "7"], 1), (["RSHIFT", "d", "bits", "8"], 0), (["RSHIFT", "d", "bits", "-9"], 3),
        (["RSHIFT", "d", "bits", "1073741824"], 0), (["LSHIFT", "d", "bits", "1073741825"], TOO_LARGE),
        (["RSHIFT", "d", "bits", "-1073741825"], TOO_LARGE), (["LSHIFT", "d", "bits", str(BIGGEST)], TOO_LARGE),
        (["LSHIFT", "d", "bits", str(-BIGGEST - 1)], TOO_LARGE), (["LSHIFT", "d", "bits", str(BIGGEST + 1)], NO_SHIFT),
        (["LSHIFT", "d", "bits", ""], NO_SHIFT), (["LSHIFT", "d", "bits", "1.5"], NO_SHIFT),
        (["LSHIFT", "d", "missing", "1073741824"], 0), (["LSHIFT", "d", "l", "1"], WRONG_TYPE),
        (["LSHIFT", "l", "bits", "1"], 2), (["LSHIFT", "bits", "bits", "1"], 2))] +
    [(["LFENCE"], b"OK"), (["LFENCE", "x"], arity("lfence")), (["EXPDEL"], arity("expdel")),
     (["EXPDEL", "s", "s", "missing", "nh", "job"], 3), (["OBJECT", "LASTMODIFIED", "missing"], None),
     (["OBJECT", "LASTMODIFIED"], arity("object|lastmodified")),
     (["OBJECT", "LASTMODIFIED", "s"],
      b"ERR Only active replicas know when a key was last written")])


def fill(client):
    client.ok("FLUSHALL")
    for words in FILL:
        assert not isinstance(client.call(*words), Error)


def plain(client, words):
    return client.call(*words)


def in_a_transaction(client, words):
    client.ok("MULTI")
    queued = client.call(*words)
    done = client.call("EXEC")
    if isinstance(queued, Error):
        assert isinstance(done, Error) and done.startswith(b"EXECABORT")
        return queued
    assert queued == b"QUEUED"
    return done[0]


# What a script is told of the number of arguments.
SCRIPTS_ARITY = b"ERR Wrong number of args calling Redis command from script"


def from_a_script(client, words):
    reply = client.call("EVAL", "return redis.call(unpack(ARGV))", "0", *words)
    if isinstance(reply, Error):
        return Error(reply.split(b" script: ")[0])
    return reply


@pytest.mark.parametrize("how", [plain, in_a_transaction, from_a_script])
@pytest.mark.parametrize("proto", [2, 3])
def test_replies(connect, proto, how):
    client = connect(proto)
    found = []
    for words, want in TABLE:
        fill(client)
        reply = how(client, words)
        is_arity = isinstance(want, bytes) and want.startswith(b"ERR wrong number")
        wanted = SCRIPTS_ARITY if is_arity and how is from_a_script else want
        is_error = isinstance(wanted, bytes) and wanted.split(b" ")[0] in (b"ERR", b"WRONGTYPE")
        if isinstance(reply, Error) != is_error or reply != wanted:
            found.append((words, wanted, reply))
    assert found == []


def test_refused_is_not_done(client):
    """What was answered by an error, by nil, or by 0 for nobody left everything as it was."""
    for words, want in TABLE:
        if want is None or isinstance(want, bytes) and want != b"OK":
            fill(client)
            before = client.call("DEBUG", "DIGEST")
            client.call(*words)
            assert client.call("DEBUG", "DIGEST") == before, words


FAR = [["PEXPIREMEMBERAT", key, "m", str(BIGGEST)] for key in "shz"] + \
      [["EXPIREMEMBERAT", key, "n", str(SECONDS_MAX)] for key in "shz"] + \
      [["PEXPIREAT", key, str(BIGGEST)] for key in "shz"] + \
      [["KEYDB.NHSET", "nh.b.c.d", b"\0\xff"], ["KEYDB.NHSET", "nh.e", "", ""], ["KEYDB.HRENAME", "h", "n", "o"],
       ["BITOP", "LSHIFT", "bits", "bits", "77"], ["BITOP", "RSHIFT", "d", "bits", "-77"], ["EXPDEL", "str", "l"],
       ["EXPIREMEMBER", "x2", "m", "0"], ["SADD", "gone", "m"], ["EXPIREMEMBER", "gone", "m", "0"]]


def deadlines(client):
    left = [client.call("PTTL", key, member) for key in "sz" for member in "mn"]
    assert all(BIGGEST - left_ms < 1 << 42 for left_ms in left)
    return [client.call("HPEXPIRETIME", "h", "FIELDS", "2", "m", "o")] + \
           [client.call("PEXPIRETIME", key) for key in "shz"] + [client.call("EXISTS", "gone")]


@pytest.mark.parametrize("options", [{}, {"appendonly": "yes"}, {"appendonly": "yes", "aof-use-rdb-preamble": "no"}],
                         ids=["rdb", "log", "log without preamble"])
def test_far_ahead_on_a_replica_and_after_a_restart(make_server, options):
    primary = make_server(dict(options, **{"repl-diskless-sync-delay": "0"}), files=["dump.rdb", "appendonlydir"])
    replica = make_server({"replicaof": ["127.0.0.1", str(primary.port)]})
    eventually(lambda: replication(replica)["master_link_status"] == "up", "the link")
    with primary.connect() as client:
        fill(client)
        for words in FAR:
            assert not isinstance(client.call(*words), Error) or words[1] == "nh.b.c.d", words
        want, left = everything(primary), deadlines(client)
        assert left == [[BIGGEST, SECONDS_MAX * 1000]] + [BIGGEST] * 3 + [0]
        eventually(lambda: in_step(primary, replica), "in step", 60)
        with replica.connect() as other:
            assert everything(replica) == want and deadlines(other) == left
        if options:
            client.ok("DEBUG", "LOADAOF")
            assert everything(primary) == want and deadlines(client) == left
            client.call("BGREWRITEAOF")
            eventually(lambda: primary.info("persistence")["aof_rewrite_in_progress"] == "0", "the log anew")
            client.ok("DEBUG", "LOADAOF")
        else:
            client.ok("DEBUG", "RELOAD")
        assert everything(primary) == want and deadlines(client) == left
