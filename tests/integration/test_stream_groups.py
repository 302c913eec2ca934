"""Consumer groups of streams where the oracle cannot be asked: what is of 7.2, waiting, several
threads, hostile numbers, and what a group is to the rest of the server."""

import itertools
import threading

import pytest

from lib import commands
from lib.boundary import B
from lib.bounds import eventually
from lib.resp import Error, encode
from lib.server import parse_info

NO_GROUP = b"NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option"
GROWTH_LIMIT_BYTES = 64 << 20


@pytest.fixture
def blocked(client, connect):
    """blocked("XREADGROUP", ...): a client that waits already when this returns."""

    def make(*args, conn=None):
        conn = conn or connect()
        number = conn.call("CLIENT", "ID")
        conn.send(*args)
        eventually(lambda: b"flags=b" in client.call("CLIENT", "LIST", "ID", str(number)),
                   "the client waits")
        conn.client_id = number
        return conn

    return make


def read_new(consumer, *more, keys=("s",)):
    return ["XREADGROUP", "GROUP", "g", consumer, *more, "STREAMS", *keys] + [">"] * len(keys)


def add(client, *ids, key="s"):
    for i in ids:
        assert client.call("XADD", key, i, "f", "v") == i.encode()


def ids_of(reply):
    """Of an XREADGROUP of one stream in RESP2, or of a list of entries."""
    if reply and isinstance(reply[0][1], list) and reply[0][1] and isinstance(reply[0][1][0], list):
        reply = reply[0][1]
    return [entry[0] for entry in reply]


def consumers(client, key="s", group="g"):
    return {c[1]: dict(zip(c[2::2], c[3::2])) for c in client.call("XINFO", "CONSUMERS", key, group)}


# ---- what came with 7.2 ----


@pytest.mark.any_threads
def test_asking_in_vain_makes_a_consumer(client, ours_only):
    client.ok("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    assert client.call(*read_new("reader")) is None
    assert client.call("XCLAIM", "s", "g", "claimer", "0", "1-1") == []
    assert client.call("XAUTOCLAIM", "s", "g", "auto", "0", "0") == [b"0-0", [], []]
    found = consumers(client)
    assert sorted(found) == [b"auto", b"claimer", b"reader"]
    assert all(c[b"inactive"] == -1 and c[b"pending"] == 0 and c[b"idle"] >= 0
               for c in found.values())
    for faulty in (["XCLAIM", "s", "g", "x", "no", "1-1"], ["XCLAIM", "s", "g", "x", "0", "1-1", "X"],
                   ["XAUTOCLAIM", "s", "g", "x", "0", "0", "COUNT", "0"],
                   ["XREADGROUP", "GROUP", "g", "x", "STREAMS", "s", "none", ">", ">"],
                   ["XPENDING", "s", "g", "-", "+", "1", "x"]):
        client.call(*faulty)
    assert sorted(consumers(client)) == [b"auto", b"claimer", b"reader"]


@pytest.mark.any_threads
def test_only_who_gets_entries_is_active(client, ours_only):
    add(client, "1-1", "2-1", "3-1")
    client.ok("XGROUP", "CREATE", "s", "g", "0")

    def active(name):
        return consumers(client)[name.encode()][b"inactive"] >= 0

    client.call(*read_new("reader", "COUNT", "1"))
    client.call(*read_new("forgetful", "COUNT", "1", "NOACK"))
    client.call("XREADGROUP", "GROUP", "g", "historian", "STREAMS", "s", "0")
    assert active("reader") and not active("forgetful") and not active("historian")
    client.call("XCLAIM", "s", "g", "claimer", "1000000", "1-1")
    assert not active("claimer")
    client.call("XCLAIM", "s", "g", "claimer", "0", "1-1", "JUSTID")
    assert active("claimer")
    client.call("XAUTOCLAIM", "s", "g", "auto", "1000000", "0")
    assert not active("auto")
    client.call("XAUTOCLAIM", "s", "g", "auto", "0", "0")
    assert active("auto")


@pytest.mark.any_threads
@pytest.mark.parametrize("proto", [2, 3])
def test_full_shows_times(connect, ours_only, proto):
    client = connect(proto)
    add(client, "1-1")
    client.ok("XGROUP", "CREATE", "s", "g", "0")
    client.call("XGROUP", "CREATECONSUMER", "s", "g", "idler")
    client.call(*read_new("reader"))
    full = client.call("XINFO", "STREAM", "s", "FULL")

    def pairs(tree):
        return dict(tree) if proto == 3 else dict(zip(tree[0::2], tree[1::2]))

    group = pairs(pairs(full)[b"groups"][0])
    idler, reader = map(pairs, group[b"consumers"])
    assert list(reader) == [b"name", b"seen-time", b"active-time", b"pel-count", b"pending"]
    now_ms = int(client.call("TIME")[0]) * 1000 + 1000
    assert idler[b"active-time"] == -1 and 0 < idler[b"seen-time"] <= now_ms
    assert reader[b"active-time"] == reader[b"seen-time"] == reader[b"pending"][0][1]
    assert group[b"pending"] == [[b"1-1", b"reader", reader[b"active-time"], 1]]


@pytest.mark.any_threads
def test_the_error_names_the_command(client, ours_only):
    assert client.error("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", "t", "1") == \
        b"ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be " \
        b"specified."
    assert client.error("XREAD", "COUNT", "1", "STREAMS", "s", "t", "1") == \
        b"ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be specified."


# ---- arguments ----


@pytest.mark.any_threads
def test_wrong_type(client):
    client.ok("SET", "str", "x")
    client.ok("XGROUP", "CREATE", "k2", "g", "0", "MKSTREAM")
    for make in (["SET", "k", "x"], ["RPUSH", "k", "x"], ["SADD", "k", "x"], ["HSET", "k", "f", "x"],
                 ["ZADD", "k", "1", "x"]):
        client.call("DEL", "k")
        client.call(*make)
        for name in commands.STREAM_GROUP:
            words = [w.replace("k1", "k") for w in commands.call_of(name)]
            if "k" in words:
                assert client.error(*words).startswith(b"WRONGTYPE"), words


@pytest.mark.any_threads
def test_keys_are_found_behind_a_consumer_named_streams(client, ours_only):
    for call in (["GROUP", "g", "STREAMS", "STREAMS", "s", ">"],
                 ["COUNT", "1", "GROUP", "g", "STREAMS", "STREAMS", "s", ">"],
                 ["NOACK", "GROUP", "STREAMS", "c", "BLOCK", "1", "STREAMS", "s", ">"]):
        assert client.call("COMMAND", "GETKEYS", "XREADGROUP", *call) == [b"s"]
    add(client, "1-1")
    client.ok("XGROUP", "CREATE", "s", "g", "0")
    reply = client.call("XREADGROUP", "COUNT", "1", "GROUP", "g", "STREAMS", "STREAMS", "s", ">")
    assert ids_of(reply) == [b"1-1"]


# In turn: an empty stream, one with entries pending, one of which all pending entries are deleted.
STATES = {
    "none": [],
    "missing": [["XGROUP", "CREATE", "s", "g", "0", "MKSTREAM"]],
    "some": [["XADD", "s", "1-1", "a", "b"], ["XADD", "s", "2-1", "a", "b"],
             ["XGROUP", "CREATE", "s", "g", "0"], read_new("c", "COUNT", "1")],
    "deleted": [["XADD", "s", "1-1", "a", "b"], ["XADD", "s", "2-1", "a", "b"],
                ["XGROUP", "CREATE", "s", "g", "0"], read_new("c"), ["XDEL", "s", "1-1", "2-1"]],
    "wrong": [["SET", "s", "x"]],
}

CALLS = """
XREADGROUP GROUP g c COUNT # STREAMS s >
XREADGROUP GROUP g c COUNT # STREAMS s 0
XREADGROUP GROUP g c STREAMS s #
XREADGROUP GROUP g c COUNT # NOACK STREAMS s #
XACK s g #
XACK s g # # #
XPENDING s g - + #
XPENDING s g # # 10
XPENDING s g (# (# #
XPENDING s g IDLE # - + # c
XCLAIM s g d # 1-1 2-1
XCLAIM s g d 0 # FORCE
XCLAIM s g d 0 1-1 IDLE #
XCLAIM s g d 0 1-1 TIME #
XCLAIM s g d 0 1-1 RETRYCOUNT #
XCLAIM s g d 0 1-1 2-1 IDLE # TIME # RETRYCOUNT #
XCLAIM s g d # 1-1 LASTID #
XAUTOCLAIM s g d # #
XAUTOCLAIM s g d 0 # COUNT #
XAUTOCLAIM s g d 0 0 COUNT #
XAUTOCLAIM s g d 0 (# COUNT # JUSTID
XGROUP CREATE s h # MKSTREAM ENTRIESREAD #
XGROUP SETID s g # ENTRIESREAD #
XGROUP SETID s g #
XINFO STREAM s FULL COUNT #
"""


def hostile(template):
    words = template.split()
    places = [n for n, w in enumerate(words) if "#" in w]
    pool = B if len(places) < 3 else B[::3] + ["2"]
    for values in itertools.product(pool, repeat=len(places)):
        call = list(words)
        for place, text in zip(places, values):
            call[place] = call[place].replace("#", text)
        yield call


@pytest.mark.any_threads
@pytest.mark.parametrize("state", sorted(STATES))
@pytest.mark.parametrize("template", CALLS.strip().split("\n"))
def test_hostile_numbers(server, client, ours_only, template, state):
    before = int(parse_info(client.call("INFO", "memory"))["used_memory"])
    for call in hostile(template):
        sent = [["DEL", "s"]] + STATES[state] + [call, ["XINFO", "STREAM", "s", "FULL"]]
        client.send_raw(b"".join(encode(*words) for words in sent))
        for _ in sent:
            raw, _ = client.read_reply()
            assert len(raw) < 1 << 20, call
    after = int(parse_info(client.call("INFO", "memory"))["used_memory"])
    assert after - before < GROWTH_LIMIT_BYTES
    assert server.alive()


@pytest.mark.any_threads
@pytest.mark.parametrize("count", [1, 8, 9, 10_000])
def test_many_ids_at_once(client, count):
    ids = ["%d-1" % i for i in range(1, count + 1)]
    for i in ids:
        client.send("XADD", "s", i, "f", "v")
    for i in ids:
        assert client.read() == i.encode()
    client.ok("XGROUP", "CREATE", "s", "g", "0")
    assert len(ids_of(client.call(*read_new("c")))) == count
    assert client.call("XCLAIM", "s", "g", "d", "0", *ids, "JUSTID") == [i.encode() for i in ids]
    gone = ids[::2]
    assert client.call("XDEL", "s", *gone) == len(gone)
    cursor, claimed, lost = client.call("XAUTOCLAIM", "s", "g", "e", "0", "0", "COUNT", str(count),
                                        "JUSTID")
    assert cursor == b"0-0"
    assert lost == [i.encode() for i in gone]
    assert claimed == [i.encode() for i in ids[1::2]]
    assert client.call("XACK", "s", "g", *ids) == count - len(gone)
    assert client.call("XPENDING", "s", "g") == [0, None, None, None]


@pytest.mark.any_threads
def test_a_huge_count_sets_nothing_aside(client, ours_only):
    add(client, "1-1", "2-1")
    client.ok("XGROUP", "CREATE", "s", "g", "0")
    client.call(*read_new("c"))
    client.call("XDEL", "s", "1-1")
    before = int(parse_info(client.call("INFO", "memory"))["used_memory_peak"])
    reply = client.call("XAUTOCLAIM", "s", "g", "d", "0", "0", "COUNT", str((2**63 - 1) // 16))
    assert reply == [b"0-0", [[b"2-1", [b"f", b"v"]]], [b"1-1"]]
    after = int(parse_info(client.call("INFO", "memory"))["used_memory_peak"])
    assert after - before < GROWTH_LIMIT_BYTES


@pytest.mark.any_threads
def test_deliveries_stop_counting(client, ours_only):
    add(client, "1-1")
    client.ok("XGROUP", "CREATE", "s", "g", "0")
    client.call(*read_new("c"))
    largest = 2**63 - 1
    client.call("XCLAIM", "s", "g", "c", "0", "1-1", "RETRYCOUNT", str(largest))
    client.call("XCLAIM", "s", "g", "c", "0", "1-1")
    client.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", "0")
    assert client.call("XPENDING", "s", "g", "-", "+", "9")[0][3] == largest


# ---- what a group is to the rest of the server ----


@pytest.mark.any_threads
def test_groups_go_with_the_stream(client):
    add(client, "1-1", "2-1")
    client.ok("XGROUP", "CREATE", "s", "g", "0")
    client.call(*read_new("c"))
    before = client.call("XPENDING", "s", "g")
    assert client.call("COPY", "s", "t") == 1
    assert client.call("DEBUG", "DIGEST-VALUE", "s") == client.call("DEBUG", "DIGEST-VALUE", "t")
    assert client.call("XACK", "s", "g", "1-1") == 1
    assert client.call("DEBUG", "DIGEST-VALUE", "s") != client.call("DEBUG", "DIGEST-VALUE", "t")
    client.call("XGROUP", "DELCONSUMER", "s", "g", "c")
    client.call("XGROUP", "DESTROY", "s", "g")
    assert client.call("XPENDING", "t", "g") == before
    client.ok("RENAME", "t", "u")
    assert client.call("XPENDING", "u", "g") == before
    client.call("SELECT", "1")
    client.call("SWAPDB", "0", "1")
    assert client.call("XPENDING", "u", "g") == before


@pytest.mark.any_threads
def test_memory_counts_groups(client, ours_only):
    ids = ["%d-1" % i for i in range(1, 1001)]
    for i in ids:
        client.send("XADD", "s", i, "f", "v")
    for i in ids:
        client.read()
    alone = client.call("MEMORY", "USAGE", "s", "SAMPLES", "0")
    client.ok("XGROUP", "CREATE", "s", "g", "0")
    client.call(*read_new("c"))
    with_group = client.call("MEMORY", "USAGE", "s", "SAMPLES", "0")
    # Each pending entry keeps an ID of 16 bytes, two numbers, and is found in two trees.
    assert with_group - alone > 1000 * 48
    client.call("XACK", "s", "g", *ids)
    client.call("XGROUP", "DESTROY", "s", "g")
    assert abs(client.call("MEMORY", "USAGE", "s", "SAMPLES", "0") - alone) < 1000


@pytest.mark.any_threads
def test_groups_do_not_concern_watch(connect):
    """As in Redis: WATCH is about the stream's entries, except where MKSTREAM makes it."""
    client, other = connect(), connect()

    def touches(*words):
        client.ok("WATCH", "s")
        other.call(*words)
        client.ok("MULTI")
        client.call("PING")
        return client.call("EXEC") is None

    assert touches("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    assert touches("XADD", "s", "1-1", "f", "v")
    for words in (["XGROUP", "CREATE", "s", "h", "$"], ["XGROUP", "SETID", "s", "g", "0"],
                  read_new("c"), ["XCLAIM", "s", "g", "d", "0", "1-1"], ["XACK", "s", "g", "1-1"],
                  ["XGROUP", "DELCONSUMER", "s", "g", "c"], ["XGROUP", "DESTROY", "s", "g"]):
        assert not touches(*words), words


# ---- waiting ----


def nobody_waits(client):
    def look():
        found = parse_info(client.call("INFO", "clients"))
        return found["blocked_clients"] == found["total_blocking_keys"] == "0"
    return eventually(look, "nobody waits")


@pytest.mark.parametrize("proto", [2, 3])
def test_a_writer_serves_the_waiter(client, connect, blocked, ours_only, proto):
    client.ok("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    client.ok("XGROUP", "CREATE", "t", "g", "$", "MKSTREAM")
    waiter = blocked(*read_new("c", "BLOCK", "0", keys=("t", "s")), conn=connect(proto))
    add(client, "1-1")
    expected = [b"s", [[b"1-1", [b"f", b"v"]]]]
    reply = waiter.read()
    assert (list(reply[0]) if proto == 3 else reply[0]) == expected and len(reply) == 1
    assert waiter.call("PING") == b"PONG"
    assert client.call("XPENDING", "s", "g")[3] == [[b"c", b"1"]]
    assert nobody_waits(client)


def test_waiters_get_what_the_ones_before_left(client, blocked, ours_only):
    client.ok("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    client.ok("XGROUP", "CREATE", "s", "h", "$")
    first = blocked(*read_new("a", "COUNT", "1", "BLOCK", "0"))
    second = blocked(*read_new("b", "BLOCK", "0", "NOACK"))
    third = blocked(*read_new("c", "BLOCK", "0"))
    other = blocked("XREADGROUP", "GROUP", "h", "a", "BLOCK", "0", "STREAMS", "s", ">")
    add(client, "1-1")
    assert ids_of(first.read()) == [b"1-1"]
    assert ids_of(other.read()) == [b"1-1"]
    add(client, "2-1")
    assert ids_of(second.read()) == [b"2-1"]
    add(client, "3-1")
    assert ids_of(third.read()) == [b"3-1"]
    assert client.call("XPENDING", "s", "g")[3] == [[b"a", b"1"], [b"c", b"1"]]
    assert nobody_waits(client)


@pytest.mark.parametrize("end, error", [
    (["XGROUP", "DESTROY", "s", "g"], NO_GROUP),
    (["DEL", "s"], NO_GROUP),
    (["UNLINK", "s"], NO_GROUP),
    (["FLUSHALL"], NO_GROUP),
    (["FLUSHDB", "ASYNC"], NO_GROUP),
    (["RENAME", "s", "elsewhere"], NO_GROUP),
    (["PEXPIRE", "s", "1"], NO_GROUP),
    (["RENAME", "plain", "s"], NO_GROUP),
    (["SWAPDB", "0", "1"], NO_GROUP),
    (["SET", "s", "x"], b"WRONGTYPE Operation against a key holding the wrong kind of value"),
    (["RENAME", "str", "s"], b"WRONGTYPE Operation against a key holding the wrong kind of value"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_a_waiter_is_told_that_the_group_is_gone(client, blocked, ours_only, end, error):
    client.ok("SET", "str", "x")
    add(client, "1-1", key="plain")
    client.ok("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    waiter = blocked(*read_new("c", "BLOCK", "0"))
    client.call(*end)
    reply = waiter.read()
    assert isinstance(reply, Error) and reply == error
    assert nobody_waits(client)


def test_what_does_not_end_the_wait(client, blocked, ours_only):
    add(client, "1-1")
    client.ok("XGROUP", "CREATE", "s", "g", "$")
    client.ok("XGROUP", "CREATE", "s", "h", "$")
    waiter = blocked(*read_new("c", "BLOCK", "0"))
    client.call("XGROUP", "DESTROY", "s", "h")
    client.call("XDEL", "s", "1-1")
    client.call("XTRIM", "s", "MAXLEN", "0")
    client.call("XGROUP", "DELCONSUMER", "s", "g", "c")
    client.ok("XSETID", "s", "5-5")
    client.call("EXPIRE", "s", "1000")
    assert client.call("CLIENT", "UNBLOCK", str(waiter.client_id)) == 1
    assert waiter.read() is None
    waiter = blocked(*read_new("c", "BLOCK", "0"), conn=waiter)
    assert client.call("CLIENT", "UNBLOCK", str(waiter.client_id), "ERROR") == 1
    assert waiter.read() == b"UNBLOCKED client unblocked via CLIENT UNBLOCK"
    assert nobody_waits(client)


def test_who_does_not_wait(client, ours_only):
    client.ok("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    assert client.call("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", "0") == \
        [[b"s", []]]
    assert client.call(*read_new("c", "BLOCK", "1")) is None
    assert client.error("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", "none", ">",
                        ">").startswith(b"NOGROUP")
    client.ok("MULTI")
    client.call(*read_new("c", "BLOCK", "0"))
    assert client.call("EXEC") == [None]


def test_each_entry_goes_to_one_consumer(client, connect, ours_only):
    """Six consumers wait on several threads while two producers add: what they got is each entry
    once, in order for each, and pending at who got it."""
    entries, readers = 400, 6
    client.ok("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    conns = [connect() for _ in range(readers + 2)]
    got = [[] for _ in range(readers)]

    def consume(conn, mine, name):
        while True:
            reply = conn.call(*read_new(name, "COUNT", "3", "BLOCK", "0"))
            if isinstance(reply, Error):
                assert reply == NO_GROUP
                return
            mine.extend(ids_of(reply))

    def produce(conn):
        for _ in range(entries // 2):
            conn.call("XADD", "s", "*", "f", "v")

    threads = [threading.Thread(target=consume, args=(conns[i], got[i], "c%d" % i))
               for i in range(readers)]
    threads += [threading.Thread(target=produce, args=(conn,)) for conn in conns[readers:]]
    for thread in threads:
        thread.start()
    for thread in threads[readers:]:
        thread.join()
    eventually(lambda: client.call("XINFO", "GROUPS", "s")[0][11] == 0, "all is delivered")
    owners = {row[0]: row[1] for row in client.call("XPENDING", "s", "g", "-", "+", "1000")}
    added = ids_of(client.call("XRANGE", "s", "-", "+"))
    client.call("XGROUP", "DESTROY", "s", "g")
    for thread in threads[:readers]:
        thread.join()
    assert sorted(owners) == sorted(added) and len(added) == entries
    for i, mine in enumerate(got):
        order = [tuple(map(int, e.split(b"-"))) for e in mine]
        assert order == sorted(order)
        assert all(owners[e] == b"c%d" % i for e in mine)
    assert sorted(itertools.chain(*got)) == sorted(added)
    assert nobody_waits(client)
