"""Commands that wait for keys: who is served, when, with what, and how waiting ends otherwise."""

import re
import time

import pytest

from lib.bounds import eventually
from lib.resp import Double, Error
from lib.seeds import generator
from lib.server import parse_info

pytestmark = pytest.mark.one_thread("who waits and who serves are on the same thread")

UNBLOCKED = b"UNBLOCKED client unblocked via CLIENT UNBLOCK"


@pytest.fixture
def info(client):
    return lambda section: parse_info(client.call("INFO", section))


@pytest.fixture
def blocked(client, connect):
    """blocked("BLPOP", "k", "0"): a client that waits already when this returns."""

    def make(*args, conn=None, before=b""):
        conn = conn or connect()
        number = conn.call("CLIENT", "ID")
        conn.client_id = number
        conn.send(*args)
        eventually(lambda: is_blocked(client, number), "the client waits")
        return conn

    return make


def is_blocked(client, number):
    line = client.call("CLIENT", "LIST", "ID", str(number))
    return re.search(rb" flags=\w*b", line) is not None


def nobody_waits(info):
    found = info("clients")
    return (found["blocked_clients"], found["total_blocking_keys"],
            found["clients_in_timeout_table"], found["total_blocking_keys_on_nokey"]) == \
        ("0", "0", "0", "0")


# ---- what is there is taken at once ----


def test_elements_that_are_there(client):
    client.call("RPUSH", "l", "a", "b", "c", "d", "e", "f")
    assert client.call("BLPOP", "none", "l", "0") == [b"l", b"a"]
    assert client.call("BRPOP", "l", "0") == [b"l", b"f"]
    assert client.call("BLMOVE", "l", "to", "LEFT", "RIGHT", "0") == b"b"
    assert client.call("BRPOPLPUSH", "l", "to", "0") == b"e"
    assert client.call("LRANGE", "to", "0", "-1") == [b"e", b"b"]
    assert client.call("BLMPOP", "0", "2", "none", "l", "RIGHT", "COUNT", "7") == \
        [b"l", [b"d", b"c"]]
    assert client.call("EXISTS", "l") == 0


@pytest.mark.parametrize("proto", [2, 3])
def test_members_that_are_there(connect, proto):
    client = connect(proto)

    def score(text):
        return Double(text) if proto == 3 else text.encode()

    client.call("ZADD", "z", "1", "a", "2", "b", "3", "c", "4", "d", "5.5", "e")
    assert client.call("BZPOPMIN", "none", "z", "0") == [b"z", b"a", score("1")]
    assert client.call("BZPOPMAX", "z", "0") == [b"z", b"e", score("5.5")]
    assert client.call("BZMPOP", "0", "2", "none", "z", "MAX", "COUNT", "2") == \
        [b"z", [[b"d", score("4")], [b"c", score("3")]]]
    assert client.call("BZMPOP", "0", "1", "z", "MIN") == [b"z", [[b"b", score("2")]]]
    assert client.call("EXISTS", "z") == 0


# ---- being served ----

SERVED = [
    (("BLPOP", "k", "0"), ("RPUSH", "k", "a"), 1, [b"k", b"a"]),
    (("BRPOP", "x", "k", "y", "0"), ("RPUSH", "k", "a"), 1, [b"k", b"a"]),
    (("BLMPOP", "0", "2", "x", "k", "LEFT", "COUNT", "2"), ("RPUSH", "k", "a", "b", "c"), 3,
     [b"k", [b"a", b"b"]]),
    (("BLMOVE", "k", "t", "LEFT", "LEFT", "0"), ("LPUSH", "k", "a"), 1, b"a"),
    (("BRPOPLPUSH", "k", "t", "0"), ("LPUSH", "k", "a"), 1, b"a"),
    (("BZPOPMIN", "x", "k", "0"), ("ZADD", "k", "1", "a", "2", "b"), 2, [b"k", b"a", b"1"]),
    (("BZPOPMAX", "k", "0"), ("ZADD", "k", "1", "a", "2", "b"), 2, [b"k", b"b", b"2"]),
    (("BZMPOP", "0", "1", "k", "MIN", "COUNT", "9"), ("ZADD", "k", "1", "a"), 1,
     [b"k", [[b"a", b"1"]]]),
]


@pytest.mark.parametrize("waiting, writing, reply, served", SERVED,
                         ids=[case[0][0] for case in SERVED])
def test_a_writer_serves_the_waiter(client, blocked, info, waiting, writing, reply, served):
    waiter = blocked(*waiting)
    assert client.call(*writing) == reply
    assert waiter.read() == served
    assert waiter.call("PING") == b"PONG"
    assert nobody_waits(info)


MAKERS = [
    [("SET", "other", "v"), ("RPUSH", "from", "a"), ("RENAME", "from", "k")],
    [("RPUSH", "from", "a"), ("COPY", "from", "k")],
    [("RPUSH", "from", "a"), ("RENAMENX", "from", "k")],
    [("RPUSH", "from", "a"), ("LMOVE", "from", "k", "LEFT", "LEFT")],
    [("SELECT", "1"), ("RPUSH", "k", "a"), ("MOVE", "k", "0")],
    [("SELECT", "1"), ("RPUSH", "k", "a"), ("SWAPDB", "0", "1")],
    [("SELECT", "1"), ("RPUSH", "from", "a"), ("COPY", "from", "k", "DB", "0")],
    [("SET", "k", "v"), ("DEL", "k"), ("RPUSH", "k", "a")],
]


@pytest.mark.parametrize("commands", MAKERS, ids=[case[-1][0] + case[0][0] for case in MAKERS])
def test_whatever_makes_the_key_serves(client, blocked, info, commands):
    waiter = blocked("BLPOP", "k", "0")
    for command in commands:
        assert not isinstance(client.call(*command), Error)
    assert waiter.read() == [b"k", b"a"]
    client.call("SELECT", "0")
    assert client.call("EXISTS", "k") == 0
    assert nobody_waits(info)


def test_a_sorted_set_that_is_stored_serves(client, blocked):
    waiter = blocked("BZPOPMIN", "k", "0")
    client.call("ZADD", "z", "1", "a")
    assert client.call("ZUNIONSTORE", "k", "1", "z") == 1
    assert waiter.read() == [b"k", b"a", b"1"]


def test_a_value_stored_over_another_serves(client, blocked, ours_only):
    """Redis forgets this one."""
    waiter = blocked("BZPOPMIN", "k", "0")
    client.ok("SET", "k", "v")
    client.call("ZADD", "z", "1", "a")
    assert client.call("ZUNIONSTORE", "k", "1", "z") == 1
    assert waiter.read() == [b"k", b"a", b"1"]


def test_waiters_of_a_key_are_served_as_they_came(client, blocked):
    waiters = [blocked("BLPOP", "k", "0") for _ in range(9)]
    assert client.call("RPUSH", "k", *map(str, range(5))) == 5
    for number in range(5):
        assert waiters[number].read() == [b"k", b"%d" % number]
    assert client.call("EXISTS", "k") == 0
    assert all(waiter.nothing_comes(0.02) for waiter in waiters[5:])
    for number in range(5, 9):
        client.call("RPUSH", "k", str(number))
        assert waiters[number].read() == [b"k", b"%d" % number]


def test_a_writer_sees_what_the_waiters_left(client, blocked):
    """Between a push and the next command of the pusher stand all who waited."""
    waiters = [blocked("BLPOP", "k", "0") for _ in range(2)]
    assert client.pipeline([["RPUSH", "k", "a", "b", "c"], ["LLEN", "k"], ["LPOP", "k"],
                            ["LLEN", "k"]]) == [3, 1, b"c", 0]
    assert [waiter.read() for waiter in waiters] == [[b"k", b"a"], [b"k", b"b"]]


def test_a_waiter_is_served_once(client, blocked, info):
    """Ready by three keys, and twice by one of them."""
    waiter = blocked("BLPOP", "a", "b", "a", "c", "0")
    assert info("clients")["total_blocking_keys"] == "3"
    client.send_raw(b"RPUSH c 1\r\nRPUSH b 2\r\nRPUSH a 3 4\r\n")
    assert [client.read() for _ in range(3)] == [1, 1, 2]
    assert waiter.read() == [b"c", b"1"]
    assert waiter.nothing_comes(0.05)
    assert client.call("LLEN", "a") == 2 and client.call("LLEN", "b") == 1
    assert nobody_waits(info)


def test_databases_keep_their_waiters_apart(client, connect, blocked):
    there = connect()
    there.ok("SELECT", "1")
    here = blocked("BLPOP", "k", "0")
    blocked("BLPOP", "k", "0", conn=there)
    client.call("RPUSH", "k", "zero")
    assert here.read() == [b"k", b"zero"]
    assert there.nothing_comes(0.02)
    client.ok("SELECT", "1")
    client.call("RPUSH", "k", "one")
    assert there.read() == [b"k", b"one"]


def test_long_arguments_are_kept(client, blocked):
    """Names beyond what the parser keeps in its buffer, and a value that is sent by reference."""
    name, value = b"n" * 100000, b"v" * 200000
    waiter = blocked("BLPOP", "x", name, "0")
    client.call("RPUSH", name, value)
    assert waiter.read() == [name, value]
    waiter = blocked("BLMOVE", "a", name, "LEFT", "LEFT", "0")
    client.call("RPUSH", "a", value)
    assert waiter.read() == value
    assert client.call("LRANGE", name, "0", "-1") == [value]


def test_replies_speak_the_waiters_protocol(client, connect, blocked):
    three = connect(3)
    blocked("BZPOPMIN", "k", "0", conn=three)
    client.call("ZADD", "k", "1.5", "m")
    assert three.read() == [b"k", b"m", Double("1.5")]
    assert three.call("BLPOP", "k", "0.05") is None


# ---- types ----


def test_a_wrong_type_at_once(client):
    client.ok("SET", "s", "v")
    for command in (("BLPOP", "x", "s", "0"), ("BLMOVE", "s", "x", "LEFT", "LEFT", "0"),
                    ("BRPOPLPUSH", "s", "x", "0"), ("BLMPOP", "0", "1", "s", "LEFT"),
                    ("BZPOPMIN", "x", "s", "0"), ("BZMPOP", "0", "1", "s", "MIN")):
        assert client.error(*command).startswith(b"WRONGTYPE")


TWO_KEYS = {
    "BLPOP": (("BLPOP", "a", "b", "0"), ("RPUSH", "b", "e")),
    "BRPOP": (("BRPOP", "a", "b", "0"), ("RPUSH", "b", "e")),
    "BLMPOP": (("BLMPOP", "0", "2", "a", "b", "LEFT"), ("RPUSH", "b", "e")),
    "BZPOPMIN": (("BZPOPMIN", "a", "b", "0"), ("ZADD", "b", "1", "m")),
    "BZPOPMAX": (("BZPOPMAX", "a", "b", "0"), ("ZADD", "b", "1", "m")),
    "BZMPOP": (("BZMPOP", "0", "2", "a", "b", "MAX"), ("ZADD", "b", "1", "m")),
    "XREAD": (("XREAD", "BLOCK", "0", "STREAMS", "a", "b", "$", "$"), ("XADD", "b", "1-1", "f", "v")),
    "XREAD, the other way": (("XREAD", "BLOCK", "0", "STREAMS", "b", "a", "$", "$"), ("XADD", "b", "1-1", "f", "v")),
}


@pytest.mark.parametrize("wait, write", TWO_KEYS.values(), ids=list(TWO_KEYS))
def test_a_waiter_is_told_of_a_wrong_type(client, blocked, info, ours_only, wait, write):
    """When a key of its is ready, its command runs again from the first one, as in Redis 7.2 (7.0 served it the
    key that was ready): what was ready is left for others."""
    waiter = blocked(*wait)
    client.ok("SET", "a", "v")
    assert waiter.nothing_comes(0.02)
    client.call(*write)
    assert waiter.read() == b"WRONGTYPE Operation against a key holding the wrong kind of value"
    assert client.call("EXISTS", "b") == 1
    assert nobody_waits(info)


@pytest.mark.parametrize("other", [("SET", "b", "v"), ("ZADD", "b", "1", "m")], ids=["string", "zset"])
def test_a_waiter_does_not_look_behind_the_key_that_serves(client, blocked, other):
    waiter = blocked("BLPOP", "a", "b", "0")
    client.call(*other)
    assert waiter.nothing_comes(0.02)
    client.call("RPUSH", "a", "e")
    assert waiter.read() == [b"a", b"e"]


def test_waiters_for_two_types_at_one_key(client, blocked):
    for_list, for_zset = blocked("BLPOP", "k", "0"), blocked("BZPOPMIN", "k", "0")
    client.call("ZADD", "k", "1", "m")
    assert for_zset.read() == [b"k", b"m", b"1"]
    assert for_list.nothing_comes(0.02)
    client.call("RPUSH", "k", "e")
    assert for_list.read() == [b"k", b"e"]


def test_a_target_of_a_wrong_type_ends_the_wait_and_leaves_the_element(client, blocked):
    client.ok("SET", "t", "v")
    waiter = blocked("BLMOVE", "k", "t", "LEFT", "LEFT", "0")
    behind = blocked("BLPOP", "k", "0")
    client.call("RPUSH", "k", "a")
    assert waiter.read().startswith(b"WRONGTYPE")
    assert behind.read() == [b"k", b"a"]


# ---- chains ----


def test_a_chain_of_moves(client, blocked):
    links = [blocked("BLMOVE", "k%d" % n, "k%d" % (n + 1), "LEFT", "RIGHT", "0")
             for n in range(20)]
    last = blocked("BLPOP", "k20", "0")
    assert client.call("RPUSH", "k0", "e") == 1
    assert [link.read() for link in links] == [b"e"] * 20
    assert last.read() == [b"k20", b"e"]
    assert client.call("DBSIZE") == 0


def test_a_circle_of_moves(client, blocked, info):
    one = blocked("BLMOVE", "a", "b", "LEFT", "RIGHT", "0")
    two = blocked("BLMOVE", "b", "a", "LEFT", "RIGHT", "0")
    client.call("RPUSH", "a", "e")
    assert (one.read(), two.read()) == (b"e", b"e")
    assert client.call("LRANGE", "a", "0", "-1") == [b"e"]
    assert nobody_waits(info)


def test_a_move_to_itself(client, blocked, info):
    waiters = [blocked("BLMOVE", "a", "a", "LEFT", "RIGHT", "0") for _ in range(3)]
    client.call("RPUSH", "a", "1", "2")
    assert [waiter.read() for waiter in waiters] == [b"1", b"2", b"1"]
    assert client.call("LRANGE", "a", "0", "-1") == [b"2", b"1"]
    assert nobody_waits(info)


def test_a_move_serves_before_a_later_element(client, blocked):
    mover = blocked("BLMOVE", "a", "b", "LEFT", "RIGHT", "0")
    waiters = [blocked("BLPOP", "b", "0") for _ in range(2)]
    client.call("RPUSH", "a", "1", "2")
    assert mover.read() == b"1"
    assert waiters[0].read() == [b"b", b"1"]
    assert waiters[1].nothing_comes(0.02)
    assert client.call("LRANGE", "a", "0", "-1") == [b"2"]


# ---- time-outs ----

TIMED_OUT = [("BLPOP", "k", "{}"), ("BRPOP", "k", "x", "{}"), ("BLMPOP", "{}", "1", "k", "LEFT"),
             ("BLMOVE", "k", "x", "LEFT", "LEFT", "{}"), ("BRPOPLPUSH", "k", "x", "{}"),
             ("BZPOPMIN", "k", "{}"), ("BZPOPMAX", "k", "{}"), ("BZMPOP", "{}", "1", "k", "MIN")]


@pytest.mark.parametrize("proto", [2, 3])
@pytest.mark.parametrize("command", TIMED_OUT, ids=[c[0] for c in TIMED_OUT])
def test_a_time_out(connect, command, proto):
    client = connect(proto)
    start = time.monotonic()
    raw = client.call_raw(*(word.format("0.05") for word in command))
    assert time.monotonic() - start >= 0.049
    assert raw == (b"*-1\r\n" if proto == 2 else b"_\r\n")
    assert client.call("PING") == b"PONG"


def test_time_outs_come_in_their_order(client, connect, blocked, info):
    bounds = [0.4, 0.1, 0.3, 0.2, 0.1]
    waiters = [connect() for _ in bounds]
    start = time.monotonic()
    for bound, waiter in zip(bounds, waiters):
        waiter.send("BLPOP", "k", str(bound))  # the first to end may do so before the last has begun
    last = blocked("BLPOP", "k", "0")
    for bound, waiter in sorted(zip(bounds, waiters), key=lambda pair: pair[0]):
        assert waiter.read() is None
    assert info("clients")["blocked_clients"] == "1"
    client.call("RPUSH", "k", "a")
    assert last.read() == [b"k", b"a"]
    assert time.monotonic() - start >= 0.399
    assert nobody_waits(info)


def test_many_time_outs(client, connect, info):
    """Their order in the heap, with some that end before their time.  Nobody ends too early."""
    random = generator(1, "time-outs")
    waiters = []
    for _ in range(150):
        waiter, bound = connect(), random.randrange(20, 400) / 1000
        waiters.append((time.monotonic() + bound, waiter))
        waiter.send("BLPOP", "k", str(bound))
    served = client.call("RPUSH", "k", *map(str, range(40)))
    assert served > 0
    waiters.sort(key=lambda pair: pair[0])
    replies = []
    for due, waiter in waiters:
        replies.append(waiter.read())
        assert replies[-1] is not None or time.monotonic() >= due
    left = client.call("LRANGE", "k", "0", "-1")
    assert sum(reply is not None for reply in replies) + len(left) == 40
    client.call("DEL", "k")
    assert nobody_waits(info)


def test_a_tiny_time_out_is_a_millisecond_at_least(client):
    assert client.call("BLPOP", "k", "0.0000001") is None


BAD_TIMEOUTS = [("x", b"ERR timeout is not a float or out of range"),
                ("", b"ERR timeout is not a float or out of range"),
                ("nan", b"ERR timeout is not a float or out of range"),
                ("-1", b"ERR timeout is negative"),
                ("-1e300", b"ERR timeout is negative"),
                ("-inf", b"ERR timeout is negative"),
                ("1e300", b"ERR timeout is out of range"),
                ("inf", b"ERR timeout is out of range"),
                ("9223372036854775", b"ERR timeout is out of range")]


@pytest.mark.parametrize("text, error", BAD_TIMEOUTS, ids=[case[0] or "empty" for case in BAD_TIMEOUTS])
def test_bad_time_outs(client, ours_only, text, error):
    for command in TIMED_OUT:
        assert client.error(*(word.format(text) for word in command)) == error


def test_a_time_out_as_long_as_can_be(client, blocked):
    waiter = blocked("BLPOP", "k", "9000000000000000")
    client.call("RPUSH", "k", "a")
    assert waiter.read() == [b"k", b"a"]


# ---- streams: what they do with waiting; the rest is in their own tests ----


def test_a_group_reader_with_a_new_consumer_waits(client, blocked):
    client.ok("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    readers = [blocked("XREADGROUP", "GROUP", "g", "c%d" % n, "BLOCK", "0", "STREAMS", "s", ">")
               for n in range(3)]
    assert len(client.call("XINFO", "CONSUMERS", "s", "g")) == 3
    for number, reader in enumerate(readers):
        number = b"%d-1" % (number + 1)
        assert client.call("XADD", "s", number, "f", "v") == number
        assert reader.read() == [[b"s", [[number, [b"f", b"v"]]]]]


def test_all_readers_of_a_stream_are_served(client, blocked, info):
    client.call("XADD", "s", "1-1", "f", "v")
    readers = [blocked("XREAD", "BLOCK", "0", "STREAMS", "x", "s", "0", "$") for _ in range(5)]
    behind = blocked("XREAD", "BLOCK", "0", "STREAMS", "s", "5-0")
    client.call("XADD", "s", "2-1", "f", "v")
    assert [r.read() for r in readers] == [[[b"s", [[b"2-1", [b"f", b"v"]]]]]] * 5
    assert behind.nothing_comes(0.02)
    client.call("XADD", "s", "6-1", "f", "v")
    assert behind.read() == [[b"s", [[b"6-1", [b"f", b"v"]]]]]
    assert nobody_waits(info)


GONE = {
    "deleted": ([("DEL", "s")], b"NOGROUP"),
    "unlinked": ([("UNLINK", "s")], b"NOGROUP"),
    "flushed": ([("FLUSHDB",)], b"NOGROUP"),
    "expired": ([("PEXPIRE", "s", "30")], b"NOGROUP"),
    "renamed": ([("RENAME", "s", "t")], b"NOGROUP"),
    "swapped": ([("SWAPDB", "0", "1")], b"NOGROUP"),
    "overwritten": ([("SET", "s", "v")], b"WRONGTYPE"),
    "without its group": ([("XGROUP", "DESTROY", "s", "g")], b"NOGROUP"),
}


@pytest.mark.parametrize("commands, error", GONE.values(), ids=list(GONE))
def test_a_group_reader_is_told_that_the_stream_is_gone(client, blocked, info, ours_only, commands,
                                                        error):
    """Also by expiry, which no command makes."""
    client.ok("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    plain = blocked("XREAD", "BLOCK", "0", "STREAMS", "s", "$")
    reader = blocked("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">")
    assert info("clients")["total_blocking_keys_on_nokey"] == "1"
    for command in commands:
        assert not isinstance(client.call(*command), Error)
    assert reader.read().startswith(error)
    assert plain.nothing_comes(0.02)
    client.call("DEL", "s")
    client.call("XADD", "s", "9-1", "f", "v")
    assert plain.read() == [[b"s", [[b"9-1", [b"f", b"v"]]]]]
    assert nobody_waits(info)


def test_a_group_reader_waits_on_when_another_group_is_destroyed(client, blocked, info, ours_only):
    """Also where the stream's last entry, which his group has not had, is deleted (7.0 gave him nothing, then)."""
    client.call("XADD", "s", "1-1", "f", "v")
    for group in "gh":
        client.ok("XGROUP", "CREATE", "s", group, "0")
    client.call("XDEL", "s", "1-1")
    reader = blocked("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">")
    assert client.call("XGROUP", "DESTROY", "s", "h") == 1
    assert reader.nothing_comes(0.02)
    client.call("XADD", "s", "2-1", "f", "v")
    assert reader.read() == [[b"s", [[b"2-1", [b"f", b"v"]]]]]
    assert nobody_waits(info)


def test_reads_of_streams_without_block_do_not_hold_up_a_pipeline(client):
    client.call("XADD", "s", "1-1", "f", "v")
    commands = [["XREAD", "STREAMS", "s", "0"], ["XREAD", "STREAMS", "s", "5"],
                ["XREAD", "BLOCK", "1", "STREAMS", "s", "5"], ["PING"]] * 50
    entry = [[b"s", [[b"1-1", [b"f", b"v"]]]]]
    assert client.pipeline(commands) == [entry, None, None, b"PONG"] * 50


# ---- pipelines ----


def test_a_pipeline_waits_behind_the_call(client, connect):
    waiter = connect()
    waiter.send_raw(b"PING\r\nBLPOP k 0\r\nSET x 1\r\nGET x\r\nBLPOP k 0\r\nGET x\r\n")
    assert waiter.read() == b"PONG"
    assert waiter.nothing_comes(0.05)
    assert client.call("GET", "x") is None
    client.call("RPUSH", "k", "a")
    assert [waiter.read() for _ in range(3)] == [[b"k", b"a"], b"OK", b"1"]
    assert waiter.nothing_comes(0.05)
    waiter.send("SET", "x", "2")  # arrives while it is blocked
    assert waiter.nothing_comes(0.02)
    assert client.pipeline([["RPUSH", "k", "b"], ["GET", "x"]])[0] == 1
    assert [waiter.read() for _ in range(3)] == [[b"k", b"b"], b"1", b"OK"]


def test_a_client_cannot_serve_itself(client, connect):
    both = connect()
    both.send_raw(b"BLPOP k 0\r\nRPUSH k a\r\n")
    assert both.nothing_comes(0.05)
    client.call("RPUSH", "k", "b")
    assert [both.read(), both.read()] == [[b"k", b"b"], 1]


def test_many_waits_in_one_pipeline(client, connect):
    waiter = connect()
    waiter.send_raw(b"BLPOP k 0\r\n" * 300)
    for first in range(0, 300, 50):
        client.call("RPUSH", "k", *map(str, range(first, first + 50)))
    assert [waiter.read() for _ in range(300)] == [[b"k", b"%d" % n] for n in range(300)]


def test_input_of_a_blocked_client_is_bounded(make_server, connect):
    server = make_server({"client-query-buffer-limit": "1mb"})
    greedy, control = connect(to=server), connect(to=server)
    greedy.send("BLPOP", "k", "0")
    eventually(lambda: parse_info(control.call("INFO"))["blocked_clients"] == "1", "it waits")
    try:
        for _ in range(40):
            greedy.send_raw(b"SET x " + b"v" * 60000 + b"\r\n")
    except OSError:
        pass
    eventually(lambda: parse_info(control.call("INFO"))["blocked_clients"] == "0",
               "the greedy client is closed")
    control.call("RPUSH", "k", "a")
    assert control.call("LLEN", "k") == 1


def test_replies_that_are_not_wanted(client, blocked, connect):
    silent = connect()
    number = silent.call("CLIENT", "ID")
    silent.send_raw(b"CLIENT REPLY SKIP\r\nBLPOP k 0\r\nPING\r\n")
    eventually(lambda: is_blocked(client, number), "the client waits")
    client.call("RPUSH", "k", "a")
    assert silent.read() == b"PONG"
    silent.send_raw(b"CLIENT REPLY OFF\r\nBLPOP k 0\r\nCLIENT REPLY ON\r\n")
    eventually(lambda: is_blocked(client, number), "the client waits")
    client.call("RPUSH", "k", "a")
    assert silent.read() == b"OK"
    assert client.call("EXISTS", "k") == 0


# ---- leaving ----


def test_unblock(client, blocked, info):
    first, second, third = (blocked("BLPOP", "k", "60") for _ in range(3))
    assert client.call("CLIENT", "UNBLOCK", str(first.client_id)) == 1
    assert first.read() is None
    assert client.call("CLIENT", "UNBLOCK", str(second.client_id), "ERROR") == 1
    error = second.read()
    assert isinstance(error, Error) and error == UNBLOCKED
    assert client.call("CLIENT", "UNBLOCK", str(third.client_id), "TIMEOUT") == 1
    assert third.read() is None
    assert client.call("CLIENT", "UNBLOCK", str(third.client_id)) == 0
    assert client.call("CLIENT", "UNBLOCK", "123456789") == 0
    assert [c.call("PING") for c in (first, second, third)] == [b"PONG"] * 3
    assert client.call("RPUSH", "k", "a") == 1 and client.call("LLEN", "k") == 1
    assert nobody_waits(info)


def test_who_is_killed_gets_nothing(client, blocked, info):
    killed, living = blocked("BLPOP", "k", "0"), blocked("BLPOP", "k", "0")
    client.send_raw(b"CLIENT KILL ID %d\r\nRPUSH k a\r\n" % killed.client_id)
    assert [client.read(), client.read()] == [1, 1]
    assert living.read() == [b"k", b"a"]
    assert killed.is_closed()
    eventually(lambda: nobody_waits(info), "nobody waits")


def test_who_has_left_gets_nothing(client, blocked, info):
    leaving, reset, living = (blocked("BLPOP", "k", "x", "0") for _ in range(3))
    leaving.close()
    reset.reset_hard()
    eventually(lambda: info("clients")["blocked_clients"] == "1", "one waits")
    client.call("RPUSH", "k", "a")
    assert living.read() == [b"k", b"a"]
    assert nobody_waits(info)


def test_a_peer_that_leaves_behind_a_pipeline(client, connect, info):
    leaving = connect()
    leaving.send_raw(b"BLPOP k 0\r\nPING\r\n")
    eventually(lambda: info("clients")["blocked_clients"] == "1", "one waits")
    leaving.close()
    eventually(lambda: nobody_waits(info), "nobody waits")
    client.call("RPUSH", "k", "a")
    assert client.call("LLEN", "k") == 1


def test_a_request_and_the_end_together(client, connect, info):
    """Nothing is sent to such a client, and no event may come for what came with the request."""
    for _ in range(20):
        leaving = connect()
        leaving.send("BLPOP", "k", "0")
        leaving.reset_hard()
    eventually(lambda: nobody_waits(info) and info("clients")["connected_clients"] == "1",
               "they are gone")


def test_the_server_stops_with_clients_that_wait(make_server, connect):
    server = make_server()
    waiters = [connect(to=server) for _ in range(8)]
    for number, waiter in enumerate(waiters):
        waiter.send("BLPOP", "a", "b", "c", str(number % 2 * 60))
    control = connect(to=server)
    eventually(lambda: parse_info(control.call("INFO"))["blocked_clients"] == "8",
               "all wait")
    server.stop()
    assert all(waiter.is_closed() for waiter in waiters)


# ---- what is told of it ----


def test_info_and_client_list(client, blocked, info):
    waiter = blocked("BLPOP", "a", "b", "a", "60")
    blocked("BLPOP", "a", "0")
    found = info("clients")
    assert found["blocked_clients"] == "2"
    assert found["total_blocking_keys"] == "2"
    assert found["clients_in_timeout_table"] == "1"
    assert found["total_blocking_keys_on_nokey"] == "0"
    line = client.call("CLIENT", "LIST", "ID", str(waiter.client_id))
    assert b"flags=b" in line and b"cmd=blpop" in line


def test_statistics_leave_out_the_waiting(client, blocked, info):
    client.ok("CONFIG", "RESETSTAT")
    waiter = blocked("BLPOP", "k", "0")
    assert "cmdstat_blpop" not in info("commandstats")
    time.sleep(0.3)
    client.call("RPUSH", "k", "a")
    assert waiter.read() == [b"k", b"a"]
    stats = info("commandstats")["cmdstat_blpop"]
    fields = dict(pair.split("=") for pair in stats.split(",")) if isinstance(stats, str) else stats
    assert fields["calls"] == "1" and fields["failed_calls"] == "0"
    assert int(fields["usec"]) < 200000
    waiter.call("BLPOP", "k", "0.01")
    stats = info("commandstats")["cmdstat_blpop"]
    fields = dict(pair.split("=") for pair in stats.split(",")) if isinstance(stats, str) else stats
    assert fields["calls"] == "2"


def test_monitor_sees_a_waiting_command_once(client, connect, blocked):
    monitor = connect()
    monitor.ok("MONITOR")
    waiter = blocked("BLPOP", "k", "0")
    client.call("RPUSH", "k", "a")
    waiter.read()
    client.call("ECHO", "end")
    lines = []
    while not lines or b'"ECHO"' not in lines[-1]:
        lines.append(monitor.read())
    assert sum(b'"BLPOP"' in line for line in lines) == 1


def test_a_pause_of_writes_lets_waits_time_out(client, connect):
    waiter = connect()
    number = str(waiter.call("CLIENT", "ID"))
    waiter.send("BLPOP", "k", "0.2")
    eventually(lambda: b" cmd=blpop " in client.call("CLIENT", "LIST", "ID", number), "it waits, or has waited")
    client.ok("CLIENT", "PAUSE", "60000", "WRITE")
    assert waiter.read() is None
    client.ok("CLIENT", "UNPAUSE")


# ---- transactions ----


def transaction(client, *commands):
    return client.pipeline([["MULTI"], *commands, ["EXEC"]])[-1]


def test_a_transaction_is_seen_as_a_whole(client, blocked):
    waiters = [blocked("BLPOP", "k", "0") for _ in range(2)]
    assert transaction(client, ["RPUSH", "k", "a"], ["LLEN", "k"], ["LPOP", "k"],
                       ["RPUSH", "k", "b", "c"], ["RPOP", "k"], ["LRANGE", "k", "0", "-1"]) == \
        [1, 1, b"a", 2, b"c", [b"b"]]
    assert waiters[0].read() == [b"k", b"b"]
    assert waiters[1].nothing_comes(0.02)
    assert transaction(client, ["RPUSH", "k", "a"], ["DEL", "k"]) == [1, 1]
    assert waiters[1].nothing_comes(0.02)
    client.call("RPUSH", "k", "d")
    assert waiters[1].read() == [b"k", b"d"]


def test_a_transaction_in_the_world_is_seen_as_a_whole(client, blocked):
    """CLIENT LIST and CONFIG make everybody stand still; others must not run between its parts."""
    waiter = blocked("BLPOP", "k", "0")
    replies = transaction(client, ["RPUSH", "k", "a"], ["CLIENT", "LIST"], ["LPOP", "k"],
                          ["CONFIG", "GET", "maxclients"], ["RPUSH", "k", "b"],
                          ["CLIENT", "UNBLOCK", "0"], ["LLEN", "k"])
    assert (replies[0], replies[2], replies[4], replies[6]) == (1, b"a", 1, 1)
    assert waiter.read() == [b"k", b"b"]
    assert client.call("EXISTS", "k") == 0


def test_several_keys_at_once(client, blocked):
    """Keys in the order in which they became ready; a waiter looks at its keys in its own order."""
    first = blocked("BLPOP", "a", "b", "c", "0")
    second = blocked("BLPOP", "c", "b", "a", "0")
    third = blocked("BLPOP", "b", "0")
    assert transaction(client, ["RPUSH", "c", "1"], ["RPUSH", "b", "2"], ["RPUSH", "a", "3"]) == \
        [1, 1, 1]
    assert first.read() == [b"a", b"3"]
    assert second.read() == [b"c", b"1"]
    assert third.read() == [b"b", b"2"]


def test_blocking_commands_do_not_wait_in_transactions(client):
    assert transaction(client, ["BLPOP", "k", "0"], ["BRPOP", "k", "x", "0"],
                       ["BLMPOP", "0", "1", "k", "LEFT"], ["BZPOPMIN", "k", "0"],
                       ["BZPOPMAX", "k", "0"], ["BZMPOP", "0", "1", "k", "MAX"]) == [None] * 6
    client.send_raw(b"MULTI\r\nBLMOVE k x LEFT LEFT 0\r\nBRPOPLPUSH k x 0\r\nBLPOP k 0\r\n"
                    b"RPUSH k a b\r\nBLPOP k 0\r\nBLMOVE k x LEFT LEFT 0\r\nEXEC\r\n")
    raw = [client.read_reply()[0] for _ in range(8)][-1]
    assert raw == (b"*6\r\n$-1\r\n$-1\r\n*-1\r\n:2\r\n*2\r\n$1\r\nk\r\n$1\r\na\r\n$1\r\nb\r\n")


def test_a_move_in_a_transaction_serves(client, blocked):
    waiter = blocked("BLPOP", "to", "0")
    assert transaction(client, ["RPUSH", "from", "a"],
                       ["BLMOVE", "from", "to", "LEFT", "LEFT", "0"]) == [1, b"a"]
    assert waiter.read() == [b"to", b"a"]


def test_what_is_served_breaks_a_watch(client, connect, blocked):
    watching = connect()
    watching.call("RPUSH", "to", "there")
    watching.ok("WATCH", "to")
    waiter = blocked("BLMOVE", "from", "to", "LEFT", "RIGHT", "0")
    client.call("RPUSH", "from", "a")
    assert waiter.read() == b"a"
    assert transaction(watching, ["PING"]) is None


def test_a_watching_client_may_wait(client, connect, blocked):
    both = connect()
    both.ok("WATCH", "w")
    blocked("BLPOP", "k", "0", conn=both)
    client.ok("SET", "w", "v")
    client.call("RPUSH", "k", "a")
    assert both.read() == [b"k", b"a"]
    assert transaction(both, ["PING"]) is None
    both.ok("WATCH", "w")
    blocked("BLPOP", "k", "0", conn=both)
    both.close()
    client.ok("SET", "w", "v")


# ---- what is asked once more ----


def test_a_waiter_that_would_need_memory(make_server, connect):
    """As in Redis 7.2: who moves is refused when memory is short, who takes is not."""
    server = make_server()
    client, mover, taker = (connect(to=server) for _ in range(3))
    client.call("RPUSH", "from", "e")
    mover.send("BLMOVE", "k", "to", "LEFT", "LEFT", "0")
    eventually(lambda: server.info()["blocked_clients"] == "1", "it waits")
    taker.send("BLPOP", "k", "0")
    eventually(lambda: server.info()["blocked_clients"] == "2", "both wait")
    client.ok("CONFIG", "SET", "maxmemory", "1")
    assert client.error("RPUSH", "k", "x").startswith(b"OOM")
    client.ok("RENAME", "from", "k")
    assert mover.read() == b"OOM command not allowed when used memory > 'maxmemory'."
    assert taker.read() == [b"k", b"e"]
    assert client.call("EXISTS", "k", "to") == 0


def test_a_waiter_where_replicas_are_too_few(make_server, connect):
    """Writes were let in when the client began to wait, and when the element came: not when it is served."""
    server = make_server()
    client, waiter, reader = (connect(to=server) for _ in range(3))
    reader.send("XREAD", "BLOCK", "0", "STREAMS", "s", "$")
    waiter.send("BLPOP", "k", "0")
    eventually(lambda: server.info()["blocked_clients"] == "2", "both wait")
    assert transaction(client, ["RPUSH", "k", "e"], ["XADD", "s", "1-1", "f", "v"],
                       ["CONFIG", "SET", "min-replicas-to-write", "1"]) == [1, b"1-1", b"OK"]
    assert waiter.read() == b"NOREPLICAS Not enough good replicas to write."
    assert reader.read() == [[b"s", [[b"1-1", [b"f", b"v"]]]]]
    assert client.call("LRANGE", "k", "0", "-1") == [b"e"]
    assert client.call("INFO", "commandstats").count(b"cmdstat_blpop:calls=0") == 1


# ---- pauses ----


def test_a_blocking_call_that_was_held_waits_afterwards(client, connect):
    waiter = connect()
    number = waiter.call("CLIENT", "ID")
    client.ok("CLIENT", "PAUSE", "60000", "WRITE")
    waiter.send_raw(b"BLPOP k 0\r\nPING\r\n")
    assert waiter.nothing_comes(0.05)
    assert client.call("CLIENT", "UNBLOCK", str(number)) == 0
    client.ok("CLIENT", "UNPAUSE")
    assert waiter.nothing_comes(0.05)
    client.call("RPUSH", "k", "a")
    assert [waiter.read(), waiter.read()] == [[b"k", b"a"], b"PONG"]


def test_subscribers_wait_and_are_told_meanwhile(client, connect, blocked):
    """RESP3: a push may come while the reply is awaited."""
    both = connect(3)
    both.send("SUBSCRIBE", "c")
    both.read_frame()
    blocked("BLPOP", "k", "0", conn=both)
    assert client.call("PUBLISH", "c", "news") == 1
    assert both.read_frame()[1] == [b"message", b"c", b"news"]
    client.call("RPUSH", "k", "a")
    assert both.read() == [b"k", b"a"]
