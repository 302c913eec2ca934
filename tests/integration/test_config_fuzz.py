"""Every option that CONFIG GET names, set to boundary values and to what is no value at all: the
server answers each, keeps what it refuses to change, lives, and writes a file that it can read."""

import pytest

from lib.boundary import B
from lib.resp import Error
from lib.server import is_redis, server_path

pytestmark = pytest.mark.any_threads

# These would move the server away from its tests, leave files behind, or (Redis) hang it.
KEEP = {b"appendonly", b"port", b"bind", b"unixsocket", b"dir", b"logfile", b"requirepass",
        b"tls-port"}
TOO_MUCH_FOR_REDIS = {b"maxclients", b"oom-score-adj", b"oom-score-adj-values", b"maxmemory",
                      b"maxmemory-clients", b"save", b"appendonly", b"io-threads",
                      b"repl-backlog-size", b"replicaof", b"slaveof", b"masterauth", b"hz"}
ODD = B + ["yes", "no", "x" * 3000, "a b c", "\"", "\\", "1kb", "9" * 25 + "gb", "\x00", "a\r\nb",
           "%d%s%n", "*", "normal 0 0 0", "-" * 20]


def test_every_option_with_odd_values(make_server):
    server = make_server(config="# nothing\n", files=["active-node"])
    with server.connect() as client:
        flat = client.call("CONFIG", "GET", "*")
        options = dict(zip(flat[0::2], flat[1::2]))
        skipped = KEEP | (TOO_MUCH_FOR_REDIS if is_redis(server_path()) else set())
        for name in sorted(set(options) - skipped):
            for text in ODD:
                reply = client.call("CONFIG", "SET", name, text)
                now = client.call("CONFIG", "GET", name)
                assert len(now) == 2 and now[0] == name
                if isinstance(reply, Error):
                    assert now[1] == options[name], (name, text)
                elif now[1] != options[name]:
                    client.ok("CONFIG", "SET", name, options[name])
        flat = client.call("CONFIG", "GET", "*")
        assert dict(zip(flat[0::2], flat[1::2])) == options
        client.ok("CONFIG", "REWRITE")
    again = make_server(config=server.read("server.conf"))
    with again.connect() as client:
        assert client.call("PING") == b"PONG"
