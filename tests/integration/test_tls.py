"""TLS: certificates, versions, sessions, hostile peers, and everything that a plain connection can."""

import contextlib
import os
import shutil
import socket
import ssl
import threading
import time

import pytest
import redis

from lib.bounds import eventually, scaled
from lib.resp import Closed, Connection, encode
from lib.server import free_port, parse_info
from lib.tls import TlsConnection, context, make_pki, openssl


TLS12, TLS13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
VERSIONS = pytest.mark.parametrize("version", [TLS12, TLS13], ids=["1.2", "1.3"])
FAILED = (b"ERR CONFIG SET failed (possibly related to argument '%s') - Unable to update TLS "
          b"configuration. Check server logs.")


@pytest.fixture(scope="session")
def pki(tmp_path_factory):
    return make_pki(str(tmp_path_factory.mktemp("pki")))


class Tls:
    """A server with both ports, and clients of it."""

    def __init__(self, make_server, pki, **more):
        self.port = free_port()
        self.pki = pki
        options = pki.options(tls_port=str(self.port), **more)
        self.server = make_server(options)
        self.clients = []

    def context(self, cert="client", **more):
        more.setdefault("ca", self.pki.cert("ca"))
        return context(cert=cert and self.pki.cert(cert), key=cert and self.pki.key(cert), **more)

    def connect(self, with_context=None, **more):
        made = TlsConnection(("127.0.0.1", self.port), with_context or self.context(), **more)
        self.clients.append(made)
        return made

    def plain(self):
        made = Connection(("127.0.0.1", self.port))
        self.clients.append(made)
        return made

    def refuses(self, with_context):
        """Whether the server does not talk to such a client (TLS 1.3 tells it after its hello)."""
        try:
            self.connect(with_context).call("PING")
        except (ssl.SSLError, ConnectionResetError, BrokenPipeError, Closed):
            return True
        return False

    def close(self):
        for client in self.clients:
            client.close()


@pytest.fixture
def start(make_server, pki):
    started = []

    def make(**more):
        started.append(Tls(make_server, pki, **more))
        return started[-1]

    yield make
    for tls in started:
        tls.close()


@pytest.fixture
def tls(start):
    return start()


# ---- what a connection carries

@VERSIONS
def test_commands(tls, version):
    c = tls.connect(tls.context(version=version))
    assert c.call("PING") == b"PONG" and c.sock.version() == version.name.replace("_", ".")
    c.ok("SET", "k", "v")
    assert c.call("GET", "k") == b"v"
    c.hello(3)
    assert c.call("HGETALL", "none").as_dict() == {}
    line = c.call("CLIENT", "INFO").decode()
    assert " laddr=127.0.0.1:%d " % tls.port in line and " flags=N " in line
    c.ok("QUIT")
    assert c.read_to_end() == []
    assert c.sock.recv(10) == b""  # said goodbye: not a torn stream, which would be an error


@VERSIONS
def test_pipelines(tls, version):
    c = tls.connect(tls.context(version=version))
    for size in (1, 10, 1000, 20000):
        commands = [["SET", "k%d" % n, "v%d" % n * (n % 50)] for n in range(size)]
        commands += [["GET", "k%d" % n] for n in range(size)]
        replies = c.pipeline(commands)
        assert replies[:size] == [b"OK"] * size
        assert replies[size:] == [b"v%d" % n * (n % 50) for n in range(size)]


@VERSIONS
def test_large_values(tls, version):
    c = tls.connect(tls.context(version=version))
    for size in (16383, 16384, 16385, 40000, 100000, 1 << 20, 5 * 1024 * 1024 + 17):
        value = os.urandom(1024) * (size // 1024) + b"x" * (size % 1024)
        c.ok("SET", "big", value)
        assert c.call("GET", "big") == value
        assert c.pipeline([["GET", "big"], ["PING"], ["SET", "two", value], ["GET", "two"]]) == [
            value, b"PONG", b"OK", value]


def test_many_pieces_to_a_slow_reader(tls):
    """Replies of many pieces, some by reference, when the socket is full in the middle."""
    c = tls.connect()
    c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    large = b"L" * 300000
    c.ok("SET", "large", large)
    c.ok("SET", "small", "s")
    keys = ["small", "large", "small", "none"] * 30
    c.send("MGET", *keys)
    c.send("PING")
    time.sleep(0.1)
    value = {"small": b"s", "large": large, "none": None}
    assert c.read() == [value[k] for k in keys]
    assert c.read() == b"PONG"


def test_each_byte_alone(tls):
    """The bytes of a whole session, handshake included, one TCP segment each."""
    raw = socket.create_connection(("127.0.0.1", tls.port))
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    raw.settimeout(scaled(20))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = tls.context().wrap_bio(incoming, outgoing, server_hostname="localhost")

    def flush():
        for byte in outgoing.read():
            raw.sendall(bytes([byte]))

    def until(step):
        while True:
            try:
                result = step()
                flush()
                return result
            except ssl.SSLWantReadError:
                flush()
                data = raw.recv(65536)
                assert data
                incoming.write(data)

    with raw:
        until(session.do_handshake)
        session.write(encode("SET", "k", "v" * 100) + encode("GET", "k") + encode("PING"))
        flush()
        got = b""
        while not got.endswith(b"+PONG\r\n"):
            got += until(lambda: session.read(65536))
        assert got == b"+OK\r\n$100\r\n" + b"v" * 100 + b"\r\n+PONG\r\n"


@pytest.mark.any_threads
def test_split_at_every_byte(tls):
    """A record with a pipeline, its two parts with a pause between them."""
    expected = b"+OK\r\n$1\r\nv\r\n"
    for split in range(1, 90, 2):
        raw = socket.create_connection(("127.0.0.1", tls.port))
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        raw.settimeout(scaled(20))
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = tls.context(version=TLS12).wrap_bio(incoming, outgoing, server_hostname="localhost")
        with raw:
            while True:
                try:
                    session.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    raw.sendall(outgoing.read())
                    incoming.write(raw.recv(65536))
            session.write(encode("SET", "k", "v") + encode("GET", "k"))
            record = outgoing.read()
            raw.sendall(record[:split])
            time.sleep(0.001)
            raw.sendall(record[split:])
            got = b""
            while len(got) < len(expected):
                try:
                    got += session.read(1000)
                except ssl.SSLWantReadError:
                    incoming.write(raw.recv(65536))
            assert got == expected


def test_requests_with_the_handshake(tls):
    """A client that sends requests in the same segment as the end of its handshake."""
    raw = socket.create_connection(("127.0.0.1", tls.port))
    raw.settimeout(scaled(20))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = tls.context(version=TLS13).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with raw:
        while True:
            try:
                session.do_handshake()
                break
            except ssl.SSLWantReadError:
                raw.sendall(outgoing.read())
                incoming.write(raw.recv(65536))
        session.write(encode("PING") * 3)
        raw.sendall(outgoing.read())
        got = b""
        while len(got) < 21:
            try:
                got += session.read(1000)
            except ssl.SSLWantReadError:
                incoming.write(raw.recv(65536))
        assert got == b"+PONG\r\n" * 3


def test_pub_sub(tls):
    subscriber, publisher = tls.connect(), tls.connect()
    assert subscriber.call("SUBSCRIBE", "ch") == [b"subscribe", b"ch", 1]
    for n in range(200):
        publisher.send("PUBLISH", "ch", "m%d" % n * (n * 10 + 1))
    for n in range(200):
        assert subscriber.read() == [b"message", b"ch", b"m%d" % n * (n * 10 + 1)]
        assert publisher.read() == 1


def test_blocked_and_monitor(tls):
    waiter, monitor, worker = tls.connect(), tls.connect(), tls.connect()
    monitor.ok("MONITOR")
    waiter.send("BLPOP", "list", "0")
    eventually(lambda: b"blocked_clients:1\r" in worker.call("INFO", "clients"), "it waits")
    assert worker.call("RPUSH", "list", "x" * 50000) == 1
    assert waiter.read() == [b"list", b"x" * 50000]
    while b'"BLPOP" "list" "0"' not in monitor.read():
        pass  # INFO


def test_protocol_error_and_close_after_reply(tls):
    c = tls.connect()
    c.send_raw(encode("PING") + b"*1\r\n$x\r\n" + encode("PING"))
    frames = [tree for _, tree in c.read_to_end()]
    assert frames[0] == b"PONG" and frames[1].startswith(b"ERR Protocol error") and len(frames) == 2


def test_output_limit(tls):
    c, watcher = tls.connect(), tls.server.connect()
    with watcher:
        watcher.ok("SET", "big", "x" * 1000000)
        watcher.ok("CONFIG", "SET", "client-output-buffer-limit", "normal 20mb 0 0")
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.send_raw(encode("GET", "big") * 60)
        eventually(lambda: watcher.call("CLIENT", "LIST").count(b"id=") == 1, "it is cut off")


def test_query_limit_and_idle_time(start):
    tls = start(client_query_buffer_limit="1mb", timeout="1")
    c = tls.connect()
    c.send_raw(b"*1\r\n$30000000\r\n")
    with pytest.raises((Closed, OSError)):
        c.send_raw(b"x" * 3000000)
        c.read()
    assert tls.connect().read_to_end() == []


# ---- many clients, several threads

def test_many_clients(tls):
    clients = [tls.connect() for _ in range(60)]
    for number, c in enumerate(clients):
        c.send("INCR", "n%d" % (number % 7))
    for c in clients:
        assert c.read() >= 1
    with tls.server.connect() as watcher:
        assert sum(int(v) for v in watcher.call("MGET", *["n%d" % n for n in range(7)])) == 60
        for c in clients[::2]:
            c.close()
        eventually(lambda: b"connected_clients:31\r" in watcher.call("INFO", "clients"), "half left")


def test_redis_py(tls):
    r = redis.Redis("localhost", tls.port, ssl=True, ssl_ca_certs=tls.pki.cert("ca"),
                    ssl_certfile=tls.pki.cert("client"), ssl_keyfile=tls.pki.key("client"))
    failures = []

    def work(number):
        try:
            for turn in range(30):
                with r.pipeline(transaction=turn % 2) as pipe:
                    for n in range(20):
                        pipe.set("%d:%d" % (number, n), "%d" % turn * 1000)
                        pipe.get("%d:%d" % (number, n))
                    assert pipe.execute()[1::2] == [b"%d" % turn * 1000] * 20
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    p = r.pubsub()
    p.subscribe("ch")
    assert p.get_message(timeout=scaled(10))["type"] == "subscribe"
    r.publish("ch", "hello")
    assert p.get_message(timeout=scaled(10))["data"] == b"hello"
    p.close()
    r.close()


def test_moved_between_threads(tls, threads):
    """Busy clients of one thread are spread; their TLS goes with them."""
    if threads < 2:
        pytest.skip("needs two threads")
    clients = [tls.connect() for _ in range(2 * threads)]

    def home(c):
        return parse_info(c.call("INFO", "clients", "threads"))["current_client_thread"]

    homes = [home(c) for c in clients]
    first, second = next((a, b) for a in range(len(clients)) for b in range(a)
                         if homes[a] == homes[b])
    busy = [clients[first], clients[second]]
    with tls.server.connect() as watcher:
        watcher.ok("DEBUG", "EAGER-BALANCE", 1)

        def apart():
            for number, c in enumerate(busy):
                replies = c.pipeline([["SET", "busy%d" % number, "x" * 2000]] * 20 +
                                     [["GET", "busy%d" % number]] * 20 + [["ECHO", number]])
                assert replies == [b"OK"] * 20 + [b"x" * 2000] * 20 + [b"%d" % number]
            return home(busy[0]) != home(busy[1])

        eventually(apart, "they are apart", bound_s=60, pause_s=0)
        assert int(parse_info(watcher.call("INFO", "threads"))["clients_moved"]) >= 1
    for c in busy:
        assert c.call("PING") == b"PONG"


def test_kill_and_flood(tls):
    """Connections are killed while pipelines longer than a record are under way."""
    stop = threading.Event()
    failures = []

    def flood():
        while not stop.is_set():
            try:
                with TlsConnection(("127.0.0.1", tls.port), tls.context()) as c:
                    while not stop.is_set():
                        c.pipeline([["SET", "k", "x" * 500]] * 100 + [["GET", "k"]] * 100)
            except (OSError, Closed):
                pass
            except Exception as error:
                failures.append(error)
                return

    workers = [threading.Thread(target=flood) for _ in range(4)]
    for worker in workers:
        worker.start()
    try:
        with tls.server.connect() as killer:
            for _ in range(60):
                killer.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
                time.sleep(0.01)
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    assert not failures
    assert tls.connect().call("PING") == b"PONG"


# ---- who is let in

@VERSIONS
def test_client_certificates(start, pki, version):
    tls = start()
    nobody = tls.context(cert=None, version=version)
    other = context(ca=pki.cert("ca"), cert=pki.stranger.cert("client"),
                    key=pki.stranger.key("client"), version=version)
    expired = tls.context(cert="expired", version=version)
    good = tls.context(version=version)
    for mode, lets_in in (("yes", [good]), ("optional", [good, nobody]),
                          ("no", [good, nobody, other, expired])):
        with tls.server.connect() as c:
            c.ok("CONFIG", "SET", "tls-auth-clients", mode)
        for case in (good, nobody, other, expired):
            assert tls.refuses(case) == (case not in lets_in), (mode, case)


def test_wrong_authority_on_the_client(tls, pki):
    with pytest.raises(ssl.SSLCertVerificationError):
        tls.connect(context(ca=pki.stranger.cert("stranger")))
    assert tls.connect().call("PING") == b"PONG"


def test_versions(start):
    tls = start(tls_protocols="TLSv1.3")
    assert tls.refuses(tls.context(version=TLS12)) and not tls.refuses(tls.context(version=TLS13))
    with tls.server.connect() as c:
        c.ok("CONFIG", "SET", "tls-protocols", "TLSv1.2")
        assert tls.refuses(tls.context(version=TLS13)) and not tls.refuses(tls.context(version=TLS12))
        c.ok("CONFIG", "SET", "tls-protocols", "")
        assert not tls.refuses(tls.context(version=TLS13))
        assert not tls.refuses(tls.context(version=TLS12))


def test_ciphers(start):
    tls = start(tls_ciphers="ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256",
                tls_ciphersuites="TLS_CHACHA20_POLY1305_SHA256", tls_prefer_server_ciphers="yes")
    assert tls.connect(tls.context(version=TLS13)).sock.cipher()[0] == "TLS_CHACHA20_POLY1305_SHA256"
    wish = tls.context(version=TLS12)
    wish.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384")
    assert tls.connect(wish).sock.cipher()[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"
    with tls.server.connect() as c:
        c.ok("CONFIG", "SET", "tls-prefer-server-ciphers", "no")
    assert tls.connect(wish).sock.cipher()[0] == "ECDHE-ECDSA-AES128-GCM-SHA256"


@pytest.mark.any_threads
def test_dh_parameters(start, pki, tmp_path):
    """A client that can nothing but Diffie-Hellman with an RSA certificate (made for this test)."""
    params = str(tmp_path / "dh.pem")
    # A fixed group of RFC 7919: nothing to compute.
    openssl("genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt", "group:ffdhe2048", "-out", params)
    key, cert = str(tmp_path / "rsa.key"), str(tmp_path / "rsa.crt")
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-subj",
            "/CN=localhost", "-days", "3", "-addext", "subjectAltName=DNS:localhost")
    tls = start(tls_dh_params_file=params, tls_cert_file=cert, tls_key_file=key)
    wish = tls.context(ca=cert, version=TLS12)
    wish.set_ciphers("DHE-RSA-AES128-GCM-SHA256")
    assert tls.connect(wish).sock.cipher()[0] == "DHE-RSA-AES128-GCM-SHA256"
    with tls.server.connect() as c:
        assert c.error("CONFIG", "SET", "tls-dh-params-file", "/nonexistent") == \
            FAILED % b"tls-dh-params-file"
        assert c.error("CONFIG", "SET", "tls-dh-params-file", cert) == FAILED % b"tls-dh-params-file"
        c.ok("CONFIG", "SET", "tls-dh-params-file", "")
    assert tls.connect(wish).sock.cipher()[0] == "DHE-RSA-AES128-GCM-SHA256"


def test_allowlist(start, pki):
    tls = start(tls_allowlist=["nobody", "*.example"])
    assert not tls.refuses(tls.context())
    with tls.server.connect() as c:
        def let_in(*words):
            c.ok("CONFIG", "SET", "tls-allowlist", " ".join(words))
            assert c.call("CONFIG", "GET", "tls-allowlist")[1].decode() == " ".join(words)
            return not tls.refuses(tls.context(cert="named"))

        pki.make("named", "Boss", san="DNS:a.example.org,email:me@x.org,URI:spiffe://x/y,"
                 "IP:10.1.2.3,IP:2001:db8::1")
        for words in (["Boss"], ["B?ss"], ["A.EXAMPLE.*"], ["me@x.org"], ["spiffe://x/*"],
                      ["10.1.2.*"], ["2001:db8::1"], ["x", "y", "*org"], []):
            assert let_in(*words), words
        for words in (["boss"], ["Bos"], ["example.org"], ["me@x"], ["spiffe://x"], ["10.1.2.4"]):
            assert not let_in(*words), words
        # Nobody without a name.
        c.ok("CONFIG", "SET", "tls-auth-clients", "optional")
        assert tls.refuses(tls.context(cert=None))
        assert c.error("CONFIG", "SET", "tls-allowlist", '"" x')


@pytest.mark.any_threads
def test_a_nul_in_a_name(start, pki):
    """A name that ends in the middle for whoever takes it for a C string."""
    # SEQUENCE { [2] "boss\0evil" }: a DNS name
    der = ":".join("%02x" % byte for byte in b"\x30\x0b\x82\x09boss\0evil")
    pki.make("nul", "x", san="DER:" + der)
    tls = start(tls_allowlist="boss*")
    assert tls.refuses(tls.context(cert="nul"))
    with tls.server.connect() as c:
        c.ok("CONFIG", "SET", "tls-allowlist", "x")
        assert not tls.refuses(tls.context(cert="nul"))


# ---- sessions

@VERSIONS
def test_sessions_are_resumed(start, version):
    tls = start()
    wish = tls.context(version=version)

    def session_of(c):
        assert c.call("PING") == b"PONG"  # behind the ticket of TLS 1.3
        return c.sock.session

    first = tls.connect(wish)
    kept = session_of(first)
    assert not first.sock.session_reused
    second = tls.connect(wish, session=kept)
    assert second.call("PING") == b"PONG" and second.sock.session_reused
    with tls.server.connect() as c:
        # Who is not on the list any more is not let in with an old session either.
        c.ok("CONFIG", "SET", "tls-allowlist", "nobody")
        with pytest.raises((Closed, OSError)):
            tls.connect(wish, session=kept).call("PING")
        c.ok("CONFIG", "SET", "tls-allowlist", "")
        c.ok("CONFIG", "SET", "tls-session-caching", "no")
    first = tls.connect(wish)
    kept = session_of(first)
    second = tls.connect(wish, session=kept) if kept else tls.connect(wish)
    assert second.call("PING") == b"PONG" and not second.sock.session_reused


# ---- keys

def test_chain_and_password(start, pki, tmp_path):
    pki.make("between", is_authority=True, san=None)
    pki.make("leaf", signer="between", password="secret")
    chain = str(tmp_path / "chain.crt")
    with open(chain, "wb") as out:
        for name in ("leaf", "between"):
            with open(pki.cert(name), "rb") as part:
                shutil.copyfileobj(part, out)
    tls = start(tls_cert_file=chain, tls_key_file=pki.key("leaf"), tls_key_file_pass="secret")
    assert tls.connect().call("PING") == b"PONG"
    with tls.server.connect() as c:
        assert c.error("CONFIG", "SET", "tls-key-file-pass", "wrong") == FAILED % b"tls-key-file-pass"
        assert c.error("CONFIG", "SET", "tls-key-file-pass", "") == FAILED % b"tls-key-file-pass"
        assert c.call("CONFIG", "GET", "tls-key-file-pass")[1] == b"secret"
    assert tls.connect().call("PING") == b"PONG"


# ---- configuration while it runs

def serial(connection):
    return connection.sock.getpeercert()["serialNumber"]


def test_reload_keeps_connections(start, pki, tmp_path):
    """The files are replaced under their names, while clients work."""
    cert, key = str(tmp_path / "s.crt"), str(tmp_path / "s.key")
    pki.make("second")

    def put(name):
        shutil.copy(pki.cert(name), cert)
        shutil.copy(pki.key(name), key)

    put("server")
    tls = start(tls_cert_file=cert, tls_key_file=key)
    old = tls.connect()
    first = serial(old)
    stop, failures, counts = threading.Event(), [], [0] * 4

    def work(number):
        try:
            lasting = TlsConnection(("127.0.0.1", tls.port), tls.context())
            while not stop.is_set():
                with TlsConnection(("127.0.0.1", tls.port), tls.context()) as c:
                    assert c.call("PING") == b"PONG"
                lasting.ok("SET", "k%d" % number, "x" * 3000)
                counts[number] += 1
            lasting.close()
        except Exception as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    try:
        with tls.server.connect() as c:
            for turn in range(20):
                put("second" if turn % 2 == 0 else "server")
                c.ok("CONFIG", "SET", "tls-cert-file", cert)
                done = list(counts)
                eventually(lambda: failures or all(a > b for a, b in zip(counts, done)), "work")
            put("second")
            c.ok("CONFIG", "SET", "tls-cert-file", cert, "tls-key-file", key)
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    assert not failures
    assert serial(tls.connect()) != first and old.call("PING") == b"PONG" and serial(old) == first


def test_all_or_none(start, pki, tmp_path):
    """What is refused leaves everything as it was, also what the same command would have changed."""
    cert, key = str(tmp_path / "s.crt"), str(tmp_path / "s.key")
    shutil.copy(pki.cert("server"), cert)
    shutil.copy(pki.key("server"), key)
    pki.make("third")
    tls = start(tls_cert_file=cert, tls_key_file=key)
    first = serial(tls.connect())
    with tls.server.connect() as c:
        before = c.call("CONFIG", "GET", "tls-*")
        for pairs in (["tls-cert-file", "/nonexistent"], ["tls-key-file", pki.key("client")],
                      ["tls-cert-file", pki.key("server")], ["tls-ca-cert-file", "/nonexistent"],
                      ["tls-ca-cert-dir", "/nonexistent"], ["tls-ca-cert-file", ""],
                      ["tls-ciphers", "foo"], ["tls-ciphersuites", "foo"],
                      ["tls-protocols", "foo"], ["tls-protocols", "TLSv1.2 SSLv3"],
                      ["tls-cert-file", ""], ["tls-client-cert-file", cert],
                      ["tls-client-cert-file", "/none", "tls-client-key-file", "/none"]):
            reply = c.error("CONFIG", "SET", *pairs)
            assert reply == FAILED % pairs[0].encode(), pairs
        # Files that were replaced, and an option of another kind that fails.
        shutil.copy(pki.cert("third"), cert)
        shutil.copy(pki.key("third"), key)
        taken = socket.socket()
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        with taken:
            reply = c.error("CONFIG", "SET", "tls-cert-file", cert, "port",
                            taken.getsockname()[1])
            assert reply.endswith(b"Unable to listen on this port. Check server logs.")
            reply = c.error("CONFIG", "SET", "tls-port", taken.getsockname()[1])
            assert reply.endswith(b"Unable to listen on this port. Check server logs.")
        assert c.call("CONFIG", "GET", "tls-*") == before
        assert serial(tls.connect()) == first
        c.ok("CONFIG", "SET", "tls-cert-file", cert)
        assert serial(tls.connect()) != first
        assert c.error("CONFIG", "SET", "port", tls.port)
        assert c.error("CONFIG", "SET", "tls-port", tls.server.port)
        c.ok("CONFIG", "SET", "tls-client-cert-file", pki.cert("client"), "tls-client-key-file",
             pki.key("client"))


def test_the_port_comes_and_goes(make_server, pki):
    server = make_server()
    port = free_port()
    with server.connect() as c:
        assert c.error("CONFIG", "SET", "tls-port", port) == FAILED % b"tls-port"
        assert c.call("CONFIG", "GET", "tls-port") == [b"tls-port", b"0"]
        # Nothing is checked before there is a port.
        c.ok("CONFIG", "SET", "tls-cert-file", "/nonexistent", "tls-ciphers", "foo")
        good = ["tls-cert-file", pki.cert("server"), "tls-key-file", pki.key("server"),
                "tls-ca-cert-file", pki.cert("ca")]
        assert c.error("CONFIG", "SET", "tls-port", port, *good) == FAILED % b"tls-port"
        c.ok("CONFIG", "SET", "tls-ciphers", "", "tls-port", port, *good)
        made = context(pki.cert("ca"), pki.cert("client"), pki.key("client"))
        old = TlsConnection(("127.0.0.1", port), made)
        assert old.call("PING") == b"PONG"
        lines = c.call("INFO", "server").decode()
        assert "listener1:name=tls,bind=127.0.0.1,port=%d\r\n" % port in lines
        assert "tcp_port:%d\r\n" % server.port in lines
        c.ok("CONFIG", "SET", "tls-port", 0)

        def gone():
            try:
                TlsConnection(("127.0.0.1", port), made).close()
            except ConnectionRefusedError:
                return True
            except OSError:
                pass  # it was in the queue of the socket that goes
            return False

        eventually(gone, "the port is closed")
        assert old.call("PING") == b"PONG"
        c.ok("CONFIG", "SET", "tls-port", port)
        c.ok("CONFIG", "SET", "port", 0)
        assert b"tcp_port:%d\r\n" % port in old.call("INFO", "server")
        with TlsConnection(("127.0.0.1", port), made) as new:
            assert new.call("PING") == b"PONG"
        old.ok("CONFIG", "SET", "port", server.port)
        old.close()


@pytest.mark.any_threads
def test_tls_only(make_server, pki):
    """No plain port at all."""
    port = free_port()
    make_server(pki.options(port="0", unixsocket="s.sock", tls_port=str(port)))
    with TlsConnection(("127.0.0.1", port),
                       context(pki.cert("ca"), pki.cert("client"), pki.key("client"))) as c:
        assert b"tcp_port:%d\r\n" % port in c.call("INFO", "server")


@pytest.mark.any_threads
@pytest.mark.parametrize("change, says", [
    ({"tls-cert-file": None}, "No tls-cert-file configured!"),
    ({"tls-key-file": None}, "No tls-key-file configured!"),
    ({"tls-ca-cert-file": None}, "tls-auth-clients needs"),
    ({"tls-cert-file": "/nonexistent"}, "Can't load the certificate /nonexistent"),
    ({"tls-key-file": "/nonexistent"}, "Can't load the private key /nonexistent"),
    ({"tls-protocols": "TLSv9"}, "tls-protocols"),
])
def test_a_bad_start(make_server, pki, change, says):
    options = pki.options(tls_port=str(free_port()))
    options.update(change)
    server = make_server(options, start=False)
    assert says in server.start_fails()
    assert "Failed to configure TLS" in server.output()


@pytest.mark.any_threads
def test_config_file_and_rewrite(make_server, pki):
    port = free_port()
    server = make_server(config="tls-port %d\ntls-cert-file %s\ntls-key-file %s\n"
                         "tls-ca-cert-file %s\ntls-protocols \"TLSv1.2 TLSv1.3\"\n"
                         "tls-allowlist a b\ntls-allowlist *.example\n"
                         % (port, pki.cert("server"), pki.key("server"), pki.cert("ca")))
    with server.connect() as c:
        assert c.call("CONFIG", "GET", "tls-allowlist")[1] == b"a b *.example"
        c.ok("CONFIG", "SET", "tls-auth-clients", "optional", "tls-protocols", "TLSv1.3")
        c.ok("CONFIG", "REWRITE")
        text = server.read("server.conf")
        assert "tls-auth-clients optional\n" in text and "tls-protocols TLSv1.3\n" in text
    with TlsConnection(("127.0.0.1", port), context(pki.cert("ca"), pki.cert("client"),
                                                    pki.key("client"))) as c:
        assert c.call("PING") == b"PONG"


@pytest.mark.any_threads
def test_texts_of_the_oracle(make_server, oracle, ours_only):
    """CONFIG's names, defaults and refusals, where there is no port."""
    server = make_server()
    with server.connect() as ours, oracle.connect() as theirs:
        def shown(c):
            flat = c.call("CONFIG", "GET", "tls-*")
            return dict(zip(flat[0::2], flat[1::2]))

        mine = shown(ours)
        assert mine.pop(b"tls-allowlist") == b""
        assert mine.pop(b"tls-auditlog-blocklist") == b"" and mine.pop(b"tls-rotation") == b"no"
        assert mine == shown(theirs)
        for name, value in (("tls-auth-clients", "maybe"), ("tls-port", "65536"), ("tls-port", "x"),
                            ("tls-session-cache-size", "-1"), ("tls-session-cache-timeout", "-1"),
                            ("tls-session-caching", "maybe"), ("tls-prefer-server-ciphers", "1"),
                            ("tls-port", "7443"), ("tls-ciphers", "foo"), ("tls-protocols", "foo"),
                            ("tls-cert-file", "/nonexistent"), ("tls-auth-clients", "optional"),
                            ("tls-session-cache-size", "0"), ("tls-protocols", "")):
            assert ours.call("CONFIG", "SET", name, value) == theirs.call("CONFIG", "SET", name, value)
        theirs.ok("CONFIG", "SET", "tls-ciphers", "", "tls-cert-file", "", "tls-auth-clients", "yes",
                  "tls-session-cache-size", "20480")


# ---- hostile peers

GARBAGE = [b"PING\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"\0" * 100,
           b"\0" * 5000, b"\xff" * 5000, b"\x16\x03\x01\0\x05\x01\0\0\x01\0",
           b"*1\r\n$4\r\nPING\r\n", b"\x15\x03\x03\0\x02\x02\x28", bytes(range(256)) * 40]


def test_garbage(tls):
    for data in GARBAGE:
        with Connection(("127.0.0.1", tls.port)) as c:
            c.send_raw(data)
            with contextlib.suppress(OSError):  # closed already
                c.sock.shutdown(socket.SHUT_WR)
            while True:  # an alert, then the end
                try:
                    if not c.sock.recv(1000):
                        break
                except ConnectionResetError:
                    break
    for cut in range(1, 60, 7):  # the middle of a hello
        outgoing = ssl.MemoryBIO()
        session = tls.context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
        with pytest.raises(ssl.SSLWantReadError):
            session.do_handshake()
        with Connection(("127.0.0.1", tls.port)) as c:
            c.send_raw(outgoing.read()[:cut])
    assert tls.connect().call("PING") == b"PONG"
    with tls.server.connect() as c:
        eventually(lambda: b"connected_clients:2\r" in c.call("INFO", "clients"), "all are gone")


def test_garbage_after_the_handshake(tls):
    for data in GARBAGE:
        c = tls.connect()
        assert c.call("PING") == b"PONG"
        raw = socket.socket(fileno=os.dup(c.sock.fileno()))
        with raw:
            raw.sendall(data)
            with contextlib.suppress(OSError):  # closed already
                raw.shutdown(socket.SHUT_WR)
            raw.settimeout(scaled(20))
            with pytest.raises((Closed, ssl.SSLError, OSError)):
                c.read()
    assert tls.connect().call("PING") == b"PONG"


def test_plain_port_gets_tls(tls):
    with pytest.raises((ssl.SSLError, OSError)):
        TlsConnection(("127.0.0.1", tls.server.port), tls.context())
    assert tls.connect().call("PING") == b"PONG"


def test_stalled_handshakes(start):
    """They count as clients, hold nobody up, and end by themselves."""
    tls = start(maxclients="20")
    stalled = [tls.plain() for _ in range(10)]
    for c in stalled[::2]:
        c.send_raw(b"\x16\x03\x01\x02\0\x01")
    with tls.server.connect() as watcher:
        eventually(lambda: b"connected_clients:11\r" in watcher.call("INFO", "clients"), "they count")
        working = tls.connect()
        for _ in range(100):
            assert working.call("PING") == b"PONG"
        more = [tls.plain() for _ in range(8)]
        eventually(lambda: b"connected_clients:20\r" in watcher.call("INFO", "clients"), "full")
        with Connection(("127.0.0.1", tls.port)) as late:
            assert late.sock.recv(100) == b""  # no words before a handshake
        for c in stalled + more:
            c.sock.settimeout(scaled(30))
            assert c.sock.recv(100) == b""
        assert working.call("PING") == b"PONG"
        eventually(lambda: b"connected_clients:2\r" in watcher.call("INFO", "clients"), "they are forgotten")


def test_storm_of_handshakes_while_files_are_read_anew(tls, pki):
    """Each connection is closed somewhere in its handshake, or a little after it."""
    stop = threading.Event()
    failures = []

    def storm(number):
        made = tls.context()
        turn = number
        while not stop.is_set():
            turn += 1
            try:
                with socket.create_connection(("127.0.0.1", tls.port)) as raw:
                    outgoing = ssl.MemoryBIO()
                    session = made.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
                    try:
                        session.do_handshake()
                    except ssl.SSLWantReadError:
                        pass
                    hello = outgoing.read()
                    raw.sendall(hello[:len(hello) * (turn % 4) // 3])
                if turn % 4 == 3:
                    with TlsConnection(("127.0.0.1", tls.port), made) as c:
                        assert c.call("PING") == b"PONG"
            except OSError:
                pass
            except Exception as error:
                failures.append(error)
                return

    workers = [threading.Thread(target=storm, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    try:
        with tls.server.connect() as c:
            for turn in range(40):
                c.ok("CONFIG", "SET", "tls-cert-file", pki.cert("server"), "tls-key-file",
                     pki.key("server"), "tls-session-caching", "yes" if turn % 3 else "no")
                time.sleep(0.01)
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    assert not failures
    assert tls.connect().call("PING") == b"PONG"


def outside_address():
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.99", 9))
            name = probe.getsockname()[0]
            return None if name.startswith("127.") else name
    except OSError:
        return None


@pytest.mark.any_threads
def test_protected_mode(start):
    outside = outside_address()
    if outside is None:
        pytest.skip("this machine has no address but loopback")
    tls = start(bind="*")
    with TlsConnection((outside, tls.port), tls.context()) as c:
        frames = c.read_to_end()
        assert len(frames) == 1 and frames[0][1].startswith(b"DENIED ")
    with tls.server.connect() as c:
        c.ok("CONFIG", "SET", "requirepass", "x")
        with TlsConnection((outside, tls.port), tls.context()) as peer:
            assert peer.call("PING").startswith(b"NOAUTH")
            peer.ok("AUTH", "x")




@pytest.mark.any_threads
def test_directory_of_authorities(start, pki, tmp_path):
    """One thread: the library reads the directory when it needs it, behind a lock of its own, which
    ThreadSanitizer cannot see."""
    shutil.copy(pki.cert("ca"), str(tmp_path / "ca.pem"))
    openssl("rehash", str(tmp_path))
    tls = start(tls_ca_cert_file=None, tls_ca_cert_dir=str(tmp_path), server_threads="1")
    assert not tls.refuses(tls.context())
    assert tls.refuses(context(ca=pki.cert("ca"), cert=pki.stranger.cert("client"),
                               key=pki.stranger.key("client")))
