"""How the log gets to the kernel where no sync is waited for: before the reply, many writes at once,
with blocks that the file system has ready."""

import ctypes
import os

import pytest

from lib import bounds
from lib.disk import Recorder
from lib.resp import encode
from lib.server import Server, is_redis, server_path

pytestmark = [
    pytest.mark.skipif(is_redis(server_path()), reason="looks at our files"),
    pytest.mark.one_thread("who waits for the log is on the thread that writes"),
]

INCREMENT = "appendonlydir/appendonly.aof.1.incr.aof"
CLIENTS = 24
DEPTH = 30  # so that some are in two batches
LOOKS = 10
KEEP_SIZE = 1
MIB = 1 << 20


def log_of(policy):
    return {"appendonly": "yes", "appendfsync": policy, "auto-aof-rewrite-percentage": "0"}


def content(server):
    with open(server.file(INCREMENT), "rb") as file:
        return file.read()


def written_at_once(server, clients):
    """Several clients' pipelines wait for the server when it wakes."""
    with server.standing_still():
        for number, client in enumerate(clients):
            client.send_raw(b"".join(encode("SET", "k%d" % number, "%d:%d" % (number, n))
                                     for n in range(DEPTH)))


@pytest.mark.any_threads
@pytest.mark.parametrize("policy", ["everysec", "no"])
def test_the_kernel_has_it_before_the_reply(make_server, policy):
    server = make_server(log_of(policy), files=("appendonlydir",))
    clients = [server.connect() for _ in range(CLIENTS)]
    try:
        for _ in range(5):
            written_at_once(server, clients)
            for number, client in enumerate(clients):
                for n in range(DEPTH):
                    assert client.read() == b"OK"
                    if n in (0, DEPTH - 1):
                        last = encode("SET", "k%d" % number, "%d:%d" % (number, n))
                        assert last in content(server)
    finally:
        for client in clients:
            client.close()


def test_a_turn_is_one_write():
    """The batches of a turn are written together, not one by one."""
    recorder = Recorder()
    server = Server(threads=1, options=log_of("no"))
    clients = []
    try:
        log = recorder.log(server.directory)
        server.environment = log.environment()
        server.start()
        clients = [server.connect() for _ in range(CLIENTS)]
        with server.connect() as one:
            one.ok("SET", "first", "1")  # with SELECT before it
        looks = []
        for _ in range(LOOKS):  # a thread that is stopped amid its turn is no fault of the turn's
            before = log.position()
            written_at_once(server, clients)
            for client in clients:
                for _ in range(DEPTH):
                    assert client.read() == b"OK"
            looks.append([len(event[7]) for event in log.events(before) if event[1] == "W"])
        assert min(len(writes) for writes in looks) <= 3, looks
    finally:
        for client in clients:
            client.close()
        if server.process is not None:
            server.stop()
        server.remove()
        recorder.end()


def keeps_blocks(directory):
    """Whether the file system gives a file blocks behind its end."""
    libc = ctypes.CDLL(None, use_errno=True)
    path = os.path.join(directory, "probe")
    fd = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        done = libc.fallocate(fd, KEEP_SIZE, ctypes.c_long(0), ctypes.c_long(MIB)) == 0
        return done and os.stat(path).st_blocks * 512 >= MIB
    finally:
        os.close(fd)
        os.unlink(path)


def bytes_ahead(server):
    about = os.stat(server.file(INCREMENT))
    return about.st_blocks * 512 - about.st_size


def grow_until_ahead(server):
    """Writes until the file has blocks for more; the bytes written."""
    value = "x" * MIB
    with server.connect() as client:
        def grows():
            client.ok("SET", "k", value)
            return bytes_ahead(server) >= MIB
        bounds.eventually(grows, "blocks ahead", pause_s=0)


@pytest.mark.parametrize("ends", ["killed", "stopped"])
def test_blocks_ahead_are_no_part_of_the_file(make_server, ends):
    """A log that grows fast has blocks behind its end; they change nothing, and go with it."""
    server = make_server(log_of("everysec"), files=("appendonlydir",))
    if not keeps_blocks(server.directory):
        pytest.skip("no blocks behind a file's end here")
    grow_until_ahead(server)
    if ends == "killed":
        server.kill()
        server.start()
    else:
        server.stop()
    bounds.eventually(lambda: bytes_ahead(server) < MIB, "the blocks are given back")
    if ends == "stopped":
        server.start()
    with server.connect() as client:
        assert client.call("STRLEN", "k") == MIB
        client.ok("SET", "after", "1")
    assert content(server).endswith(encode("SET", "after", "1"))
