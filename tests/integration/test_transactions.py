"""MULTI, EXEC, DISCARD, WATCH, UNWATCH: what a client sees of its transaction, however its bytes
come, and what others see of it."""

import time

import pytest

from lib.bounds import scaled
from lib.resp import Closed, Connection, Error, encode

pytestmark = pytest.mark.one_thread("WATCH and EXEC of one thread")

ABORTED = b"EXECABORT Transaction discarded because of previous errors."


def queued(client, *commands):
    for words in commands:
        assert client.call(*words) == b"QUEUED"


def run(client, *commands):
    """MULTI, the commands, EXEC, one at a time."""
    client.ok("MULTI")
    queued(client, *commands)
    return client.call("EXEC")


def fields(line):
    return dict(part.split(b"=", 1) for part in line.split())


# -- the queue

def test_commands_wait_for_exec(client, connect):
    other = connect()
    client.ok("MULTI")
    queued(client, ["SET", "a", "1"], ["INCR", "a"], ["GET", "a"])
    assert other.call("GET", "a") is None
    assert client.call("EXEC") == [b"OK", 2, b"2"]
    assert other.call("GET", "a") == b"2"
    assert client.error("EXEC") == b"ERR EXEC without MULTI"
    assert client.error("DISCARD") == b"ERR DISCARD without MULTI"


PROGRAM = [["SET", "a", "1"], ["MULTI"], ["INCR", "a"], ["LPUSH", "l", "x" * 50, "y"], ["GET", "a"],
           ["EXEC"], ["GET", "a"], ["MULTI"], ["EXEC"], ["MULTI"], ["SET", "a", "9"], ["DISCARD"],
           ["MULTI"], ["LRANGE", "l", "0", "-1"], ["EXEC"], ["PING"]]
REPLIES = [b"OK", b"OK", b"QUEUED", b"QUEUED", b"QUEUED", [2, 2, b"2"], b"2", b"OK", [], b"OK",
           b"QUEUED", b"OK", b"OK", b"QUEUED", [[b"y", b"x" * 50]], b"PONG"]


def test_a_pipeline_of_transactions(client):
    for _ in range(20):
        assert client.pipeline([["DEL", "a", "l"]] + PROGRAM)[1:] == REPLIES


@pytest.mark.parametrize("size", [1, 3, 7, 19, 64])
def test_cut_anywhere(client, connect, size):
    data = b"".join(encode(*words) for words in PROGRAM)
    unix = connect(unix=True)
    unix.send_pieces([data[at:at + size] for at in range(0, len(data), size)])
    assert [unix.read() for _ in PROGRAM] == REPLIES


@pytest.mark.parametrize("count", [1, 7, 126, 127, 128, 129, 300, 3000])
def test_queues_of_all_lengths(client, count):
    """Also those that need several batches."""
    program = [["MULTI"]] + [["RPUSH", "l", "e%d" % i] for i in range(count)] + [["EXEC"]]
    for _ in range(2):
        replies = client.pipeline(program + [["LLEN", "l"], ["DEL", "l"]])
        assert replies[1:count + 1] == [b"QUEUED"] * count
        assert replies[count + 1:] == [list(range(1, count + 1)), count, 1]


def test_large_arguments(client):
    values = ["%d" % i * (50_000 + i) for i in range(4)]
    replies = client.pipeline([["MULTI"]] + [["SET", "k%d" % i, v] for i, v in enumerate(values)]
                              + [["MGET", "k0", "k3"], ["EXEC"]])
    assert replies[-1] == [b"OK"] * 4 + [[values[0].encode(), values[3].encode()]]
    client.ok("MULTI")
    queued(client, ["SET", "k0", values[1]], ["STRLEN", "k0"])
    client.ok("DISCARD")
    client.ok("MULTI")
    queued(client, ["SET", "k0", values[2]], ["GET", "k0"])
    assert client.call("EXEC") == [b"OK", values[2].encode()]


def test_a_refused_request_spoils_the_transaction(client):
    for bad in (["NOSUCH", "x"], ["GET"], ["DISCARD", "x"], ["CLIENT", "NOSUCH"], ["SHUTDOWN"]):
        client.ok("MULTI")
        queued(client, ["SET", "a", "1"])
        assert isinstance(client.call(*bad), Error)
        queued(client, ["SET", "a", "2"])
        assert client.error("EXEC") == ABORTED
        assert client.call("EXISTS", "a") == 0
        assert run(client, ["PING"]) == [b"PONG"]


def test_an_error_inside_stops_nothing(client):
    assert run(client, ["LPUSH", "l", "x"], ["INCR", "l"], ["LLEN", "l"]) == \
        [1, Error(b"WRONGTYPE Operation against a key holding the wrong kind of value"), 1]


def test_what_is_not_queued(client):
    client.ok("MULTI")
    assert client.error("MULTI") == b"ERR MULTI calls can not be nested"
    assert client.error("WATCH", "a") == b"ERR WATCH inside MULTI is not allowed"
    queued(client, ["SET", "a", "1"], ["UNWATCH"])
    assert client.call("EXEC") == [b"OK", b"OK"]
    client.ok("MULTI")
    queued(client, ["SET", "a", "2"])
    assert client.call("RESET") == b"RESET"
    assert client.error("EXEC") == b"ERR EXEC without MULTI"
    assert client.call("GET", "a") == b"1"
    client.ok("MULTI")
    queued(client, ["SET", "a", "2"])
    client.ok("QUIT")
    assert client.is_closed()


def test_select_inside(client):
    assert run(client, ["SELECT", "1"], ["SET", "a", "1"], ["SELECT", "99"], ["GET", "a"],
               ["SELECT", "0"], ["GET", "a"]) == \
        [b"OK", b"OK", Error(b"ERR DB index is out of range"), b"1", b"OK", None]
    assert client.pipeline([["MULTI"], ["SELECT", "1"], ["EXEC"], ["GET", "a"], ["SELECT", "0"],
                            ["GET", "a"]]) == \
        [b"OK", b"QUEUED", [b"OK"], b"1", b"OK", None]


def test_the_protocol_may_change_inside(client):
    client.ok("MULTI")
    queued(client, ["HGETALL", "none"], ["HELLO", "3"], ["HGETALL", "none"])
    client.send("EXEC")
    client.decoder.proto = 3
    assert client.read_frame()[0].endswith(b"*0\r\n%0\r\n")


@pytest.mark.parametrize("reads", [True, False])
def test_long_walks_inside_are_whole(client, connect, reads):
    """KEYS goes on in slices outside; here nobody comes in between."""
    client.pipeline([["SET", "k%d" % i, "x"] for i in range(3000)])
    other = connect()
    commands = [["KEYS", "k*"], ["DBSIZE"]] if reads else \
        [["KEYS", "k*"], ["SET", "one more", "x"], ["KEYS", "*"], ["DEL", "one more"]]
    data = b"".join(encode(*w) for w in [["MULTI"]] + commands + [["EXEC"]])
    for _ in range(5):
        other.send("SET", "k%d" % 99999, "x")
        other.send("DEL", "k%d" % 99999)
        client.send_raw(data)
        replies = [client.read() for _ in range(len(commands) + 2)][-1]
        assert other.read() == b"OK" and other.read() == 1
        if reads:
            assert len(replies[0]) == replies[1]
        else:
            assert len(replies[0]) + 1 == len(replies[2])


def test_commands_about_the_world_inside(client, connect):
    """The whole EXEC runs while everybody stands still."""
    connect()
    replies = run(client, ["SET", "a", "1"], ["CONFIG", "SET", "lua-time-limit", "4999"], ["GET", "a"],
                  ["CLIENT", "LIST"], ["INFO", "keyspace"], ["DEL", "a"], ["KEYS", "*"],
                  ["CONFIG", "GET", "lua-time-limit"])
    assert replies[0] == b"OK" and replies[2] == b"1" and replies[5] == 1 and replies[6] == []
    assert b"multi=8" in bytes(replies[3]) and b"db0:keys=1" in bytes(replies[4])


def test_info_and_memory_inside(client):
    for kind in (["GET", "a"], ["SET", "a", "1"], ["PING"]):
        replies = run(client, kind, ["INFO"], ["MEMORY", "STATS"], kind)
        assert b"redis_version" in bytes(replies[1])


# -- WATCH

def test_a_watched_key_that_changes_ends_it(client, connect):
    other = connect()
    for change in (["SET", "a", "2"], ["DEL", "a"], ["EXPIRE", "a", "100"], ["FLUSHALL"],
                   ["FLUSHDB"], ["RENAME", "a", "b"], ["SWAPDB", "0", "1"], ["MOVE", "a", "1"],
                   ["APPEND", "a", ""], ["GETDEL", "a"], ["COPY", "b", "a", "REPLACE"]):
        client.pipeline([["FLUSHALL"], ["SET", "a", "1"], ["SET", "b", "1"]])
        client.ok("WATCH", "x", "a")
        other.call(*change)
        assert run(client, ["PING"]) is None, change
        assert run(client, ["PING"]) == [b"PONG"]  # once


def test_changes_that_are_none(client, connect):
    other = connect()
    for words in (["GET", "a"], ["SET", "b", "2"], ["DEL", "nothing"], ["SADD", "s", "m"],
                  ["TOUCH", "a"], ["SWAPDB", "2", "3"], ["OBJECT", "ENCODING", "a"]):
        client.pipeline([["FLUSHALL"], ["SET", "a", "1"], ["SADD", "s", "m"]])
        client.ok("WATCH", "a", "s", "nothing")
        other.call(*words)
        assert run(client, ["PING"]) == [b"PONG"], words


def test_a_missing_key(client, connect):
    other = connect()
    for words, aborts in ((["FLUSHALL"], False), (["SWAPDB", "0", "1"], True),
                          (["SWAPDB", "0", "2"], False), (["SET", "a", "1"], True),
                          (["DEL", "a"], False)):
        client.pipeline([["FLUSHALL"], ["SELECT", "1"], ["SET", "a", "1"], ["SELECT", "0"]])
        client.ok("WATCH", "a")
        other.call(*words)
        assert (run(client, ["PING"]) is None) == aborts, words


def test_ones_own_changes_count(client):
    client.ok("WATCH", "a")
    client.ok("SET", "a", "1")
    assert run(client, ["SET", "a", "2"]) is None
    client.ok("WATCH", "a")
    assert client.pipeline([["MULTI"], ["SET", "a", "2"], ["EXEC"]])[-1] == [b"OK"]
    assert client.pipeline([["WATCH", "a"], ["SET", "a", "3"], ["MULTI"], ["GET", "a"], ["EXEC"],
                            ["MULTI"], ["GET", "a"], ["EXEC"]])[4::3] == [None, [b"3"]]


def test_the_database_is_part_of_the_key(client, connect):
    other = connect()
    client.ok("WATCH", "a")
    other.ok("SELECT", "1")
    other.ok("SET", "a", "1")
    assert run(client, ["PING"]) == [b"PONG"]
    client.ok("SELECT", "1")
    client.ok("WATCH", "a")
    client.ok("SELECT", "0")
    other.ok("SET", "a", "2")
    assert run(client, ["PING"]) is None


@pytest.mark.parametrize("forget", [["UNWATCH"], ["DISCARD"], ["RESET"], ["EXEC"]])
def test_what_forgets(client, connect, forget):
    other = connect()
    client.ok("SET", "a", "1")
    client.ok("WATCH", "a")
    if forget[0] in ("DISCARD", "EXEC"):
        client.ok("MULTI")
    client.call(*forget)
    other.ok("SET", "a", "2")
    assert run(client, ["PING"]) == [b"PONG"]


def test_a_failed_exec_forgets_too(client, connect):
    other = connect()
    client.ok("WATCH", "a")
    client.ok("MULTI")
    client.error("EXEC", "x")
    other.ok("SET", "a", "2")
    assert run(client, ["PING"]) == [b"PONG"]


def test_many_watch_the_same(connect, threads):
    """And the same key is watched many times."""
    clients = [connect() for _ in range(4 * threads)]
    for c in clients:
        c.ok("WATCH", *["k%d" % (i % 40) for i in range(200)])
    clients[0].ok("SET", "k39", "1")
    assert [run(c, ["PING"]) for c in clients] == [None] * len(clients)
    assert [run(c, ["PING"]) for c in clients] == [[b"PONG"]] * len(clients)


def test_a_watched_key_that_expires(client):
    # In one turn, or on a slow machine the key might be gone before it is watched.
    assert client.pipeline([["SET", "a", "1", "PX", "60"], ["WATCH", "a"], ["EXISTS", "a"]])[2] == 1
    time.sleep(0.15)
    assert run(client, ["PING"]) is None


def test_a_key_that_had_expired_is_a_missing_one(client, connect, needs):
    needs("DEBUG")
    client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    try:
        other = connect()
        for words, aborts in ((["GET", "a"], False), (["DEL", "a"], False), (["FLUSHALL"], False),
                              (["SWAPDB", "0", "1"], False), (["SET", "a", "2"], True)):
            client.ok("SET", "a", "1", "PX", "1")
            time.sleep(0.05)
            client.ok("WATCH", "a")
            other.call(*words)
            assert (run(client, ["PING"]) is None) == aborts, words
    finally:
        client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "1")


def test_clients_that_leave_watch_nothing(client, connect):
    """The server asserts at its end that nobody watches any more."""
    for leave in ("close", "reset_hard"):
        for _ in range(20):
            other = connect()
            other.ok("WATCH", "a", "b", "c")
            other.send_raw(encode("MULTI") + encode("SET", "a", "x" * 40_000))
            getattr(other, leave)()
    client.ok("SET", "a", "1")


def test_the_server_may_end_meanwhile(make_server):
    """Its end asserts that nobody watches any more and, with a sanitizer, that nothing is left."""
    server = make_server()
    clients = [server.connect() for _ in range(8)]
    for c in clients:
        c.ok("WATCH", "a", "b")
        c.ok("MULTI")
        queued(c, ["SET", "a", "x" * 40_000], ["GET", "a"])
    server.stop()
    for c in clients:
        c.close()


# -- beside others

def test_pause_of_writes_holds_an_exec_that_writes(client, connect):
    other, reader = connect(), connect()
    other.ok("MULTI")
    queued(other, ["GET", "a"], ["SET", "a", "1"])
    reader.ok("MULTI")
    queued(reader, ["GET", "a"])
    client.ok("CLIENT", "PAUSE", "60000", "WRITE")
    other.send("EXEC")
    assert reader.call("EXEC") == [None]
    assert other.nothing_comes(0.05)
    client.ok("CLIENT", "UNPAUSE")
    assert other.read() == [None, b"OK"]


def test_pause_of_all_holds_what_would_be_queued(client, connect):
    other = connect()
    other.ok("MULTI")
    client.ok("CLIENT", "PAUSE", "100")
    other.send_raw(encode("SET", "a", "1") + encode("EXEC"))
    assert other.read() == b"QUEUED" and other.read() == [b"OK"]


def test_client_list_shows_it(client, connect):
    other = connect()
    me = str(client.call("CLIENT", "ID"))

    def seen():
        return fields(other.call("CLIENT", "LIST", "ID", me))

    assert seen()[b"multi"] == b"-1" and seen()[b"multi-mem"] == b"0"
    client.ok("WATCH", "a")
    assert seen()[b"flags"] == b"N" and int(seen()[b"multi-mem"]) > 0
    client.ok("MULTI")
    before = int(seen()[b"tot-mem"])
    queued(client, ["SET", "b", "x" * 10_000], ["GET", "b"])
    after = seen()
    assert after[b"multi"] == b"2" and after[b"flags"] == b"x" and after[b"cmd"] == b"get"
    assert int(after[b"multi-mem"]) > 10_000 and int(after[b"tot-mem"]) > before + 10_000
    other.ok("SET", "a", "1")
    assert set(seen()[b"flags"]) == set(b"xd")
    client.call("EXEC")
    assert seen()[b"flags"] == b"N" and seen()[b"multi"] == b"-1" and seen()[b"multi-mem"] == b"0"


def test_client_info_inside(client):
    seen = fields(run(client, ["PING"], ["CLIENT", "INFO"])[1])
    assert seen[b"multi"] == b"2" and seen[b"cmd"] == b"exec" and seen[b"flags"] == b"x"


def test_a_queue_may_not_grow_beyond_the_limit(make_server):
    server = make_server(options={"client-query-buffer-limit": "1mb"})
    with server.connect() as client:
        client.ok("MULTI")
        with pytest.raises((Closed, OSError)):
            for _ in range(200):
                queued(client, ["SET", "a", "x" * 20_000])
    with server.connect() as client:
        client.ok("MULTI")
        queued(client, *[["SET", "a", "x" * 20_000]] * 40)
        assert client.call("EXEC") == [b"OK"] * 40
        with pytest.raises((Closed, OSError)):
            for n in range(100_000):
                client.ok("WATCH", "%d" % n + "x" * 100)


def test_statistics(client):
    """Commands count when they run; EXEC's own errors are its own."""
    client.ok("CONFIG", "RESETSTAT")
    client.ok("MULTI")
    client.call("NOSUCH")
    client.error("EXEC")
    run(client, ["LPUSH", "l", "x"], ["INCR", "l"])
    client.ok("MULTI")
    queued(client, ["SET", "never", "1"])
    client.ok("DISCARD")
    text = bytes(client.call("INFO", "commandstats", "stats", "errorstats")).decode()
    rows = dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)

    def counts(name):
        row = dict(part.split("=") for part in rows["cmdstat_" + name].split(","))
        return row["calls"], row["rejected_calls"], row["failed_calls"]

    assert counts("multi") == ("3", "0", "0") and counts("exec") == ("2", "0", "1")
    assert counts("lpush") == ("1", "0", "0") and counts("incr") == ("1", "0", "1")
    assert "cmdstat_set" not in rows
    assert rows["total_commands_processed"] == "9"
    assert rows["errorstat_EXECABORT"] == "count=1" and rows["errorstat_WRONGTYPE"] == "count=1"


def test_monitors_see_the_commands_when_they_run(client, connect):
    monitor = connect()
    monitor.ok("MONITOR")
    client.ok("MULTI")
    queued(client, ["SET", "a", "1"], ["SELECT", "1"], ["GET", "a"])
    client.call("EXEC")
    lines = [monitor.read() for _ in range(5)]
    assert [line.split(b"] ", 1)[1] for line in lines] == \
        [b'"MULTI"', b'"SET" "a" "1"', b'"SELECT" "1"', b'"GET" "a"', b'"EXEC"']
    assert b"[1 " in lines[3]
    client.ok("SELECT", "0")


def test_slow_log(client):
    client.ok("CONFIG", "SET", "slowlog-log-slower-than", "0")
    client.call("SLOWLOG", "RESET")
    run(client, ["SET", "a", "1"], ["GET", "a"])
    client.ok("CONFIG", "SET", "slowlog-log-slower-than", "-1")
    assert [entry[3][0] for entry in client.call("SLOWLOG", "GET")][-4:] == \
        [b"GET", b"SET", b"MULTI", b"SLOWLOG"]


def test_client_reply_inside(client):
    client.ok("MULTI")
    queued(client, ["PING"], ["CLIENT", "REPLY", "SKIP"], ["PING"])
    client.send_raw(encode("EXEC") + encode("PING") + encode("ECHO", "x"))
    # As Redis does it: the array lacks an element, and the request behind EXEC is the one that is
    # skipped, so that what comes next fills the array.
    assert client.read() == [b"PONG", b"PONG", b"x"]


def test_authentication_is_needed_for_each(make_server):
    server = make_server(options={"requirepass": "secret"}, password="secret")
    with Connection(server.address()) as client:
        assert client.error("MULTI").startswith(b"NOAUTH")
        assert client.error("EXEC") == \
            b"EXECABORT Transaction discarded because of: NOAUTH Authentication required."
        client.ok("AUTH", "secret")
        assert run(client, ["PING"]) == [b"PONG"]


def test_random_readers_and_writers_see_whole_transactions(connect, threads):
    """Two keys that every transaction sets alike, read under shared locks from all threads."""
    clients = [connect() for _ in range(2 * threads)]
    deadline = time.monotonic() + scaled(0.5)
    rounds = 0
    while time.monotonic() < deadline:
        rounds += 1
        for n, c in enumerate(clients):
            if n % 2:
                c.send_raw(b"".join(encode(*w) for w in (
                    ["MULTI"], ["SET", "a", str(rounds)], ["SET", "b", str(rounds)], ["EXEC"])))
            else:
                c.send_raw(b"".join(encode(*w) for w in (
                    ["MULTI"], ["GET", "a"], ["GET", "b"], ["EXEC"])))
        for n, c in enumerate(clients):
            *_, last = [c.read() for _ in range(4)]
            assert last == [b"OK", b"OK"] if n % 2 else last[0] == last[1], last
