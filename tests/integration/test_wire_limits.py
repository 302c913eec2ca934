"""What a client may cost: before and after authentication, in requests and in replies."""

import re
import socket
import time

import pytest

from lib.bounds import descriptors, eventually
from lib.resp import Closed, Connection, Error, encode
from lib.server import parse_info


@pytest.fixture
def locked(make_server):
    return make_server({"requirepass": "secret"}, password="secret")


def refused(server, data):
    """Raw frames until the close, for a client that has not authenticated."""
    with Connection(server.address()) as stranger:
        try:
            stranger.send_raw(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return [raw for raw, _ in stranger.read_to_end()]


@pytest.mark.any_threads
class TestBeforeAuthentication:
    def test_eleven_arguments(self, locked):
        assert refused(locked, b"*11\r\n") == [
            b"-ERR Protocol error: unauthenticated multibulk length\r\n"]

    def test_a_bulk_over_16_kib(self, locked):
        assert refused(locked, b"*2\r\n$4\r\nECHO\r\n$16385\r\n") == [
            b"-ERR Protocol error: unauthenticated bulk length\r\n"]

    def test_what_is_within_the_limits_is_answered(self, locked):
        with Connection(locked.address()) as stranger:
            for args in (["GET", "k"], ["SET"] + ["x"] * 9, ["GET", "x" * 16384]):
                assert stranger.call(*args) == b"NOAUTH Authentication required."
            stranger.ok("AUTH", "secret")
            stranger.ok("SET", "k", "x" * 20_000)

    def test_a_stranger_who_does_not_read_is_dropped(self, locked):
        with Connection(locked.address()) as stranger:
            stranger.sock.settimeout(5)
            with pytest.raises((OSError, Closed)):
                for _ in range(2000):
                    stranger.send_raw(encode("GET", "k") * 1000)
        with locked.connect() as client:
            assert int(parse_info(client.call("INFO", "memory"))["used_memory"]) < 64 << 20

    def test_many_hostile_strangers_cost_little(self, locked):
        with locked.connect() as client:
            before = int(parse_info(client.call("INFO", "memory"))["used_memory"])
            strangers = [Connection(locked.address()) for _ in range(500)]
            for stranger in strangers:
                stranger.send_raw(b"*10\r\n$4\r\nECHO\r\n$16384\r\n" + b"x" * 1000)
            for stranger in strangers[:5]:
                stranger.send_raw(b"x" * 100)
            after = int(parse_info(client.call("INFO", "memory"))["used_memory"])
            for stranger in strangers:
                stranger.close()
            assert after - before < 32 << 20


def test_query_buffer_limit(make_server):
    server = make_server({"client-query-buffer-limit": "1mb"})
    with server.connect() as client, server.connect() as other:
        client.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3000000\r\n")
        with pytest.raises((OSError, Closed)):
            client.send_raw(b"x" * 2_999_990)
            client.read()
        other.ok("SET", "k", "x" * 500_000)


@pytest.mark.any_threads
def test_proto_max_bulk_len(client, server):
    client.ok("CONFIG", "SET", "proto-max-bulk-len", "1mb")
    client.ok("SET", "k", "x" * (1 << 20))
    client.send_raw(b"*2\r\n$4\r\nECHO\r\n$1048577\r\n")
    assert client.read() == b"ERR Protocol error: invalid bulk length"
    assert client.is_closed()
    with server.connect() as other:
        assert other.error("SETRANGE", "k", 1 << 20, "x") == \
            b"ERR string exceeds maximum allowed size (proto-max-bulk-len)"
        assert other.error("APPEND", "k", "x") == \
            b"ERR string exceeds maximum allowed size (proto-max-bulk-len)"


def test_output_buffer_hard_limit(client, connect):
    client.ok("CONFIG", "SET", "client-output-buffer-limit", "normal 1mb 0 0")
    client.ok("SET", "k", "x" * 300_000)
    greedy = connect()
    identity = greedy.call("CLIENT", "ID")
    greedy.send_raw(encode("GET", "k") * 200)

    def gone():
        return b"id=%d " % identity not in client.call("CLIENT", "LIST")

    eventually(gone, "the client over its output limit is closed")
    client.ok("CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0")


def unread(client, identity):
    """Bytes that the server keeps for a client, None when it is gone."""
    text = client.call("CLIENT", "LIST", "ID", identity)
    found = re.search(rb" omem=([0-9]+) ", text)
    return int(found.group(1)) if found else None


def test_output_buffer_soft_limit(client, connect):
    """Over it for longer than its seconds; who does not read is noticed without new replies."""
    client.ok("CONFIG", "SET", "client-output-buffer-limit", "normal 0 500kb 1000")
    client.ok("SET", "k", "x" * 300_000)
    deaf, slow, modest = connect(), connect(), connect()
    names = [c.call("CLIENT", "ID") for c in (deaf, slow, modest)]
    deaf.send_raw(encode("GET", "k") * 40)
    slow.send_raw(encode("GET", "k") * 40)
    for name in names[:2]:
        eventually(lambda: unread(client, name) > 500 << 10, "more than the limit waits")
    assert len(slow.exchange(b"", 40)) == 40
    client.ok("CONFIG", "SET", "client-output-buffer-limit", "normal 0 500kb 1")
    eventually(lambda: unread(client, names[0]) is None, "it is closed", bound_s=20)
    assert slow.call("PING") == modest.call("PING") == b"PONG"
    client.ok("CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0")


@pytest.mark.any_threads
@pytest.mark.parametrize("value", [
    "normal 0 0", "normal 0 0 0 slave", "nobody 0 0 0", "master 0 0 0", "normal -1 0 0",
    "normal a 0 0", "", "normal 0 0 -1", "normal 0 0 x", "normal 1zb 0 0"])
def test_output_buffer_limit_values(client, oracle, value):
    with oracle.connect() as other:
        ours = client.call("CONFIG", "SET", "client-output-buffer-limit", value)
        theirs = other.call("CONFIG", "SET", "client-output-buffer-limit", value)
        assert ours == theirs
        assert client.call("CONFIG", "GET", "client-output-buffer-limit") == \
            other.call("CONFIG", "GET", "client-output-buffer-limit")


def test_hostile_sockets(server, connect):
    """RST, FIN, silence and half requests from many sockets; others are served throughout."""
    client = connect()
    halves = [b"", b"*", b"*1\r\n", b"*2\r\n$4\r\nEC", b"PIN", b"*1\r\n$4\r\nPING",
              b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000000\r\nabc", encode("PING") * 50]
    idle = []
    for turn in range(25):
        for half in halves:
            stranger = Connection(server.address())
            stranger.send_raw(half)
            if turn % 3 == 0:
                stranger.reset_hard()
            elif turn % 3 == 1:
                stranger.close()
            else:
                idle.append(stranger)
        assert client.call("PING") == b"PONG"
    for stranger in idle:
        stranger.reset_hard()
    eventually(lambda: parse_info(client.call("INFO", "clients"))["connected_clients"] == "1",
               "the strangers are gone")


BIG = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n"
ENDINGS = {
    "nothing": b"", "a half request": b"*2\r\n$3\r\nGET\r\n$1", "a request": b"GET k\r\n",
    "a request and a half": b"GET k\r\n*2\r\n$3\r\nGE", "half of a big one": BIG + b"x" * 50_000,
    "a big one": BIG + b"x" * 100_000 + b"\r\n", "replies off": b"CLIENT REPLY OFF\r\nGET k\r\n",
    "much": b"GET k\r\n" * 5000, "a broken one": b"*x\r\nabc",
}


@pytest.mark.parametrize("unix", [False, True], ids=["tcp", "unix"])
@pytest.mark.parametrize("what", sorted(ENDINGS))
def test_what_comes_together_with_its_end(server, connect, what, unix, threads):
    """All threads are held up while clients send and go, so that the last bytes and the end of the
    stream are met at once; none of them is forgotten."""
    client, sleeper = connect(), connect()
    strangers = [Connection(server.unix_address() if unix else server.address())
                 for _ in range(12 * threads)]
    for stranger in strangers:
        assert stranger.call("PING") == b"PONG"
    sleeper.send("DEBUG", "SLEEP", "0.3")
    time.sleep(0.05)
    client.send("SET", "x", "y")
    for number, stranger in enumerate(strangers):
        # Everybody first makes its thread wait for the lock that the sleeper holds.
        stranger.send_raw(b"SET other 1\r\n")
    time.sleep(0.05)
    for number, stranger in enumerate(strangers):
        stranger.sock.settimeout(0.5)
        try:
            stranger.send_raw(ENDINGS[what])
        except OSError:
            pass  # a Unix socket takes no more while nobody reads
        if number % 3 == 0:
            stranger.sock.shutdown(socket.SHUT_WR)
        elif number % 3 == 1 and not unix:
            stranger.reset_hard()
        else:
            stranger.close()
    assert sleeper.read() == client.read() == b"OK"
    eventually(lambda: parse_info(client.call("INFO", "clients"))["connected_clients"] == "2",
               "all of them have been seen to end")
    for stranger in strangers[::3]:
        frames = stranger.read_to_end()
        assert frames[0][1] == b"OK"
        stranger.close()


def half_open(server, count):
    """Clients that stop in the middle of a request; others are served, and little is kept."""
    halves = [b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000\r\n" + b"x" * 900, b"*2\r\n$4\r\nECHO\r\n$",
              b"*100\r\n", b"SET k v", b"*1\r\n$4\r\nPI"]
    strangers = []
    with server.connect() as client:
        before = int(parse_info(client.call("INFO", "memory"))["used_memory"])
        try:
            for number in range(count):
                strangers.append(Connection(server.address()))
                strangers[-1].send_raw(halves[number % len(halves)])
                if number % 100 == 0:
                    assert client.call("PING") == b"PONG"
            eventually(lambda: parse_info(client.call("INFO"))["connected_clients"]
                       == str(count + 1), "all have been accepted", bound_s=60)
            eventually(lambda: client.call("CLIENT", "LIST").count(b" qbuf=0 ") <= 1,
                       "what they sent has come", bound_s=60, pause_s=0.2)
            info = parse_info(client.call("INFO"))
        finally:
            for stranger in strangers:
                stranger.reset_hard()
        eventually(lambda: parse_info(client.call("INFO", "clients"))["connected_clients"] == "1",
                   "the strangers are gone", bound_s=60)
    assert (int(info["used_memory"]) - before) / count < 8192


def test_500_half_open_connections(make_server, ours_only):
    half_open(make_server(), 500)


@pytest.mark.slow
def test_10000_half_open_connections(make_server, ours_only):
    if descriptors() < 11_000:
        pytest.skip("the descriptor limit is below 11,000")
    half_open(make_server({"maxclients": "12000"}), 10_000)


def test_clients_that_vanish_with_a_large_reply_under_way(server, connect):
    client = connect()
    client.ok("SET", "k", "x" * 5_000_000)
    for turn in range(20):
        reader = Connection(server.address())
        reader.send_raw(encode("GET", "k") * 3)
        if turn % 2:
            reader.sock.recv(1000)
        reader.reset_hard()
        client.ok("SET", "k", "y" * (5_000_000 + turn))
    eventually(lambda: parse_info(client.call("INFO", "clients"))["connected_clients"] == "1",
               "the readers are gone")


def test_maxclients(make_server):
    server = make_server({"maxclients": "20"})
    kept = [server.connect()]
    eventually(lambda: parse_info(kept[0].call("INFO"))["connected_clients"] == "1",
               "the one who asked whether the server is up has gone")
    kept += [server.connect() for _ in range(19)]
    for client in kept:
        assert client.call("PING") == b"PONG"
    for _ in range(30):
        with Connection(server.address()) as extra:
            frames = extra.read_to_end()
            assert [raw for raw, _ in frames] == [b"-ERR max number of clients reached\r\n"]
    info = parse_info(kept[0].call("INFO"))
    assert info["connected_clients"] == "20"
    assert int(info["rejected_connections"]) == 30
    kept.pop().close()

    def admitted():
        with Connection(server.address()) as extra:
            extra.send("PING")
            try:
                return extra.read() == b"PONG"
            except (Closed, ConnectionResetError):
                return False

    eventually(admitted, "a place is free again")
    assert isinstance(kept[0].call("CONFIG", "SET", "maxclients", "0"), Error)
    for client in kept:
        client.close()


def test_announced_lengths_cost_nothing_until_bytes_arrive(server, client, ours_only):
    before = int(parse_info(client.call("INFO", "memory"))["used_memory"])
    strangers = []
    for header in (b"*2147483647\r\n", b"*1048576\r\n", b"*2\r\n$4\r\nECHO\r\n$536870912\r\n"):
        for _ in range(20):
            stranger = Connection(server.unix_address())
            stranger.send_pieces([header])
            strangers.append(stranger)
    client.call("PING")
    after = int(parse_info(client.call("INFO", "memory"))["used_memory"])
    for stranger in strangers:
        stranger.close()
    assert after - before < 32 << 20
