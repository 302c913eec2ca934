"""A large request of which only a part has come stands behind one whose reply takes its time: when
that reply is there the client goes on, and the rest of the large one comes later."""

import time

from lib.bounds import eventually
from lib.resp import encode

BIG = b"x" * 300_000
LARGE = encode("SET", "large", BIG)
# Where the large request is cut: in its head, where its bytes begin, in them, before its end.
CUTS = [3, len(LARGE) - len(BIG) - 2, 20_000, 100_000, len(LARGE) - 1]


def check(client, first, begin, reply):
    """`first` stands before the large request; begin() lets its reply come."""
    for cut in CUTS:
        client.send_raw(encode(*first) + LARGE[:cut])
        time.sleep(0.02)
        begin()
        assert reply(client.read()), cut
        time.sleep(0.02)
        client.send_raw(LARGE[cut:] + encode("PING"))
        assert client.read() == b"OK" and client.read() == b"PONG"
        assert client.call("GET", "large") == BIG
        client.call("DEL", "large")


def nothing():
    pass


def test_behind_a_write_that_waits_for_the_disk(make_server):
    server = make_server({"appendonly": "yes", "appendfsync": "always"}, files=["appendonlydir"])
    with server.connect() as client:
        check(client, ["SET", "a", "1"], nothing, lambda reply: reply == b"OK")


def test_behind_what_goes_in_slices(connect):
    client = connect()
    for at in range(0, 200_000, 10_000):
        client.call("SADD", "s", *range(at, at + 10_000))
    check(client, ["SUNIONSTORE", "out", "s", "t"], nothing, lambda reply: reply == 200_000)


def test_behind_a_paused_write(connect):
    client, other = connect(), connect()
    other.ok("CLIENT", "PAUSE", "100000", "WRITE")

    for cut in CUTS:
        client.send_raw(encode("SET", "a", "1") + LARGE[:cut])
        time.sleep(0.02)
        other.ok("CLIENT", "UNPAUSE")
        other.ok("CLIENT", "PAUSE", "100000", "WRITE")
        time.sleep(0.02)
        client.send_raw(LARGE[cut:])
        time.sleep(0.02)
        other.ok("CLIENT", "UNPAUSE")
        assert client.read() == client.read() == b"OK", cut
        assert client.call("GET", "large") == BIG
        other.ok("CLIENT", "PAUSE", "100000", "WRITE")
    other.ok("CLIENT", "UNPAUSE")


def test_behind_a_blocked_call(connect):
    client, other = connect(), connect()
    check(client, ["BLPOP", "q", "0"], lambda: other.call("RPUSH", "q", "e"),
          lambda reply: reply == [b"q", b"e"])


def test_beside_a_script_that_takes_long(make_server):
    """With one thread it serves this client out of the script."""
    server = make_server({"busy-reply-threshold": "10"})
    with server.connect() as client, server.connect() as other:
        for cut in CUTS:
            other.send("EVAL", "while true do end", "0")
            eventually(lambda: client.call("PING").startswith(b"BUSY"), "the script takes long")
            client.send_raw(encode("PING") + LARGE[:cut])
            assert client.read().startswith(b"BUSY")
            with server.connect() as killer:
                killer.ok("SCRIPT", "KILL")
            assert b"killed by user" in other.read()
            client.send_raw(LARGE[cut:])
            assert client.read() == b"OK"
            assert client.call("GET", "large") == BIG
