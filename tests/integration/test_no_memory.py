"""Requests that ask for more memory than there is get an error; nothing is changed, and the server
lives.  Builds for tests refuse by their seam (KEYDB_FAIL_ALLOCATIONS_ABOVE), release builds because
the process may not take more address space (RLIMIT_AS)."""

import resource

import pytest

from lib.resp import Closed, Error
from lib.server import is_redis, server_path

pytestmark = pytest.mark.skipif(is_redis(server_path()), reason="Redis ends itself")

SEAM_BYTES = 1 << 20
HEADROOM_BYTES = 40 << 20


class Scarce:
    """A server that is short of memory.  `piece` is an argument that one request may have, but not
    two of them with copies; `beyond` is a length that no string can have; `by_limit`: it is the
    operating system that refuses."""

    def __init__(self, server, piece, beyond, by_limit):
        self.server = server
        self.piece = piece
        self.beyond = beyond
        self.by_limit = by_limit

    def text(self, letter):
        return letter * self.piece


def address_space(pid):
    with open("/proc/%d/statm" % pid, encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


@pytest.fixture
def scarce(make_server, monkeypatch):
    monkeypatch.setenv("KEYDB_FAIL_ALLOCATIONS_ABOVE", str(SEAM_BYTES))
    server = make_server()
    with server.connect() as client:
        if isinstance(client.call("SETRANGE", "probe", str(2 * SEAM_BYTES), "x"), Error):
            return Scarce(server, 600 * 1000, 3 * 1000 * 1000, False)
        client.call("DEL", "probe")
    pid = server.process.pid
    limit = address_space(pid) + HEADROOM_BYTES
    resource.prlimit(pid, resource.RLIMIT_AS, (limit, limit))
    return Scarce(server, 8 * 1000 * 1000, 400 * 1000 * 1000, True)


def refused(reply):
    return isinstance(reply, Error) and reply.startswith(b"OOM ")


def fill(client):
    client.call("SET", "string", "s" * 2000)
    client.call("RPUSH", "list", "a", "b", "c")
    client.call("SADD", "set", "a", "b", "c")
    client.call("HSET", "hash", "a", "1", "b", "2")
    client.call("ZADD", "zset", "1", "a", "2", "b")
    client.call("XADD", "stream", "1-1", "field", "value")


@pytest.mark.parametrize("command", [
    ["SETRANGE", "string", "{beyond}", "x"],
    ["SETRANGE", "new", "{beyond}", "x"],
    ["SETBIT", "string", "{beyond_bits}", "1"],
    ["SETBIT", "new", "{beyond_bits}", "1"],
    ["BITFIELD", "string", "SET", "u8", "{beyond_bits}", "1"],
    ["BITFIELD", "new", "INCRBY", "i64", "{beyond_bits}", "1"],
], ids=lambda command: "-".join(command[:2]))
def test_lengths_beyond_the_memory(scarce, command):
    words = [word.format(beyond=scarce.beyond, beyond_bits=scarce.beyond * 8) for word in command]
    with scarce.server.connect() as client:
        fill(client)
        before = client.call("DEBUG", "DIGEST")
        for _ in range(3):
            assert refused(client.call(*words))
        assert client.call("DEBUG", "DIGEST") == before
        assert client.call("DBSIZE") == 6


@pytest.mark.parametrize("command", [
    ["RPUSH", "list", "A", "B", "C"],
    ["LPUSH", "new", "A", "B", "C"],
    ["SADD", "set", "A", "B", "C"],
    ["SADD", "new", "A", "B", "C"],
    ["HSET", "hash", "A", "1", "B", "2", "C", "3"],
    ["HSET", "new", "A", "1", "B", "2", "C", "3"],
    ["ZADD", "zset", "1", "A", "2", "B", "3", "C"],
    ["ZADD", "new", "1", "A", "2", "B", "3", "C"],
    ["GEOADD", "new", "1", "1", "A", "1", "1", "B", "1", "1", "C"],
    ["XADD", "stream", "*", "A", "B", "C", "x"],
    ["XADD", "new", "*", "A", "B", "C", "x"],
], ids=lambda command: "-".join(command[:2]))
@pytest.mark.parametrize("in_transaction", [False, True], ids=["alone", "exec"])
def test_elements_beyond_the_memory(scarce, command, in_transaction):
    words = [scarce.text(word) if word in ("A", "B", "C") else word for word in command]
    with scarce.server.connect() as client, scarce.server.connect() as other:
        fill(other)
        before = other.call("DEBUG", "DIGEST")
        for _ in range(3):
            outcome = ask(scarce, client, words, in_transaction)
            assert outcome in ("refused", "closed")
            assert other.call("DEBUG", "DIGEST") == before
            assert other.call("DBSIZE") == 6
            if outcome == "closed":
                return
        # One of them finds its place, on the thread that has given back what it took.
        assert client.call("SADD", "one", scarce.text("A")) == 1


def ask(scarce, client, words, in_transaction):
    """Sends a request; "refused" or what came instead.  "closed": there was no memory for the
    arguments themselves, which under RLIMIT_AS is a matter of how the address space was cut up by
    what came before; the log has to say that it was that."""
    try:
        if in_transaction:
            client.ok("MULTI")
            client.call(*words)
            reply = client.call("EXEC")
            reply = reply[0] if isinstance(reply, list) else reply
        else:
            reply = client.call(*words)
    except (Closed, OSError):
        assert scarce.by_limit and "no memory for its request" in scarce.server.output()
        return "closed"
    return "refused" if refused(reply) else reply


def test_a_string_grows_until_there_is_no_memory(scarce):
    with scarce.server.connect() as client:
        fill(client)
        length = 0
        for _ in range(10):
            reply = client.call("APPEND", "grown", scarce.text("x"))
            if refused(reply):
                break
            length += scarce.piece
            assert reply == length
        else:
            pytest.fail("it grew beyond the memory")
        assert client.call("STRLEN", "grown") == length
        assert client.call("GETRANGE", "grown", "-3", "-1") == b"xxx"[:length]
        assert client.call("DEL", "grown") == 1
        assert client.call("GET", "string") == b"s" * 2000


def test_an_argument_beyond_the_memory_ends_its_connection_only(scarce):
    with scarce.server.connect() as client, scarce.server.connect() as other:
        fill(other)
        with pytest.raises((Closed, OSError)):
            reply = client.call("SET", "new", "x" * (scarce.piece * 5))
            assert isinstance(reply, Error), reply
            client.call("PING")
        assert other.call("DBSIZE") == 6
