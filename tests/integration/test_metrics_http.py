"""HTTP for metrics beside clients of every kind: slow, endless, wrong, many."""

import os
import socket
import time

import pytest

from lib.bounds import descriptors, eventually, scaled
from lib.faults import is_sanitized, no_descriptors
from lib.metrics import ask, start_metered

pytestmark = pytest.mark.usefixtures("ours_only")

MOST = 64   # connections
TIME_S = 5  # of one, to ask; and to read the answer
KEPT_KB = 6000  # what the server may keep for all of them


@pytest.fixture
def metered(make_server):
    server = start_metered(make_server)
    port = server.metrics_port
    with server.connect() as c:  # whoever asked at the start has gone: tests count open files
        eventually(lambda: c.call("CLIENT", "LIST").count(b"\n") == 1, "others have gone")
        c.send("QUIT")
        c.read_to_end()
    yield server
    assert ask(port).status == 200
    assert server.alive()


@pytest.fixture
def port(metered):
    return metered.metrics_port


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=scaled(20))


def send(port, text):
    """What is answered, to the end."""
    with connect(port) as s:
        s.sendall(text)
        return read_all(s)


def read_all(s):
    got = b""
    while True:
        try:
            more = s.recv(65536)
        except ConnectionResetError:
            return got
        if not more:
            return got
        got += more


def status(answer):
    assert answer.startswith((b"HTTP/1.0 ", b"HTTP/1.1 ")), answer
    return int(answer[9:12])


def open_files(server):
    return len(os.listdir("/proc/%d/fd" % server.pid))


def resident_kb(server):
    with open("/proc/%d/status" % server.pid, encoding="ascii") as file:
        return int(next(line for line in file if line.startswith("VmRSS")).split()[1])


def assert_memory(server, before_kb):
    if not is_sanitized(server.path):  # whose allocator keeps what is freed
        assert resident_kb(server) < before_kb + KEPT_KB


def test_requests(port):
    for text, expected in (
            (b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 200),
            (b"GET /metrics?x=y HTTP/1.1\r\nHost: a\r\n\r\n", 200),
            (b"GET http://h/metrics HTTP/1.0\r\n\r\n", 200),
            (b"GET http://h/metrics HTTP/1.1\r\nHost: h\r\nProxy-Connection: keep-alive\r\n\r\n", 200),
            (b"GET /metrics HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200),
            (b"GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 200),
            (b"GET /metrics/ HTTP/1.0\r\n\r\n", 404),
            (b"GET /../etc/passwd HTTP/1.0\r\n\r\n", 404),
            (b"GET /%2e%2e HTTP/1.0\r\n\r\n", 404),
            (b"POST /metrics HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc", 405),
            (b"DELETE / HTTP/1.0\r\n\r\n", 405),
            (b"get /metrics HTTP/1.0\r\n\r\n", 405),
            (b"CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n", 405),
            (b"GET /metrics HTTP/1.1\r\n\r\n", 400),
            (b"GET /metrics HTTP/2.0\r\n\r\n", 400),
            (b"*1\r\n$4\r\nPING\r\n\r\n", 400),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
            (b"POST / HTTP/1.0\r\nContent-Length: -1\r\n\r\n", 400),
            (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", 413),
            (b"GET / HTTP/1.0\r\nX: " + b"x" * 20000, 400)):
        answer = send(port, text)
        assert status(answer) == expected, (text[:60], answer[:200])
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.lower().count(b"connection:") == 1 and b"Connection: close" in head, head
        assert head.count(b"Content-Length: %d" % len(body)) == 1, head
        if expected == 405:
            assert b"Allow: GET, HEAD" in head


def test_head(port):
    answer = send(port, b"HEAD /metrics HTTP/1.0\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert status(answer) == 200 and not body and b"Content-Length: " in head


def test_one_request_a_connection(port):
    answer = send(port, 3 * b"GET /nosuch HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert answer.count(b"HTTP/1.1 404") == 1


def test_byte_by_byte(port):
    with connect(port) as s:
        for byte in b"GET /nosuch HTTP/1.0\r\n\r\n":
            s.sendall(bytes([byte]))
        assert status(read_all(s)) == 404


def test_a_body_that_goes_on(port):
    """The answer arrives although nobody wants what is sent behind the head."""
    with connect(port) as s:
        s.sendall(b"POST /metrics HTTP/1.0\r\nContent-Length: 30000000\r\n\r\n" + b"x" * 30000000)
        assert status(read_all(s)) == 413


def test_who_says_that_he_is_done(port):
    """He is answered: `printf ... | nc host port`."""
    for _ in range(20):
        with connect(port) as s:
            s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            s.shutdown(socket.SHUT_WR)
            head, _, body = read_all(s).partition(b"\r\n\r\n")
            assert status(head) == 200 and b"Content-Length: %d" % len(body) in head


def test_slow_ones_are_let_go(metered):
    """Who says nothing, who says a byte now and then, who sends a body that way: none for longer than its time."""
    files = open_files(metered)
    begin = time.monotonic()
    silent, dripping, sending = [connect(metered.metrics_port) for _ in range(3)]
    sending.sendall(b"POST / HTTP/1.0\r\nContent-Length: 1000\r\n\r\n")

    def let_go(s):
        s.setblocking(False)
        try:
            s.send(b"G" if s is not silent else b"")
            return s.recv(1) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True
    eventually(lambda: all([let_go(s) for s in (silent, dripping, sending)]), "closed", bound_s=20, pause_s=0.2)
    assert time.monotonic() - begin >= TIME_S - 0.1
    eventually(lambda: open_files(metered) <= files, "descriptors are closed")
    for s in (silent, dripping, sending):
        s.close()


def lengthen(server):
    """Its answer: no system holds all of it for who does not read. (A call that is rejected counts.)"""
    with server.connect() as c:
        for row in c.call("COMMAND"):
            if abs(row[1]) >= 2:
                assert c.error(row[0]).startswith(b"ERR wrong number of arguments")
        c.send("QUIT")
        c.read_to_end()


def test_who_never_reads(metered):
    """Those whose answers fill what the system holds for them are let go as well, and others are served."""
    lengthen(metered)
    files, memory, deaf = open_files(metered), resident_kb(metered), []
    for _ in range(MOST):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        s.settimeout(scaled(20))
        s.connect(("127.0.0.1", metered.metrics_port))
        s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        deaf.append(s)
    eventually(lambda: open_files(metered) >= files + MOST / 2, "they are being answered, for some seconds", bound_s=20)
    answer = ask(metered.metrics_port)
    assert answer.status == 200
    eventually(lambda: open_files(metered) <= files, "they are let go", bound_s=40)
    assert_memory(metered, memory + MOST * len(answer.body) // 1024)  # the allocator gives back late
    for s in deaf:
        with s:
            assert len(read_all(s)) < len(answer.body)


def test_floods(metered):
    """Who sends without end: a field, fields, a body, chunks, and behind a request whose answer is not read."""
    memory, flows = resident_kb(metered), []
    for head, more in ((b"GET / HTTP/1.0\r\nX: ", b"x" * 65536),
                       (b"GET / HTTP/1.0\r\n", b"a:\r\n" * 16384),
                       (b"", b"\0" * 65536),
                       (b"POST / HTTP/1.0\r\nContent-Length: 1000000000000\r\n\r\n", b"x" * 65536),
                       (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 10000),
                       (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", b"0" * 65536),
                       (b"GET /metrics HTTP/1.0\r\n\r\n", b"GET /metrics HTTP/1.0\r\n\r\n" * 2500)):
        s = connect(metered.metrics_port)
        s.sendall(head)
        s.setblocking(False)
        flows.append((s, more))

    def is_closed(s, more):
        try:
            s.send(more)
        except BlockingIOError:
            pass
        except OSError:
            return True
        return False
    open_flows = list(flows)

    def all_closed():
        open_flows[:] = [flow for flow in open_flows if not is_closed(*flow)]
        assert_memory(metered, memory)
        return not open_flows
    eventually(all_closed, "they are let go", bound_s=40)
    for s, _ in flows:
        s.close()


def test_many_connections(port):
    """Those beyond the bound wait; as the silent ones are let go, they are served."""
    silent = [connect(port) for _ in range(MOST + 8)]
    assert ask(port).status == 200
    for s in silent:
        s.close()


def test_thousands_of_connections(metered):
    """Of which the server takes no more than the bound."""
    descriptors()
    files, memory, crowd = open_files(metered), resident_kb(metered), []
    for _ in range(3000):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", metered.metrics_port))
        crowd.append(s)
    eventually(lambda: open_files(metered) >= files + MOST, "as many as it takes")
    for _ in range(100):
        assert open_files(metered) <= files + MOST + 1
    assert_memory(metered, memory)
    for s in crowd:
        s.close()
    assert ask(metered.metrics_port).status == 200
    eventually(lambda: open_files(metered) <= files, "descriptors are closed", bound_s=20)


def cpu_ticks(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as file:
        words = file.read().rpartition(")")[2].split()
    return int(words[11]) + int(words[12])


def test_without_descriptors(metered):
    """It waits for some without asking over and over."""
    with no_descriptors(metered):
        waiting = connect(metered.metrics_port)
        waiting.sendall(b"GET /nosuch HTTP/1.0\r\n\r\n")
        before = cpu_ticks(metered.pid)
        time.sleep(1)
        assert cpu_ticks(metered.pid) - before < os.sysconf("SC_CLK_TCK") / 5
    assert status(read_all(waiting)) == 404
    waiting.close()


def test_nothing_is_left_behind(metered):
    """Connections that come and go in every state leave no descriptor and no memory."""
    port = metered.metrics_port

    def round_of_all():
        for text in (b"", b"GET", b"GET /metrics HTTP/1.0\r\n\r\n", b"x" * 9000,
                     b"POST / HTTP/1.0\r\n\r\n" + b"y" * 5000):
            for _ in range(20):
                with connect(port) as s:
                    s.sendall(text)
        assert ask(port).status == 200
    round_of_all()
    files, memory = open_files(metered), resident_kb(metered)
    for _ in range(10):
        round_of_all()
    eventually(lambda: open_files(metered) <= files + 1, "descriptors are closed", bound_s=20)
    assert_memory(metered, memory)
