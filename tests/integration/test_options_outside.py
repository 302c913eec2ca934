"""Options whose effect is seen outside of the server alone: what is synced and when, how a socket is set, what the
system's log gets, what a replica frees in the background, with which key it goes to its primary."""

import contextlib
import ctypes
import errno
import os
import random
import shutil
import signal
import socket
import subprocess

import pytest

from lib.bounds import eventually
from lib.disk import Recorder
from lib.faults import is_sanitized
from lib.replication import replication
from lib.server import Server, children_of, free_port, server_path
from lib.tls import make_pki

SYS_PIDFD_GETFD = 438


@pytest.fixture(scope="module")
def recorder():
    if is_sanitized(server_path()):
        pytest.skip("a sanitizer's library has to be the first")
    made = Recorder()
    yield made
    made.end()


@pytest.fixture
def make_recorded(make_server, recorder):
    """A server whose files are recorded, and its record."""
    def make(**options):
        server = make_server({name.replace("_", "-"): value for name, value in options.items()},
                             files=["dump.rdb", "appendonlydir"], start=False)
        log = recorder.log(server.directory)
        server.environment = log.environment()
        server.start()
        return server, log
    return make


def syncs(log, since, pid):
    return sum(kind == "S" and by == pid for _, kind, by, *_ in log.events(since))


@pytest.mark.parametrize("rests", ["yes", "no"])
def test_no_syncs_while_a_child_writes(make_recorded, rests):
    """no-appendfsync-on-rewrite, of a log that is synced with every write."""
    server, log = make_recorded(appendonly="yes", appendfsync="always", no_appendfsync_on_rewrite=rests,
                                rdb_key_save_delay="10000000")
    pid = server.process.pid

    def synced(c):
        since = log.position()
        for i in range(10):
            c.ok("SET", "k%d" % i, "v")
        return syncs(log, since, pid)
    with server.connect() as c:
        assert synced(c) >= 10
        c.call("BGSAVE")
        assert server.info("persistence")["rdb_bgsave_in_progress"] == "1"
        if rests == "yes":
            eventually(lambda: synced(c) == 0, "no syncs")
        else:
            assert synced(c) >= 10
        assert server.info("persistence")["rdb_bgsave_in_progress"] == "1"
        for child in children_of(pid):
            os.kill(child, signal.SIGKILL)
        eventually(lambda: server.info("persistence")["rdb_bgsave_in_progress"] == "0", "no child")
        eventually(lambda: synced(c) >= 10, "syncs again")


@pytest.mark.parametrize("often, least, most", [("yes", 4, 10), ("no", 1, 2)])
def test_a_file_is_synced_in_pieces(make_recorded, often, least, most):
    """rdb-save-incremental-fsync: 16 MiB, a piece being 4."""
    server, log = make_recorded(save=["3600", "1000000"], rdb_save_incremental_fsync=often, rdbcompression="no")
    with server.connect() as c:
        for i in range(16):
            c.ok("SET", "k%d" % i, random.Random(i).randbytes(1 << 20))
        since = log.position()
        c.ok("SAVE")
    assert least <= syncs(log, since, server.process.pid) <= most


def is_to(sock, address):
    try:
        return sock.getpeername() == address
    except OSError:  # not connected
        return False


def sockets_of(pid):
    """Numbers of the process's descriptors that are sockets; they may be closed meanwhile."""
    for name in os.listdir("/proc/%d/fd" % pid):
        with contextlib.suppress(FileNotFoundError):
            if os.readlink("/proc/%d/fd/%s" % (pid, name)).startswith("socket:"):
                yield int(name)


def socket_to(pid, address):
    """Another descriptor of the process's socket whose other end that is."""
    libc = ctypes.CDLL(None, use_errno=True)
    process = os.pidfd_open(pid)
    try:
        for number in sockets_of(pid):
            got = libc.syscall(SYS_PIDFD_GETFD, process, number, 0)
            if got < 0 and ctypes.get_errno() == errno.EBADF:
                continue  # closed meanwhile
            if got < 0 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
                pytest.skip("no descriptors of other processes here: " + os.strerror(ctypes.get_errno()))
            found = socket.socket(fileno=got)
            if found.family == socket.AF_INET and is_to(found, address):
                return found
            found.close()
        return None
    finally:
        os.close(process)


@pytest.mark.parametrize("joins", ["no", "yes"])
def test_small_pieces_are_joined(make_server, joins):
    """repl-disable-tcp-nodelay, of a primary's socket to a replica."""
    primary = make_server({"repl-disable-tcp-nodelay": joins, "repl-diskless-sync-delay": "0"})
    replica = make_server({"replicaof": ["127.0.0.1", str(primary.address()[1])]})
    eventually(lambda: replication(replica)["master_link_status"] == "up", "a replica", 30)
    with primary.connect() as c:
        about = dict(word.split("=", 1) for word in c.call("CLIENT", "LIST", "TYPE", "replica").decode().split())
    host, port = about["addr"].split(":")
    with socket_to(primary.process.pid, (host, int(port))) as found:
        assert (found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 0) == (joins == "yes")


@pytest.mark.parametrize("lazily", ["yes", "no"])
def test_a_replica_frees_in_the_background(make_server, lazily):
    """replica-lazy-flush: what was there before a whole data set came."""
    primary = make_server({"repl-diskless-sync-delay": "0"})
    replica = make_server({"replica-lazy-flush": lazily})
    with replica.connect() as c:
        c.pipeline([("SET", "k%d" % i, "v") for i in range(1000)])
        c.ok("REPLICAOF", "127.0.0.1", primary.address()[1])
        eventually(lambda: replication(replica)["master_link_status"] == "up", "the data set", 30)
        assert c.call("DBSIZE") == 0

        def freed():
            about = replica.info("memory")
            return about["lazyfree_pending_objects"] == "0" and int(about["lazyfreed_objects"])
    eventually(lambda: freed() is not False and (freed() == 1000) == (lazily == "yes"), "freed")
    assert freed() == (1000 if lazily == "yes" else 0)


def test_a_key_that_is_locked(make_server, tmp_path):
    """tls-client-key-file-pass: what a replica shows to its primary has a key with a password. What it shows to others the
    primary would refuse."""
    pki = make_pki(str(tmp_path))
    pki.make("locked", password="secret")
    port = str(free_port())
    primary = make_server(pki.options(tls_port=port, tls_auth_clients="yes"))
    locked = {"tls-client-cert-file": pki.cert("locked"), "tls-client-key-file": pki.key("locked")}
    strange = {"tls-cert-file": pki.stranger.cert("client"), "tls-key-file": pki.stranger.key("client")}
    options = {**pki.options(tls_replication="yes"), "replicaof": ["127.0.0.1", port], **strange, **locked}
    replica = make_server(dict(options, **{"tls-client-key-file-pass": "secret"}))
    eventually(lambda: replication(replica)["master_link_status"] == "up", "a replica", 30)
    with primary.connect() as c:
        c.ok("SET", "k", "v")
    with replica.connect() as c:
        eventually(lambda: c.call("GET", "k") == b"v", "a write")
    for password in ({}, {"tls-client-key-file-pass": "other"}):
        wrong = make_server(dict(options, **password), start=False)
        wrong.expected_exit = 1
        said = wrong.start_fails()
        assert "key" in said and pki.key("locked") in said


class WithSyslog(Server):
    """Whose /dev/log is the socket `log` of its directory, in a mount namespace of its own."""

    SCRIPT = """set -e
        mkdir dev; mount --rbind /dev dev; mount -t tmpfs none /dev
        for name in null urandom random; do touch /dev/$name; mount --bind dev/$name /dev/$name; done
        ln -s "$PWD/log" /dev/log; exec "$@" """

    def arguments(self):
        return ["unshare", "--mount", "sh", "-c", self.SCRIPT, "sh", *super().arguments()]


def can_mount():
    return os.geteuid() == 0 and shutil.which("unshare") and subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"], check=False, capture_output=True).returncode == 0


def test_the_systems_log(make_server):
    """syslog-enabled, syslog-ident, syslog-facility: lines go there as well, with level and name."""
    if not can_mount():
        pytest.skip("no mounts of one's own here")
    options = {"syslog-enabled": "yes", "syslog-ident": "kv", "syslog-facility": "local3"}
    server = make_server(options, files=["log", "dev"], kind=WithSyslog, start=False)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(server.file("log"))
        log.settimeout(30)
        server.start()
        said = log.recv(4096).decode()
        while "Ready to accept" not in said:
            said = log.recv(4096).decode()
    assert said.startswith("<%d>" % (19 << 3 | 5)) and " kv[%d]: " % server.process.pid in said  # local3, notice
    assert "Ready to accept" in server.output()
