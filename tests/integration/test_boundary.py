"""Every integer argument of every command at every boundary value, on a missing, a small and a
wrong-type key: the server answers, lives, and does not grow."""

import itertools

import pytest

from lib.boundary import B
from lib.resp import encode
from lib.server import is_redis, parse_info, server_path

GROWTH_LIMIT_BYTES = 64 << 20
REPLY_LIMIT_BYTES = 16 << 20

# # stands for the argument under test; commands with two get every pair of a smaller set too.
CALLS = """
DECRBY k #
INCRBY k #
INCRBYFLOAT k #
GETRANGE k # 0
GETRANGE k 0 #
GETRANGE k # #
SUBSTR k # #
SETRANGE k # x
SETRANGE k # -
SETEX k # v
PSETEX k # v
SET k v EX #
SET k v PX #
SET k v EXAT #
SET k v PXAT #
GETEX k EX #
GETEX k PX #
GETEX k EXAT #
GETEX k PXAT #
LCS k k MINMATCHLEN #
LCS k k IDX MINMATCHLEN # WITHMATCHLEN
EXPIRE k #
PEXPIRE k #
EXPIREAT k #
PEXPIREAT k #
EXPIRE k # GT
PEXPIREAT k # LT
MOVE k #
COPY k other DB # REPLACE
SCAN #
SCAN 0 COUNT #
SCAN # COUNT #
SELECT #
SWAPDB # 0
SWAPDB 0 #
SWAPDB # #
HELLO #
CLIENT KILL ID #
CLIENT LIST ID #
CLIENT UNBLOCK #
CLIENT PAUSE # BAD
SLOWLOG GET #
MEMORY USAGE k SAMPLES #
LOLWUT VERSION #
LOLWUT VERSION 5 # # #
LOLWUT VERSION 6 # #
COMMAND GETKEYS MSET k #
CONFIG SET maxclients #
CONFIG SET timeout #
CONFIG SET slowlog-max-len #
CONFIG SET proto-max-bulk-len #
CONFIG SET client-query-buffer-limit #
CONFIG SET hz #
DEBUG STRINGMATCH-LEN 10 #
DEBUG QUICKLIST-PACKED-THRESHOLD #
APPEND k #
SET # #
LPOP k #
RPOP k #
LINDEX k #
LSET k # v
LRANGE k # #
LTRIM k # #
LREM k # a
LPOS k a RANK # COUNT #
LPOS k a MAXLEN # COUNT 0
LPOS k # RANK #
LMPOP # k LEFT
LMPOP 1 k LEFT COUNT #
LINSERT k BEFORE # #
HEXPIRE k # FIELDS # f
HPEXPIRE k # GT FIELDS 1 f
HEXPIREAT k # FIELDS 1 f
HPEXPIREAT k # LT FIELDS 1 #
HPERSIST k FIELDS # f
HTTL k FIELDS # f #
HPEXPIRETIME k FIELDS # f
EXPIREMEMBER k f #
EXPIREMEMBER k f # ms
EXPIREMEMBERAT k f #
PEXPIREMEMBERAT k # #
"""

STATES = {
    "missing": [],
    "small": [["SET", "k", "12"]],
    "text": [["SET", "k", "hello world"]],
    "volatile": [["SET", "k", "hello", "EX", "100"]],
    "list": [["RPUSH", "k", "a", "12", "b", "a", "-1", "a"]],
    "hash": [["HSET", "k", "f", "v", "1", "2"], ["HEXPIRE", "k", "100", "FIELDS", "1", "1"]],
    "wrong": [["RPUSH", "k", "x"]],
}


# The same of commands that know one type: by the value that they find.
CALLS_OF = {
    "text": """
SETBIT k # 1
GETBIT k #
BITCOUNT k # #
BITCOUNT k # # BIT
BITPOS k 1 # #
BITPOS k 0 # # BIT
BITFIELD k SET u8 # 1
BITFIELD k GET i64 # INCRBY u63 # 1
BITFIELD k SET u8 ## #
BITFIELD_RO k GET u8 #
PEXPIREAT k # GT
""",
    "set": """
SRANDMEMBER k #
SPOP k #
SINTERCARD # k LIMIT #
SSCAN k # COUNT #
""",
    "hash": """
HRANDFIELD k #
HRANDFIELD k # WITHVALUES
HINCRBY k 1 #
HSCAN k # COUNT #
""",
    "zset": """
ZRANDMEMBER k #
ZRANDMEMBER k # WITHSCORES
ZPOPMIN k #
ZRANGE k # #
ZRANGE k -inf +inf BYSCORE LIMIT # #
ZREMRANGEBYRANK k # #
ZADD k # a
ZINCRBY k # a
ZMPOP # k MIN COUNT #
ZSCAN k # COUNT #
ZUNION # k WEIGHTS #
SORT k LIMIT # # BY nosort
""",
    "stream": """
XADD k MAXLEN # * a b
XADD k MAXLEN ~ # LIMIT # * a b
XADD k #-# a b
XTRIM k MAXLEN #
XTRIM k MINID ~ # LIMIT #
XRANGE k # # COUNT #
XREAD COUNT # STREAMS k #
XPENDING k g # # #
XAUTOCLAIM k g c # 0 COUNT #
XCLAIM k g c # 1-1 IDLE # RETRYCOUNT #
XSETID k 99-1 ENTRIESADDED # MAXDELETEDID #
XINFO STREAM k FULL COUNT #
XGROUP CREATE k h # ENTRIESREAD #
""",
}

STATES.update({
    "set": [["SADD", "k", "a", "b", "12"]],
    "zset": [["ZADD", "k", "1", "a", "2", "b", "3", "12"]],
    "stream": [["XADD", "k", "1-1", "a", "b"], ["XADD", "k", "2-1", "a", "b"],
               ["XGROUP", "CREATE", "k", "g", "0"],
               ["XREADGROUP", "GROUP", "g", "c", "STREAMS", "k", ">"]],
})
OF_ONE_TYPE = {"set", "zset", "stream"}

# Redis, standing in for our server, does not come back from these.
TOO_MUCH_FOR_REDIS = ["CONFIG SET maxclients #", "LOLWUT VERSION 5 # # #"]


def cases():
    for template in CALLS.strip().split("\n"):
        if is_redis(server_path()) and template in TOO_MUCH_FOR_REDIS:
            continue
        for state in sorted(set(STATES) - OF_ONE_TYPE) if " k" in template else ["missing"]:
            yield pytest.param(template, state, id="%s-%s" % (template, state))
    for kind, templates in CALLS_OF.items():
        for template in templates.strip().split("\n"):
            for state in (kind, "missing", "wrong"):
                yield pytest.param(template, state, id="%s-%s" % (template, state))


def calls(template):
    """All single values; pairs where there are several places."""
    words = template.split()
    places = [n for n, w in enumerate(words) if w in ("#", "##", "#-#")]
    pool = B if len(places) == 1 else B[::2] + ["2"] if len(places) == 2 else B[::4] + ["2"]
    for values in itertools.product(pool, repeat=len(places)):
        call = list(words)
        for place, text in zip(places, values):
            # "##" is BITFIELD's "#<number>".
            call[place] = "#" + text if words[place] == "##" else words[place].replace("#", text)
        yield ["" if w == "-" else w for w in call]


def harmless(call):
    """CLIENT KILL ID of the testing client itself, and a password that is then asked for."""
    return call[:3] != ["CLIENT", "KILL", "ID"] or call[3] in ("", "nan", "inf") or \
        not call[3].isdigit() or int(call[3]) > 2**30


@pytest.mark.any_threads
@pytest.mark.parametrize("template,state", cases())
def test_integer_arguments(server, connect, needs, template, state):
    if state in ("wrong", "list"):
        needs("RPUSH")
    client = connect()
    before = int(parse_info(client.call("INFO", "memory"))["used_memory"])
    for call in filter(harmless, calls(template)):
        for words in STATES[state]:
            client.call("DEL", "k")
            client.call(*words)
        client.timeout_s = 5.0  # the hard bound of one reply
        client.send_raw(encode(*call))
        raw, _ = client.read_reply()
        assert len(raw) < REPLY_LIMIT_BYTES, call
        if call[0] == "HELLO":
            client.hello(2)
        elif call[0] in ("SELECT", "SWAPDB"):
            client.ok("SELECT", "0")
        elif call[:3] == ["CONFIG", "SET", "maxclients"]:
            client.ok("CONFIG", "SET", "maxclients", "10000")  # with 1 nobody else gets in
        elif call[:3] == ["CONFIG", "SET", "timeout"]:
            client.ok("CONFIG", "SET", "timeout", "0")  # with 1 this client goes as soon as it rests
        elif call[:2] == ["DEBUG", "QUICKLIST-PACKED-THRESHOLD"]:
            client.call("DEBUG", "QUICKLIST-PACKED-THRESHOLD", "0")  # no option: nobody else resets it
    client.call("DEL", "k")  # half a gibibyte of zeros was asked for, and is no growth
    after = int(parse_info(client.call("INFO", "memory"))["used_memory"])
    assert after - before < GROWTH_LIMIT_BYTES
    assert server.alive()


@pytest.mark.any_threads
def test_large_lcs_is_refused_or_bounded(client):
    """64 KiB against 64 KiB is a matrix of 16 GiB."""
    client.ok("MSET", "a", "ab" * 32768, "b", "ba" * 32768)
    before = int(parse_info(client.call("INFO", "memory"))["used_memory_peak"])
    client.timeout_s = 60.0
    reply = client.call("LCS", "a", "b", "LEN")
    after = int(parse_info(client.call("INFO", "memory"))["used_memory_peak"])
    assert isinstance(reply, (int, bytes))
    assert after - before < GROWTH_LIMIT_BYTES


@pytest.mark.any_threads
def test_setrange_never_reserves_what_it_refuses(client):
    before = int(parse_info(client.call("INFO", "memory"))["used_memory"])
    assert client.error("SETRANGE", "k", 536870912, "x").startswith(b"ERR string exceeds maximum")
    assert client.call("EXISTS", "k") == 0
    after = int(parse_info(client.call("INFO", "memory"))["used_memory"])
    assert after - before < 1 << 20


@pytest.mark.any_threads
@pytest.mark.parametrize("call", [["SETRANGE", "k", "536870911", "x"], ["SETBIT", "k", "4294967288", "1"],
                                  ["BITFIELD", "k", "SET", "u8", "4294967288", "128"]],
                         ids=lambda call: call[0])
@pytest.mark.parametrize("before", [b"", b"y" * 3_000_000], ids=["missing", "large"])
def test_what_nobody_writes_takes_no_memory(make_server, call, before, ours_only):
    """Half a gibibyte of zeros is promised, not written: that is what makes it quick."""
    server = make_server()
    with server.connect() as client:
        if before:
            client.ok("SET", "k", before)
            client.ok("SET", "other", before * 10)
            client.call("DEL", "other")  # its memory may be what the string gets
        resident = int(parse_info(client.call("INFO", "memory"))["used_memory_rss"])
        client.call(*call)
        after = parse_info(client.call("INFO", "memory"))
        assert int(after["used_memory"]) > 536870912
        # A sanitizer's shadow of it is an eighth.
        assert int(after["used_memory_rss"]) - resident < 200_000_000
        assert client.call("STRLEN", "k") == 536870912
        ones = sum(bin(byte).count("1") for byte in before[:1]) * len(before)
        assert client.call("BITCOUNT", "k", "0", "-2") == ones
        assert client.call("GETRANGE", "k", len(before), len(before) + 9) == b"\0" * 10
        assert client.call("BITCOUNT", "k", "-1", "-1") == (4 if call[0] == "SETRANGE" else 1)


@pytest.mark.any_threads
def test_patterns_of_exponential_matchers(client):
    """Linear in pattern times text, or refused; never exponential, never deep."""
    client.timeout_s = 20.0
    client.ok("SET", "a" * 200, "v")
    pattern = "a*" * 60 + "b"
    assert client.call("KEYS", pattern) == []
    assert client.call("SCAN", "0", "MATCH", pattern, "COUNT", "100") == [b"0", []]
    assert client.call("CONFIG", "GET", pattern) == []
    assert client.call("COMMAND", "LIST", "FILTERBY", "PATTERN", pattern) == []
    assert client.call("KEYS", "*" * 100_000 + "x") == []
    assert client.call("KEYS", "[" * 100_000) == []
    assert client.call("KEYS", "?" * 100_000) == []
    assert client.call("KEYS", "\\" * 100_001) == []


@pytest.mark.any_threads
@pytest.mark.parametrize("call", [
    ["MSETNX", "k", "1", "k", "2"], ["MSET", "k", "1", "k", "2"], ["RENAME", "k", "k"],
    ["RENAMENX", "k", "k"], ["COPY", "k", "k"], ["COPY", "k", "k", "REPLACE"],
    ["DEL", "k", "k"], ["UNLINK", "k", "k"], ["EXISTS", "k", "k"], ["TOUCH", "k", "k"],
    ["MGET", "k", "k"], ["LCS", "k", "k"], ["MOVE", "k", "0"], ["SWAPDB", "0", "0"],
    ["COPY", "k", "k", "DB", "0"], ["COPY", "k", "k", "DB", "1"]], ids=" ".join)
def test_the_same_key_twice(client, oracle, call):
    with oracle.connect() as other:
        for value in (None, "v", "x" * 5000):
            for c in (client, other):
                c.ok("FLUSHALL")
                if value:
                    c.ok("SET", "k", value, "EX", "1000")
            assert client.call(*call) == other.call(*call)
            assert client.call("GET", "k") == other.call("GET", "k")
            assert abs(client.call("TTL", "k") - other.call("TTL", "k")) <= 5
            assert client.call("DBSIZE") == other.call("DBSIZE")
