"""Links by TLS (tls-replication): both ways with redis-server, cuts, large data sets; MIGRATE."""

import re
import socket
import threading
import time

import pytest

from lib.bounds import eventually, scaled
from lib.replication import Load, check_equal, replication
from lib.resp import Error
from lib.seeds import generator
from lib.server import free_port
from lib.tls import context, make_pki

NOW = {"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "1", "repl-backlog-size": "64mb"}


@pytest.fixture(scope="session")
def pki(tmp_path_factory):
    return make_pki(str(tmp_path_factory.mktemp("pki")))


@pytest.fixture
def start(make_server, make_oracle, pki):
    """start(kind, **options): a server with a port for TLS, server.tls_port."""
    def make(kind, **options):
        port = free_port()
        options = dict(NOW, **pki.options(tls_port=str(port), tls_replication="yes"), **options)
        server = make_server(options) if kind == "ours" else make_oracle(options)
        server.tls_port = port
        return server
    return make


def is_up(replica):
    return replication(replica).get("master_link_status") == "up"


@pytest.mark.parametrize("primary_kind,replica_kind",
                         [("ours", "ours"), ("redis", "ours"), ("ours", "redis")])
def test_replication(start, primary_kind, replica_kind):
    primary, replica = start(primary_kind), start(replica_kind)
    noise = generator(1, "noise")
    with primary.connect() as c, replica.connect() as r:
        for i in range(10):
            c.ok("SET", "big%d" % i, noise.randbytes(1 << 20))
        r.ok("REPLICAOF", "127.0.0.1", primary.tls_port)
        eventually(lambda: is_up(replica), "link", 60)
        assert "port=%d," % replica.tls_port in replication(primary)["slave0"]
        with Load(primary, [generator(2, n) for n in range(2)]) as load:
            for _ in range(2):
                begun = load.commands
                eventually(lambda at=begun: load.commands > at + 300 or load.errors, "load", 60)
                eventually(lambda: r.call("CLIENT", "KILL", "TYPE", "master") == 1, "cut", 60)
                eventually(lambda: is_up(replica), "link", 60)
        c.ok("SET", "large", noise.randbytes(3000000))
    check_equal(primary, replica)
    assert primary.info("stats")["sync_full"] == "1"


def test_who_is_not_trusted(start, pki, make_server):
    """Neither a primary that does not speak TLS, nor one of another authority."""
    replica = start("ours")
    plain = make_server(NOW)
    with replica.connect() as r:
        r.ok("REPLICAOF", "127.0.0.1", plain.port)
        eventually(lambda: "TLS to another server" in replica.output(), "refused", 30)
        assert not is_up(replica)
        # By plain links it goes on.
        r.ok("CONFIG", "SET", "tls-replication", "no")
        eventually(lambda: is_up(replica), "link", 60)
        r.ok("REPLICAOF", "NO", "ONE")


def test_option_needs_certificates(make_server):
    server = make_server({"tls-replication": "yes"}, start=False)
    assert "tls-cert-file" in server.start_fails()
    server = make_server()
    with server.connect() as c:
        assert isinstance(c.call("CONFIG", "SET", "tls-replication", "yes"), Error)
        assert c.call("CONFIG", "GET", "tls-replication") == [b"tls-replication", b"no"]


def test_migrate(start):
    here, there = start("ours"), start("redis")
    noise = generator(3, "noise").randbytes(2 << 20)
    with here.connect() as c, there.connect() as d:
        c.ok("SET", "a", noise)
        c.call("RPUSH", "l", "1", "2")
        c.ok("MIGRATE", "127.0.0.1", there.tls_port, "", 0, 20000, "KEYS", "a", "l")
        assert c.call("EXISTS", "a", "l") == 0
        assert d.call("GET", "a") == noise and d.call("LRANGE", "l", 0, -1) == [b"1", b"2"]
        c.ok("SET", "b", "1")
        assert c.call("EVAL", "return redis.call('MIGRATE', '127.0.0.1', ARGV[1], 'b', 0, 20000)", 0,
                      there.tls_port) == b"OK"
        assert d.call("GET", "b") == b"1"


class SlowReader(threading.Thread):
    """A replica by TLS whose socket takes little at a time; it fetches a data set and leaves."""

    def __init__(self, port, trust, pause_s):
        super().__init__()
        self.port, self.trust, self.pause_s = port, trust, pause_s
        self.failure = "not run"

    def run(self):
        try:
            self.failure = None if self._fetch() else "the stream ended before the data set did"
        except OSError as error:
            self.failure = repr(error)

    def _fetch(self):
        with socket.socket() as plain:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            plain.settimeout(scaled(40))
            plain.connect(("127.0.0.1", self.port))
            with self.trust.wrap_socket(plain, server_hostname="localhost") as sock:
                sock.sendall(b"REPLCONF capa eof capa psync2\r\nPSYNC ? -1\r\n")
                return self._read(sock)

    def _read(self, sock):
        head, tail, mark = b"", b"", None
        while mark is None or not tail.endswith(mark):
            data = sock.recv(16384)
            if not data:
                return False
            if mark is None:
                head += data
                found = re.search(rb"\$EOF:(.{40})\r\n", head)
                mark, tail = (found[1], head[found.end():]) if found else (None, b"")
            else:
                tail = tail[-40:] + data
            time.sleep(self.pause_s)
        return True


def test_transfers_to_slow_readers(start, pki):
    """A feed whose last record stands half in a full socket goes on when there is room."""
    primary = start("ours")
    trust = context(pki.cert("ca"), pki.cert("client"), pki.key("client"))
    noise = generator(4, "noise")
    with primary.connect() as c:
        for i in range(20):
            c.ok("SET", "big%d" % i, noise.randbytes(100000 + 7919 * i))
    for turn in range(3):
        readers = [SlowReader(primary.tls_port, trust, 0.0005 * (1 + turn)) for _ in range(6)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        assert [r.failure for r in readers] == [None] * len(readers)
