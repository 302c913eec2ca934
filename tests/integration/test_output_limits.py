"""client-output-buffer-limit counts what a client is told, whatever its socket would take: over it the
connection ends before a byte of the reply that passed it. Each way to be told much, beside Redis."""

import pytest

from lib.bounds import eventually
from lib.replica import MODERN
from lib.replication import replication
from lib.resp import Closed, encode

pytestmark = pytest.mark.any_threads

KB = 1000
LIMIT = "normal 100000 0 0 pubsub 100000 0 0"


@pytest.fixture(params=["ours", "redis"])
def side(request, make_server, make_oracle):
    """The server to ask: what is here holds for both."""
    server = (make_server if request.param == "ours" else make_oracle)({"save": ""})
    with server.connect() as c:
        c.ok("CONFIG", "SET", "client-output-buffer-limit", LIMIT)
    return server


@pytest.fixture
def admin(side):
    with side.connect() as c:
        c.call("EVAL", "for i = 1, 1500 do redis.call('RPUSH', 'list', string.rep('v', 100)) "
               "redis.call('HSET', 'hash', i, string.rep('v', 100)) "
               "redis.call('SET', 'key:' .. i .. string.rep('k', 100), '') end "
               "redis.call('SET', 'string', string.rep('s', 150000)) "
               "redis.call('SET', 'huge', string.rep('s', 5000000)) "
               "redis.call('SET', 'some', string.rep('s', 1000)) ", 0)
        yield c


def everything(c):
    """Bytes until the connection ends."""
    got = b""
    try:
        while True:
            piece = c.sock.recv(1 << 16)
            if not piece:
                return got
            got += piece
    except ConnectionResetError:
        return got


def closed(server):
    """How many were closed for it; Redis 7.0 does not tell."""
    count = server.info("stats").get("client_output_buffer_limit_disconnections")
    return count and int(count)


# Requests, sent at once, that are told more than 100 kB.
MUCH = {
    "a string": [["GET", "string"]],
    "a huge string": [["GET", "huge"]],
    "a list": [["LRANGE", "list", 0, -1]],
    "a hash": [["HGETALL", "hash"]],
    "keys": [["KEYS", "*"]],
    "scan": [["SCAN", 0, "COUNT", 100_000]],
    "mget": [["MGET"] + ["some"] * 150],
    "exec": [["MULTI"]] + [["GET", "some"]] * 150 + [["EXEC"]],
    "a script": [["EVAL", "return redis.call('LRANGE', 'list', 0, -1)", 0]],
    "a pipeline": [["GET", "some"]] * 200,
    "a pipeline of reads and writes": [["INCR", "n"], ["GET", "some"]] * 150,
    "echo": [["ECHO", "e" * 150_000]],
    "no-evict": [["CLIENT", "NO-EVICT", "ON"], ["GET", "string"]],
    "resp3": [["HELLO", 3], ["HGETALL", "hash"]],
}


@pytest.mark.parametrize("what", MUCH)
def test_over_the_limit(side, admin, what):
    with side.connect() as c:
        for _ in range(3):
            assert len(c.call("GET", "some")) == 1000  # answered in good time, it counts no more
        c.send_raw(b"".join(encode(*words) for words in MUCH[what]))
        got = everything(c)
    # Of the reply that passed it nothing is sent; what came before may be.
    assert len(got) < 100 * KB and not got.startswith((b"$150000", b"$5000000", b"*150", b"*3000"))
    assert admin.call("PING") == b"PONG"
    eventually(lambda: closed(side) in (1, None), "it is counted")


WITHIN = [["GET", "some"], ["LRANGE", "list", 0, 800], ["MGET"] + ["some"] * 90]


def test_within_the_limit(side, admin):
    with side.connect() as c:
        for _ in range(5):
            for words in WITHIN:
                c.call(*words)
    assert closed(side) in (0, None)


def test_the_smallest_limit_leaves_room(side, admin):
    """What Redis has in a client's own buffer is not counted."""
    admin.ok("CONFIG", "SET", "client-output-buffer-limit", "normal 1 0 0")
    with side.connect() as c:
        for _ in range(50):
            assert len(c.call("GET", "some")) == 1000
        c.send("GET", "string")
        assert everything(c) == b""


def test_messages(side, admin):
    """A message of 150 kB, and one within the limit."""
    with side.connect() as subscriber, side.connect() as other:
        subscriber.call("SUBSCRIBE", "channel")
        other.call("PSUBSCRIBE", "other*")
        assert admin.call("PUBLISH", "channel", "m" * 50_000) == 1
        assert len(subscriber.read()[2]) == 50_000
        assert admin.call("PUBLISH", "channel", "m" * 150_000) == 1
        assert everything(subscriber) == b""
        assert admin.call("PUBLISH", "others", "m" * 150_000) == 1
        assert everything(other) == b""


def test_invalidations(side, admin):
    admin.ok("CONFIG", "SET", "client-output-buffer-limit", "normal 20000 0 0")
    names = ["%d%s" % (i, "n" * 1000) for i in range(60)]
    admin.call("MSET", *[word for name in names for word in (name, "")])
    with side.connect() as c:
        c.hello(3)
        c.call("CLIENT", "TRACKING", "ON", "BCAST")
        admin.call("DEL", *names)
        assert everything(c) == b""


def test_monitor(side, admin):
    """The line of a large command."""
    with side.connect() as c:
        c.call("MONITOR")
        admin.ok("SET", "a", "x" * 150_000)
        assert len(everything(c)) < 1000


def test_blocked(side, admin):
    """The reply of one who waited."""
    with side.connect() as c:
        c.send("BLPOP", "later", 0)
        eventually(lambda: side.info("clients")["blocked_clients"] == "1", "waits")
        admin.call("RPUSH", "later", "v" * 150_000)
        assert everything(c) == b""


@pytest.fixture
def primary(request, make_server, make_oracle):
    return (make_server if request.param == "ours" else make_oracle)(
        {"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "3600", "save": "",
         "repl-backlog-size": "1mb"})


@pytest.mark.parametrize("primary", ["ours", "redis"], indirect=True)
def test_replicas(primary, play):
    """The stream counts before the socket takes it; a limit below the backlog's size is taken as that."""
    with primary.connect() as c:
        c.ok("CONFIG", "SET", "client-output-buffer-limit", "replica 100kb 0 0")
        p = play(primary, MODERN)
        offset = p.full()[1]
        eventually(lambda: (p.c.send("REPLCONF", "ACK", offset),
                            "state=online" in replication(primary).get("slave0", ""))[1], "online")
        p.c.send("REPLCONF", "ACK", offset)
        c.ok("SET", "a", "x" * 500_000)
        assert p.command() == [b"SELECT", b"0"]
        assert len(p.command()[2]) == 500_000
        c.ok("SET", "a", "x" * 2_000_000)
        with pytest.raises((Closed, ConnectionResetError)):
            p.take(1_500_000)
        eventually(lambda: replication(primary)["connected_slaves"] == "0", "closed")


def test_beside_maxmemory_clients(client, connect):
    """Either closes; neither lets a torn reply through."""
    client.ok("CONFIG", "SET", "client-output-buffer-limit", "normal 1mb 0 0", "maxmemory-clients", 64 << 20)
    client.ok("SET", "k", "x" * 3_000_000)
    c = connect()
    c.send("GET", "k")
    assert everything(c) == b""
    assert client.call("STRLEN", "k") == 3_000_000
