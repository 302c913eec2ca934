"""Requests that change how those behind them are understood, many of them in one pipeline: each is answered as if it
had come alone, their replies go out together, and none of them waits for what takes long."""

import re

import pytest

from lib.resp import encode
from lib.seeds import generator, seeds
from lib.bounds import eventually

BARRIERS = [("SELECT", "0"), ("HELLO", "2"), ("AUTH", "default", "x"), ("RESET",), ("CLIENT", "REPLY", "ON"), ("ROLE",),
            ("SCAN", "0"), ("WAIT", "0", "0"), ("CLIENT", "LIST"), ("CLIENT", "TRACKING", "OFF"),
            ("CONFIG", "SET", "maxmemory", "0"), ("BLMOVE", "ring", "ring", "LEFT", "RIGHT", "1")]


def writes_of(connection):
    text = connection.call("INFO", "stats")
    return int(re.search(rb"total_writes_processed:(\d+)", bytes(text)).group(1))


@pytest.mark.parametrize("request_words", BARRIERS, ids=lambda words: " ".join(words[:2]))
def test_their_replies_go_out_together(make_server, request_words):
    server = make_server()
    with server.connect() as watcher, server.connect() as client:
        watcher.call("RPUSH", "ring", "a", "b")
        client.call("PING")
        before = writes_of(watcher)
        assert len(client.exchange(encode(*request_words) * 32, 32)) == 32
        # The watcher's own reply, and the pipeline's: a few, should it take long or come in pieces.
        assert writes_of(watcher) - before < 12


PROGRAM = [
    ("SELECT", "0"), ("SELECT", "1"), ("SELECT", "2"), ("SELECT", "99"), ("SELECT", "x"), ("HELLO", "2"), ("HELLO", "3"),
    ("HELLO", "9"), ("HELLO", "3", "AUTH", "default", "x"), ("HELLO", "2", "SETNAME", "me"), ("AUTH", "default", "x"),
    ("AUTH", "nobody", "x"), ("RESET",), ("MULTI",), ("MULTI",), ("EXEC",), ("EXEC",), ("DISCARD",), ("WATCH", "k"),
    ("SET", "k", "v"), ("GET", "k"), ("INCR", "n"), ("INCR", "n"), ("DEL", "k"), ("HSET", "h", "f", "v"), ("HGETALL", "h"),
    ("DBSIZE",), ("SCAN", "0", "COUNT", "100"), ("KEYS", "*"), ("MOVE", "n", "1"), ("SWAPDB", "0", "1"), ("FLUSHDB",),
    ("CLIENT", "GETNAME"), ("CLIENT", "SETNAME", "you"), ("CLIENT", "REPLY", "ON"), ("WAIT", "0", "0"), ("NOPE",),
    ("GET", "absent"), ("EVAL", "redis.call('select', 2) return redis.call('incr', KEYS[1])", "1", "n"),
    ("RPUSH", "ring", "a"), ("BLMOVE", "ring", "ring", "LEFT", "RIGHT", "1"), ("BLPOP", "ring", "1")]
# May wait where it finds nothing: only behind a push, and outside of transactions it is answered at once.
WAITERS = ("BLMOVE", "BLPOP")


def program_of(seed):
    random = generator(seed, "pipelined replies")
    program = []
    for _ in range(150):
        words = random.choice(PROGRAM)
        if words[0] in WAITERS:
            program.append(("RPUSH", "ring", "a"))
        program.append(words)
    return program + [("RESET",)]


def replies_of(server, program, at_once):
    """The bytes of each reply, ids left out; databases empty before."""
    with server.connect() as client:
        client.call("FLUSHALL")
        client.decoder.proto = 4  # takes what either protocol says
        if at_once:
            raw = [reply[0] for reply in client.exchange(b"".join(encode(*words) for words in program), len(program))]
        else:
            raw = [client.call_raw(*words) for words in program]
    return [re.sub(rb"id\r\n:\d+", b"id\r\n:", reply) for reply in raw]


@pytest.mark.parametrize("seed", seeds(6))
def test_a_pipeline_is_answered_as_one_by_one(make_server, seed):
    server = make_server()
    program = program_of(seed)
    one_by_one = replies_of(server, program, False)
    for words, alone, together in zip(program, one_by_one, replies_of(server, program, True)):
        assert together == alone, words


@pytest.mark.parametrize("long", [("EVAL", "while true do end", "0"), ("BLPOP", "absent", "0")], ids=["script", "waiter"])
def test_replies_do_not_wait_for_what_takes_long(make_server, long):
    """Those before it are there while it goes on; what ends it is sent only then."""
    server = make_server(options={"busy-reply-threshold": "50"})
    with server.connect() as other, server.connect() as client:
        other.call("PING")
        client.send_raw(encode("SELECT", "1") + encode("AUTH", "default", "x") + encode("RESET") + encode(*long))
        assert [client.read() for _ in range(3)] == [b"OK", b"OK", b"RESET"]
        if long[0] == "EVAL":
            eventually(lambda: other.call("SCRIPT", "KILL") == b"OK", "the script is killed")
            assert b"killed" in client.read()
        else:
            other.call("RPUSH", "absent", "x")
            assert client.read() == [b"absent", b"x"]


def test_messages_stand_behind_the_replies_before_them(client):
    client.hello(3)
    client.send_raw(encode("AUTH", "default", "x") + encode("SUBSCRIBE", "c") + encode("PUBLISH", "c", "m") +
                    encode("AUTH", "default", "x") + encode("PUBLISH", "c", "n") + encode("PING"))
    told = [client.read_frame()[1] for _ in range(8)]
    assert told[:4] == [b"OK", [b"subscribe", b"c", 1], 1, [b"message", b"c", b"m"]]
    assert told[4:7] == [b"OK", 1, [b"message", b"c", b"n"]]


def test_the_last_reply_before_the_end_is_sent(client):
    client.send_raw(encode("AUTH", "default", "x") * 3 + encode("QUIT") + encode("PING"))
    assert [client.read() for _ in range(4)] == [b"OK"] * 4
    assert client.is_closed()


def test_a_client_that_ends_itself_is_told_so_behind_the_replies(client):
    me = client.call("CLIENT", "ID")
    client.send_raw(encode("PING") + encode("CLIENT", "KILL", "ID", str(me), "SKIPME", "no"))
    assert [client.read() for _ in range(2)] == [b"PONG", 1]
    assert client.is_closed()


def test_a_broken_stream_is_told_behind_the_replies(client):
    client.send_raw(encode("AUTH", "default", "x") * 3 + encode("EVAL", "return 1", "0") + b"*1\r\nx\r\n")
    assert [client.read() for _ in range(4)] == [b"OK"] * 3 + [1]
    assert client.read().startswith(b"ERR Protocol error")
    assert client.is_closed()


def test_slow_calls_of_one_client_end_their_holds(make_server):
    """Each lets others have the lock before the next one, though all of them are in one batch."""
    server = make_server()

    def holds(c):
        lines = c.call("INFO", "threads").decode().split("\r\n")
        return sum(int(line.split(",exclusive_acquisitions=")[1].split(",")[0])
                   for line in lines if ",exclusive_acquisitions=" in line)

    with server.connect() as c:
        before = holds(c)
        count = 20
        script = "local n = 0; for i = 1, 200000 do n = n + i end; return redis.call('INCR', 'n')"
        assert c.pipeline([("EVAL", script, 0)] * count) == list(range(1, count + 1))
        assert holds(c) - before >= count
