"""Who ends the stream may still read: `printf 'GET k\\r\\n' | nc host port` gets its reply, however
long that takes to make and to send."""

import socket
import time

import pytest

from lib.bounds import eventually
from lib.resp import encode

VALUE = b"x" * 1000


def half_close(client):
    client.sock.shutdown(socket.SHUT_WR)


def values(client):
    return [tree for _, tree in client.read_to_end()]


@pytest.mark.parametrize("first", [0, 1, 700, 1500], ids="{}-bytes-before".format)
def test_requests_that_come_together_with_the_end(connect, first):
    """The last bytes and the end show at once to a thread that stood still meanwhile; some of what
    it is to parse may be there from before."""
    data = encode("ECHO", VALUE) * 5
    for _ in range(5):
        client, other = connect(), connect()
        client.send_raw(data[:first])
        other.send("DEBUG", "SLEEP", "0.05")
        time.sleep(0.02)
        client.send_raw(data[first:])
        half_close(client)
        assert values(client) == [VALUE] * 5
        assert other.read() == b"OK"


def test_replies_beyond_what_sockets_hold(client):
    client.ok("SET", "large", b"v" * 1_000_000)
    client.send_raw(encode("GET", "large") * 30)
    half_close(client)
    time.sleep(0.1)
    assert values(client) == [b"v" * 1_000_000] * 30


def test_replies_that_wait_for_the_disk(make_server):
    server = make_server({"appendonly": "yes", "appendfsync": "always"},
                         files=["appendonlydir"])
    for turn in range(50):
        with server.connect() as client:
            client.send_raw(encode("SET", "k%d" % turn, "v") + encode("GET", "k%d" % turn))
            half_close(client)
            assert values(client) == [b"OK", b"v"]


def test_replies_made_in_slices(client):
    members = [b"m%d" % i for i in range(50_000)]
    for at in range(0, len(members), 10_000):
        client.call("SADD", "s", *members[at:at + 10_000])
    client.send_raw(encode("SUNION", "s", "none") + encode("ECHO", "behind"))
    half_close(client)
    union, behind = values(client)
    assert sorted(union) == sorted(members) and behind == b"behind"


def test_who_waits_for_keys_has_gone(client, connect):
    """As with redis-server: nobody can tell a half-closed waiter from one that has crashed."""
    client.send("BLPOP", "queue", "0")
    other = connect()
    eventually(lambda: b"blocked_clients:1" in other.call("INFO", "clients"), "it waits")
    half_close(client)
    assert values(client) == []
    assert other.call("RPUSH", "queue", "kept") == 1
    assert other.call("LRANGE", "queue", "0", "-1") == [b"kept"]


def test_half_a_request_is_not_run(client, connect):
    client.send_raw(encode("ECHO", "whole") + encode("SET", "half", "value")[:-1])
    half_close(client)
    assert values(client) == [b"whole"]
    assert connect().call("EXISTS", "half") == 0
