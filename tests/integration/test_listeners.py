"""Where the server listens: several addresses, optional ones, IPv6, Unix sockets; and whom it
lets go: timeout, keepalive, QUIT, SHUTDOWN."""

import ctypes
import os
import socket
import stat
import subprocess
import time

import pytest

from lib.bounds import eventually
from lib.pubsub import subscribe
from lib.resp import Closed, Connection
from lib.server import free_port

pytestmark = pytest.mark.any_threads


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
            return True
    except OSError:
        return False


def ping(address):
    with Connection(address) as client:
        return client.call("PING") == b"PONG"


def refuses(address):
    try:
        Connection(address).close()
    except (ConnectionRefusedError, ConnectionResetError):
        return True
    return False


def test_several_addresses(make_server):
    server = make_server({"bind": ["127.0.0.1", "127.0.0.2", "-::1"]})
    assert ping(("127.0.0.1", server.port))
    assert ping(("127.0.0.2", server.port))
    if has_ipv6():
        assert ping(("::1", server.port))
    with pytest.raises(ConnectionRefusedError):
        Connection(("127.0.0.3", server.port))


def test_an_optional_address_may_be_missing(make_server):
    server = make_server({"bind": ["127.0.0.1", "-192.0.2.77"]})
    assert ping(("127.0.0.1", server.port))


def test_a_needed_address_may_not(make_server):
    server = make_server({"bind": ["127.0.0.1", "192.0.2.77"]}, start=False)
    assert "192.0.2.77" in server.start_fails()


def test_a_port_in_use(make_server):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        server = make_server({"port": str(taken.getsockname()[1])}, start=False)
        assert "ddress already in use" in server.start_fails()


def test_starting_it_twice_leaves_the_first_alone(make_server):
    """The second has no port and ends, before it mends what it takes for a torn end of the log and
    is a write of the first under way, and without touching the pid file."""
    server = make_server({"appendonly": "yes", "pidfile": "server.pid"}, files=["appendonlydir"])
    log = server.file("appendonlydir/appendonly.aof.1.incr.aof")
    with server.connect() as client:
        client.ok("SET", "k", "v")
    whole = os.path.getsize(log)
    with open(log, "ab") as file:
        file.write(b"*3\r\n$3\r\nSET\r\n$1")
    second = subprocess.run(server.arguments(), cwd=server.directory, stdout=subprocess.PIPE,
                            check=False, timeout=60)
    assert second.returncode == 1 and b"ddress already in use" in second.stdout
    assert os.path.getsize(log) > whole
    assert server.read("server.pid") == "%d\n" % server.pid
    os.truncate(log, whole)


@pytest.mark.parametrize("perm", ["700", "770", "777"])
def test_unix_socket(make_server, perm):
    server = make_server({"unixsocket": "s.sock", "unixsocketperm": perm})
    path = server.unix_address()
    mode = os.stat(path).st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == int(perm, 8)
    assert ping(path)
    assert ping(server.address())


def test_unix_socket_only(make_server):
    server = make_server({"port": "0", "unixsocket": "s.sock"})
    with server.connect() as client:
        client.ok("SET", "k", "v")
        assert client.call("CONFIG", "GET", "port") == [b"port", b"0"]
    assert "Ready to accept connections unix\n" in server.output()
    assert "connections tcp" not in server.output()
    assert " port 0" not in server.output()


def test_unix_socket_is_removed_at_the_end(make_server):
    server = make_server({"unixsocket": "s.sock"})
    path = server.unix_address()
    server.expected_files.discard("s.sock")
    server.stop()
    assert not os.path.exists(path)


def test_a_stale_unix_socket_is_replaced(make_server):
    server = make_server({"unixsocket": "s.sock"}, start=False)
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(server.unix_address())
    server.start()
    assert ping(server.unix_address())


def test_port_can_be_changed(client, server):
    before, after = server.port, free_port()
    client.ok("CONFIG", "SET", "port", after)
    assert ping(("127.0.0.1", after))
    eventually(lambda: refuses(("127.0.0.1", before)), "the old port is closed")
    client.ok("CONFIG", "SET", "port", before)
    assert ping(("127.0.0.1", before))
    assert client.call("PING") == b"PONG"


def test_port_changes_at_once_one_after_another(client, server):
    """The main thread may see the later change before it has worked off the first."""
    here, there = server.port, [free_port() for _ in range(3)]
    changes = [("CONFIG", "SET", "port", port) for port in there + [here, there[0], here]]
    changes.append(("CONFIG", "SET", "bind", "127.0.0.1 127.0.0.2"))
    changes.append(("CONFIG", "SET", "bind", "127.0.0.1"))
    for _ in range(20):
        assert client.pipeline(changes) == [b"OK"] * len(changes)
        assert ping(("127.0.0.1", here))
    for port in there:
        eventually(lambda: refuses(("127.0.0.1", port)), "the ports in between are closed")


def test_a_change_of_address_that_fails_changes_nothing(client, server):
    before = server.port
    for _ in range(20):
        client.error("CONFIG", "SET", "port", free_port(), "bind", "192.0.2.77")
        assert client.call("CONFIG", "GET", "port") == [b"port", b"%d" % before]
        assert ping(("127.0.0.1", before))


def test_from_all_addresses_to_one_and_back(make_server):
    """The narrow address is inside the wide one, and the port stays the same."""
    server = make_server({"bind": "*", "protected-mode": "no"})
    with server.connect() as client:
        assert ping(("127.0.0.2", server.port))
        for _ in range(10):
            client.ok("CONFIG", "SET", "bind", "127.0.0.1")
            assert ping(("127.0.0.1", server.port))
            eventually(lambda: refuses(("127.0.0.2", server.port)), "the wide socket is closed")
            client.ok("CONFIG", "SET", "bind", "*")
            assert ping(("127.0.0.2", server.port))
        client.error("CONFIG", "SET", "bind", "127.0.0.1 192.0.2.77")
        assert ping(("127.0.0.2", server.port))
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError):
            other.bind(("127.0.0.1", server.port))


def test_maxclients_beyond_what_the_system_allows(client):
    asked = ("CONFIG", "GET", "maxclients", "timeout")
    before = client.call(*asked)
    text = client.error("CONFIG", "SET", "timeout", 7, "maxclients", 2 ** 32 - 1)
    assert b"'maxclients') - The operating system is not able to handle" in text
    assert client.call(*asked) == before
    assert client.call("PING") == b"PONG"


def test_the_end_right_after_a_change_of_port(make_server):
    for _ in range(5):
        server = make_server()
        with server.connect() as client:
            client.send_raw(b"CONFIG SET port %d\r\nSHUTDOWN NOSAVE\r\n" % free_port())
            client.read_to_end()
        assert server.wait_exit() == 0


@pytest.fixture
def patient(connect):
    """A client that listens to a channel, and so may be silent for as long as this test is held up."""
    made = connect(3)
    subscribe(made, "SUBSCRIBE", "nothing")
    yield made
    made.ok("CONFIG", "SET", "timeout", "0")


def test_timeout_closes_idle_clients_only(patient, connect):
    idle, busy = [connect() for _ in range(8)], [connect()]
    ids = [b"id=%d " % c.call("CLIENT", "ID") for c in idle]
    asked = [time.monotonic()]
    busy[0].call("PING")
    patient.ok("CONFIG", "SET", "timeout", "1")

    def all_gone():
        now = time.monotonic()
        try:
            busy[0].call("PING")
        except (Closed, OSError):
            assert time.monotonic() - asked[0] >= 1, "it was not idle"
            busy[0] = connect()
        asked[0] = now
        text = patient.call("CLIENT", "LIST")
        return not any(i in text for i in ids)

    eventually(all_gone, "idle clients are closed", bound_s=15, pause_s=0.1)
    assert all(c.is_closed() for c in idle)


def test_monitors_do_not_time_out(patient, connect):
    watcher, idle = connect(), connect()
    watcher.ok("MONITOR")
    gone = b"id=%d " % idle.call("CLIENT", "ID")
    patient.ok("CONFIG", "SET", "timeout", "1")
    eventually(lambda: gone not in patient.call("CLIENT", "LIST"), "the idle one is closed", 15, 0.1)
    time.sleep(0.5)
    patient.call("ECHO", "still here")
    eventually(lambda: b'"still here"' in watcher.read(), "the monitor gets its line")


def keepalive_timer(server, client, wanted):
    """Waits until that kind of timer runs at our end of a connection, and returns in how many seconds it ends. 02 is
    keepalive; 01 stands there while a reply is not acknowledged yet."""
    port = client.sock.getsockname()[1]
    seen = []

    def runs():
        # The file is no snapshot: a row may be missing, or there twice, while other connections come and go.
        with open("/proc/net/tcp", encoding="ascii") as file:
            rows = [line.split() for line in file][1:]
        seen[:] = [row[5].split(":") for row in rows if row[2].endswith(":%04X" % port)
                   and row[1].endswith(":%04X" % server.port)]
        return seen and seen[0][0] == wanted

    eventually(runs, "timer %s runs" % wanted)
    return int(seen[0][1], 16) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="no /proc/net/tcp")
def test_tcp_keepalive_is_set_on_the_sockets(server, client, connect):
    assert 100 < keepalive_timer(server, client, "02") <= 300
    before = connect()
    before.call("PING")
    for seconds in (1000, 0, 0, 50):
        client.ok("CONFIG", "SET", "tcp-keepalive", seconds)
        for _ in range(2):
            later = connect()
            later.call("PING")
            left = keepalive_timer(server, later, "02" if seconds else "00")
            assert seconds * 0.8 <= left <= seconds, "a new connection has it as it is set now"
    assert keepalive_timer(server, before, "02") > 100, "and an old one has it as it was"
    client.ok("CONFIG", "SET", "tcp-keepalive", "300")


SO_MARK = 36


def may_mark():
    with socket.socket() as probe:
        try:
            probe.setsockopt(socket.SOL_SOCKET, SO_MARK, 7)
            return True
        except PermissionError:
            return False


def marks(pid):
    """SO_MARK of each TCP socket of another process, by pidfd_open and pidfd_getfd (Linux 5.6)."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = libc.syscall(434, pid, 0)
    found = []
    for name in os.listdir("/proc/%d/fd" % pid):
        fd = libc.syscall(438, pidfd, int(name), 0)
        if fd < 0:
            continue
        with open(fd, "rb", closefd=True, buffering=0) as copy:
            if stat.S_ISSOCK(os.fstat(copy.fileno()).st_mode):
                with socket.socket(fileno=os.dup(copy.fileno())) as sock:
                    if sock.family == socket.AF_INET:
                        found.append(sock.getsockopt(socket.SOL_SOCKET, SO_MARK))
    os.close(pidfd)
    return found


@pytest.mark.parametrize("mark", [0, 1, 4294967295])
def test_socket_mark(make_server, ours_only, mark):
    """Listening sockets and connections carry it: nothing goes out unmarked."""
    if not may_mark():
        pytest.skip("marking sockets needs CAP_NET_ADMIN")
    server = make_server({"socket-mark-id": str(mark), "bind": ["127.0.0.1", "127.0.0.2"]})
    with server.connect() as one, server.connect() as two:
        assert one.call("PING") == two.call("PING") == b"PONG"
        found = marks(server.pid)
        if not found:
            pytest.skip("the system does not show another process's sockets")
        assert len(found) >= 4
        assert [value & 0xffffffff for value in found] == [mark] * len(found)


@pytest.mark.parametrize("words", [["QUIT"], ["quit"]], ids=" ".join)
def test_quit(client, words):
    client.send_raw(b"PING\r\n" + words[0].encode() + b"\r\nSET after 1\r\n")
    assert [tree for _, tree in client.read_to_end()] == [b"PONG", b"OK"]


def test_what_follows_quit_is_not_run(client, connect):
    client.send_raw(b"QUIT\r\nSET after 1\r\n")
    client.read_to_end()
    assert connect().call("EXISTS", "after") == 0


@pytest.mark.parametrize("words", [["SHUTDOWN"], ["SHUTDOWN", "NOSAVE"], ["SHUTDOWN", "NOW"],
                                   ["SHUTDOWN", "NOSAVE", "NOW", "FORCE"]], ids=" ".join)
def test_shutdown(make_server, words):
    server = make_server()
    with server.connect() as client, server.connect() as other:
        client.send(*words)
        assert client.read_to_end() == []
        assert other.read_to_end() == []
    assert server.wait_exit() == 0


def test_sigint_ends_it_too(make_server):
    server = make_server()
    server.process.send_signal(2)
    assert server.wait_exit() == 0


def test_sigterm_under_load(make_server):
    server = make_server()
    clients = [server.connect() for _ in range(20)]
    for client in clients:
        client.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n" * 500)
    server.process.send_signal(15)
    assert server.wait_exit() == 0
    for client in clients:
        client.close()


def test_sighup_and_sigpipe_do_no_harm(make_server):
    server = make_server()
    for number in (1, 13):
        server.process.send_signal(number)
    assert ping(server.address())


def test_out_of_file_descriptors(make_server, ours_only):
    """accept() that fails starves nobody, and works again when a descriptor is free."""
    import resource
    server = make_server({"maxclients": "1000"})
    first = server.connect()
    limit = len(os.listdir("/proc/%d/fd" % server.pid)) + 10
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (limit, limit))
    more = []
    for _ in range(40):
        more.append(Connection(server.address()))
        assert first.call("PING") == b"PONG"
    for client in more:
        client.close()

    def served():
        try:
            return ping(server.address())
        except Exception:
            return False

    eventually(served, "new clients are served again")
    first.close()
