"""CLIENT PAUSE and UNPAUSE hold back clients of every thread."""

import time

import pytest

from lib.bounds import eventually
from lib.server import parse_info

pytestmark = pytest.mark.one_thread("those that wait and the one that ends it share a thread")


@pytest.fixture
def spread(connect, threads):
    """Clients on every thread."""
    return [connect() for _ in range(3 * threads)]


def test_pause_holds_everything(client, spread):
    """Also UNPAUSE, so it ends by itself.  The lower bound is the promise."""
    client.ok("SET", "k", "old")
    start = time.monotonic()
    client.ok("CLIENT", "PAUSE", "400")
    for other in spread:
        other.send("GET", "k")
    for other in spread:
        assert other.read() == b"old"
        assert time.monotonic() - start >= 0.395


def test_pause_of_writes_lets_reads_through(client, spread):
    client.ok("SET", "k", "old")
    client.ok("CLIENT", "PAUSE", "60000", "WRITE")
    assert [other.call("GET", "k") for other in spread] == [b"old"] * len(spread)
    for number, other in enumerate(spread):
        other.send("APPEND", "k", "+")
    assert all(other.nothing_comes(0.05) for other in spread)
    assert client.call("GET", "k") == b"old"
    client.ok("CLIENT", "UNPAUSE")
    assert sorted(other.read() for other in spread) == list(range(4, 4 + len(spread)))


def test_pause_of_writes_ends_by_itself(client, connect):
    other = connect()
    start = time.monotonic()
    client.ok("CLIENT", "PAUSE", "100", "WRITE")
    other.ok("SET", "k", "v")
    assert time.monotonic() - start >= 0.095


def test_a_held_pipeline_keeps_its_order(client, connect):
    other = connect()
    client.ok("CLIENT", "PAUSE", "60000", "WRITE")
    other.send_raw(b"PING\r\nSET k 1\r\nGET k\r\nINCR k\r\nPING\r\n")
    assert other.read() == b"PONG"
    assert other.nothing_comes(0.05)
    client.ok("CLIENT", "UNPAUSE")
    assert [other.read() for _ in range(4)] == [b"OK", b"1", 2, b"PONG"]


def test_a_held_client_can_be_killed_and_can_leave(client, connect):
    leaving, killed = connect(), connect()
    name = str(killed.call("CLIENT", "ID"))
    client.ok("CLIENT", "PAUSE", "60000", "WRITE")
    leaving.send("SET", "left", "1")
    killed.send("SET", "killed", "1")
    assert killed.nothing_comes(0.05)
    leaving.close()
    assert client.call("CLIENT", "KILL", "ID", name) == 1
    assert killed.is_closed()
    client.ok("CLIENT", "UNPAUSE")
    eventually(lambda: client.call("EXISTS", "killed") == 0, "the killed client's write is gone")


def test_expiry_stands_still_while_writes_are_paused(client):
    """Logically gone, yet nothing is deleted that would have to be propagated."""
    client.ok("SET", "k", "v", "PX", "50")
    client.ok("CLIENT", "PAUSE", "60000", "WRITE")
    eventually(lambda: client.call("GET", "k") is None, "the key is gone for readers")
    client.ok("CLIENT", "UNPAUSE")
    assert client.call("EXISTS", "k") == 0


@pytest.mark.parametrize("kind", ["WRITE", "ALL"])
def test_nothing_is_deleted_while_clients_are_paused(client, connect, kind):
    """Neither what has expired nor what would be evicted; afterwards both."""
    client.ok("CONFIG", "RESETSTAT")
    client.ok("SET", "k", "v", "PX", "30")
    client.ok("SET", "other", "v")
    client.ok("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    client.ok("CLIENT", "PAUSE", "1500", kind)
    reader = connect()
    if kind == "WRITE":
        client.ok("CONFIG", "SET", "maxmemory", "1")
        for _ in range(30):
            assert reader.call("GET", "other") == b"v"
            assert reader.call("GET", "k") in (None, b"v")
        stats = parse_info(reader.call("INFO", "stats"))
        assert (stats["expired_keys"], stats["evicted_keys"]) == ("0", "0")
    else:
        reader.send("GET", "k")
    eventually(lambda: parse_info(client.call("INFO", "stats"))["expired_keys"] == "1",
               "the expired key is deleted")
    if kind == "WRITE":
        eventually(lambda: client.call("DBSIZE") == 0, "the other one is evicted")
