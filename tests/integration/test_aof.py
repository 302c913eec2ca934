"""The append-only file: its files are Redis's, what was answered with `always` survives a kill, a torn
end is cut off and everything else refused, rewrites lose nothing."""

import os
import re
import shutil
import signal
import subprocess
import threading
import time

import pytest

from lib import bounds
from lib.content import content
from lib.resp import Closed, Error, encode
from lib.faults import is_sanitized
from lib.server import ORACLE, Server, is_redis, server_path

pytestmark = [
    pytest.mark.skipif(is_redis(server_path()), reason="looks at our files and log"),
]

AOF = {"appendonly": "yes", "appendfsync": "always"}
FILES = ("appendonlydir",)
LAST_MS = "9223372036854775807"
MANIFEST = "appendonlydir/appendonly.aof.manifest"
INCREMENT = "appendonlydir/appendonly.aof.1.incr.aof"


def eventually(condition):
    return bounds.eventually(condition, "what the test waits for")


def fill(client):
    """Something of every type that Redis has, in two databases."""
    client.ok("SET", "s", "v")
    client.ok("SET", "t", "v", "EX", "100000")
    client.ok("SET", "last", "v", "PXAT", LAST_MS)
    client.call("INCRBYFLOAT", "f", "1.25")
    client.call("RPUSH", "l", *["e%d" % n for n in range(200)])
    client.call("LPOP", "l", "3")
    client.call("SADD", "set", *range(50))
    client.call("SPOP", "set", "7")
    client.call("HSET", "h", "a", "1", "b", "2")
    client.call("ZADD", "z", "1.5", "a", "2", "b", "3", "c")
    client.call("ZPOPMIN", "z")
    client.call("XADD", "x", "*", "f", "v")
    client.call("XADD", "x", "MAXLEN", "~", "1", "*", "f", "w")
    client.call("XGROUP", "CREATE", "x", "g", "0")
    client.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "x", ">")
    client.call("PFADD", "p", "a", "b")
    client.pipeline([["MULTI"], ["SET", "m", "1"], ["SELECT", "3"], ["SET", "m", "2"], ["EXEC"]])
    client.ok("SELECT", "0")


def manifest(server):
    """Its lines about files, behind that with the checksum."""
    first, _, rest = server.read(MANIFEST).partition("\n")
    assert re.fullmatch("# crc64 [0-9a-f]{16}", first)
    return rest


def rewrite(server):
    with server.connect() as client:
        before = int(server.info()["aof_rewrites"])
        client.call("BGREWRITEAOF")
        eventually(lambda: server.info()["aof_rewrite_in_progress"] == "0"
                   and int(server.info()["aof_rewrites"]) > before)
        assert server.info()["aof_last_bgrewrite_status"] == "ok", server.output()


def shown(client, databases=16):
    """Content in a form that our server and Redis show in the same way."""
    found = {}
    for db in range(databases):
        client.ok("SELECT", str(db))
        for key in client.call("KEYS", "*"):
            kind = client.call("TYPE", key)
            ask = {b"string": ["GET", key], b"list": ["LRANGE", key, "0", "-1"],
                   b"set": ["SMEMBERS", key], b"hash": ["HGETALL", key],
                   b"zset": ["ZRANGE", key, "0", "-1", "WITHSCORES"],
                   b"stream": ["XRANGE", key, "-", "+"]}[kind]
            value = client.call(*ask)
            found[(db, key)] = (kind, sorted(value) if kind == b"set" else value,
                                client.call("PEXPIRETIME", key))
            if kind == b"stream":
                found[(db, key, "groups")] = [
                    (group[1], group[3], group[5], group[7])
                    for group in client.call("XINFO", "GROUPS", key)]
    client.ok("SELECT", "0")
    return found


# ---- files

def test_files_of_a_fresh_log(make_server):
    server = make_server(AOF, files=FILES)
    assert sorted(os.listdir(server.file("appendonlydir"))) == [
        "appendonly.aof.1.base.rdb", "appendonly.aof.1.incr.aof", "appendonly.aof.manifest"]
    assert manifest(server) == ("file appendonly.aof.1.base.rdb seq 1 type b\n"
                                     "file appendonly.aof.1.incr.aof seq 1 type i\n")
    with server.connect() as client:
        client.ok("SET", "k", "v")
        rewrite(server)
        client.ok("SET", "l", "w")
    assert manifest(server) == ("file appendonly.aof.2.base.rdb seq 2 type b\n"
                                     "file appendonly.aof.2.incr.aof seq 2 type i\n")
    assert len(os.listdir(server.file("appendonlydir"))) == 3
    assert server.read("appendonlydir/appendonly.aof.2.incr.aof") == (
        "*2\n$6\nSELECT\n$1\n0\n*3\n$3\nSET\n$1\nl\n$1\nw\n")


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_redis_reads_ours(make_server, preamble):
    server = make_server(dict(AOF, **{"aof-use-rdb-preamble": preamble,
                                      "aof-timestamp-enabled": "yes"}), files=FILES)
    with server.connect() as client:
        fill(client)
        rewrite(server)
        client.call("RPUSH", "l", "after")
        client.call("PEXPIREAT", "h", LAST_MS)
        client.call("SPOP", "set")
        client.pipeline([["MULTI"], ["INCR", "n"], ["INCR", "n"], ["EXEC"]])
        before = shown(client)
    server.stop()
    oracle = Server(ORACLE, 1, AOF)
    oracle.expected_files |= set(FILES)
    shutil.copytree(server.file("appendonlydir"), oracle.file("appendonlydir"))
    try:
        oracle.start()
        with oracle.connect() as client:
            assert shown(client) == before
    finally:
        oracle.stop()
        oracle.remove()
    server.start()
    with server.connect() as client:
        assert shown(client) == before


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_ours_reads_redis(make_server, preamble):
    oracle = Server(ORACLE, 1, dict(AOF, **{"aof-use-rdb-preamble": preamble,
                                            "aof-timestamp-enabled": "yes"}))
    oracle.expected_files |= set(FILES)
    server = make_server(AOF, files=FILES, start=False)
    try:
        oracle.start()
        with oracle.connect() as client:
            fill(client)
            rewrite(oracle)
            client.call("RPUSH", "l", "after")
            client.call("PEXPIREAT", "h", LAST_MS)
            client.pipeline([["MULTI"], ["INCR", "n"], ["INCR", "n"], ["EXEC"]])
            # Told as "=", with the limit still there.
            client.ok("CONFIG", "SET", "stream-node-max-entries", "1")
            client.pipeline([["XADD", "trimmed", "%d-1" % i, "f", "v"] for i in range(1, 9)])
            assert client.call("XTRIM", "trimmed", "MAXLEN", "~", "3", "LIMIT", "2") == 2
            before = shown(client)
        oracle.stop()
        shutil.copytree(oracle.file("appendonlydir"), server.file("appendonlydir"))
    finally:
        oracle.stop()
        oracle.remove()
    server.start()
    with server.connect() as client:
        assert shown(client) == before


@pytest.mark.any_threads
@pytest.mark.parametrize("preamble", [None, "yes", "no"])
def test_a_single_file_of_old(make_server, preamble):
    """Redis before 7: appendonly.aof in the working directory, with or without an RDB file as its
    beginning (preamble: its rdbchecksum)."""
    server = make_server(AOF, files=FILES, start=False)
    commands = encode("SELECT", "0") + encode("SET", "k", "v")
    if preamble:
        oracle = Server(ORACLE, 1, {"rdbchecksum": preamble})
        oracle.expected_files.add("dump.rdb")
        oracle.start()
        with oracle.connect() as client:
            client.ok("SET", "base", "b")
            client.ok("SAVE")
        oracle.stop()
        with open(oracle.file("dump.rdb"), "rb") as file:
            commands = file.read() + commands
        oracle.remove()
    with open(server.file("appendonly.aof"), "wb") as file:
        file.write(commands)
    server.start()
    assert not os.path.exists(server.file("appendonly.aof"))
    assert manifest(server).startswith("file appendonly.aof seq 1 type b\n")
    with server.connect() as client:
        assert client.call("GET", "k") == b"v"
        assert client.call("GET", "base") == (b"b" if preamble else None)
        rewrite(server)
        client.ok("SET", "l", "w")
    server.stop()
    server.start()
    with server.connect() as client:
        assert client.call("MGET", "k", "l") == [b"v", b"w"]


def test_a_delivery_of_a_clock_that_was_ahead(make_server):
    """A log says when a stream's entry was given; a clock that has been set back since does not change that."""
    server = make_server(AOF, files=FILES, start=False)
    at_ms = int(time.time() * 1000) + 3600000
    claim = ["XCLAIM", "s", "g", "c", "0", "1-1", "TIME", str(at_ms), "RETRYCOUNT", "1", "FORCE", "JUSTID", "LASTID", "1-1"]
    with open(server.file("appendonly.aof"), "wb") as file:
        file.write(b"".join(encode(*words) for words in (
            ["XADD", "s", "1-1", "f", "v"], ["XGROUP", "CREATE", "s", "g", "0"], claim)))
    server.start()
    with server.connect() as client:
        group = client.call("XINFO", "STREAM", "s", "FULL")[-1][0]
        assert group[group.index(b"pending") + 1][0][2] == at_ms
        assert client.call("XCLAIM", "s", "g", "c", "0", "1-1", "TIME", at_ms) != []  # a client's is bounded
        group = client.call("XINFO", "STREAM", "s", "FULL")[-1][0]
        assert group[group.index(b"pending") + 1][0][2] < at_ms - 3000000


# ---- start, on and off

def test_on_and_off_while_it_runs(make_server):
    server = make_server(files=FILES)
    with server.connect() as client:
        client.ok("SET", "before", "1")
        client.ok("CONFIG", "SET", "appendonly", "yes")
        client.ok("SET", "meanwhile", "1")
        eventually(lambda: server.info()["aof_rewrite_in_progress"] == "0"
                   and os.path.exists(server.file(MANIFEST)))
        client.ok("SET", "after", "1")
        client.ok("CONFIG", "SET", "appendonly", "no")
        assert server.info()["aof_enabled"] == "0"
        client.ok("SET", "unlogged", "1")
        client.ok("CONFIG", "SET", "appendonly", "yes", "appendfsync", "always")
        eventually(lambda: server.info()["aof_rewrite_in_progress"] == "0"
                   and "seq 2 type b" in server.read(MANIFEST))
        client.ok("SET", "last", "1")
    server.kill()
    server.options["appendonly"] = "yes"
    server.start()
    with server.connect() as client:
        assert sorted(client.call("KEYS", "*")) == [b"after", b"before", b"last", b"meanwhile",
                                                    b"unlogged"]


@pytest.mark.parametrize("by_signal", [True, False])
def test_end_before_the_first_base(make_server, by_signal):
    """appendonly has just been turned on: an orderly end writes the base that is missing."""
    server = make_server({"rdb-key-save-delay": "10000"}, files=FILES)
    with server.connect() as client:
        client.ok("DEBUG", "POPULATE", 5000)
        client.ok("CONFIG", "SET", "appendonly", "yes")
        for _ in range(3):
            client.call("INCR", "n")
        assert server.info()["aof_rewrite_in_progress"] == "1"
        if by_signal:
            server.stop()
        else:
            client.send("SHUTDOWN")
            assert server.wait_exit() == 0
    server.options.update({"appendonly": "yes", "rdb-key-save-delay": "0"})
    for n in (4, 5):
        server.start()
        with server.connect() as client:
            assert client.call("DBSIZE") == 5001 and client.call("INCR", "n") == n
        server.stop()


def test_loadaof_and_info(make_server):
    server = make_server(AOF, files=FILES)
    with server.connect() as client:
        fill(client)
        before = content(client)
        client.ok("DEBUG", "LOADAOF")
        assert content(client) == before
        client.ok("SET", "more", "1")
        client.ok("DEBUG", "LOADAOF")
        assert client.call("GET", "more") == b"1"
        info = server.info()
        assert info["aof_enabled"] == "1" and info["aof_last_write_status"] == "ok"
        assert int(info["aof_current_size"]) > int(info["aof_base_size"]) > 0
        client.ok("CONFIG", "SET", "appendonly", "no")
        assert isinstance(client.call("DEBUG", "LOADAOF"), Error)


def test_memory_copied_by_a_rewrite_is_told(make_server):
    """What the child had to copy because it touched its own memory: never nothing."""
    server = make_server(AOF, files=FILES)
    with server.connect() as client:
        for n in range(2000):
            client.ok("SET", "k%d" % n, "v" * 500)
    rewrite(server)
    assert int(server.info("persistence")["aof_last_cow_size"]) > 0


def test_it_grows_and_is_rewritten(make_server):
    server = make_server(dict(AOF, **{"auto-aof-rewrite-min-size": "100kb",
                                      "appendfsync": "no"}), files=FILES)
    with server.connect() as client:
        for _ in range(40):
            client.pipeline([["SET", "k", "x" * 100]] * 100)
        eventually(lambda: int(server.info()["aof_rewrites"]) > 0
                   and server.info()["aof_rewrite_in_progress"] == "0")
        eventually(lambda: int(server.info()["aof_current_size"]) < 500_000)


def test_rewrites_under_load(make_server):
    """Increments while a child writes are kept, in the order of their acknowledgement."""
    server = make_server(dict(AOF, appendfsync="no"), files=FILES)
    stop = threading.Event()

    def write(name):
        with server.connect() as client:
            while not stop.is_set():
                client.pipeline([["INCR", name], ["RPUSH", "l" + name, "e"], ["SADD", "s", name],
                                 ["SPOP", "s"]] * 20)

    threads = [threading.Thread(target=write, args=("w%d" % n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(4):
            rewrite(server)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    with server.connect() as client:
        before = content(client)
    server.stop()
    server.start()
    with server.connect() as client:
        assert content(client) == before


# ---- kill

def acknowledged_load(server, clients, seconds, depth):
    """Numbered writes of several clients until the server dies: {client: last acknowledged}."""
    last = {}

    def write(number):
        count = last[number] = 0
        try:
            with server.connect() as client:
                while True:
                    words = [["SET", "k%d" % number, str(count + n + 1)] for n in range(depth)]
                    for reply in client.pipeline(words):
                        assert reply == b"OK"
                    count += depth
                    last[number] = count
        except (OSError, Closed):
            return

    threads = [threading.Thread(target=write, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    server.kill()
    for thread in threads:
        thread.join()
    return last


@pytest.mark.parametrize("depth", [1, 16])
def test_no_acknowledged_write_is_lost(make_server, depth):
    """A few rounds of kill -9; what the kernel has is not lost by it, so this shows that nothing is
    answered before it was written, and that a torn end does not stand in the way."""
    server = make_server(AOF, files=FILES)
    for round_number in range(6):
        last = acknowledged_load(server, 8, 0.15 + 0.03 * round_number, depth)
        server.start()
        with server.connect() as client:
            for number, count in last.items():
                found = int(client.call("GET", "k%d" % number) or 0)
                assert count <= found <= count + depth, (number, count, found)
            client.ok("FLUSHALL")


@pytest.mark.parametrize("policy", ["everysec", "no"])
def test_a_kill_costs_little(make_server, policy):
    server = make_server(dict(AOF, appendfsync=policy), files=FILES)
    with server.connect() as client:
        client.ok("SET", "k", "v")
        eventually(lambda: os.path.getsize(server.file(INCREMENT)) > 0)
    server.kill()
    server.start()
    with server.connect() as client:
        assert client.call("GET", "k") == b"v"


def test_replies_wait_for_the_sync_in_order(make_server):
    """Blocked clients, pipelines of reads and writes, transactions: all answered, in order."""
    server = make_server(AOF, files=FILES)
    with server.connect() as one, server.connect() as two:
        one.send("BLPOP", "l", "0")
        eventually(lambda: server.info("clients")["blocked_clients"] == "1")
        replies = two.pipeline([["SET", "a", "1"], ["GET", "a"], ["MULTI"], ["INCR", "a"],
                                ["EXEC"], ["GET", "a"], ["RPUSH", "l", "x"], ["PING"]] * 50)
        assert replies[0:2] == [b"OK", b"1"] and replies[7] == b"PONG"
        assert replies[4] == [2] and replies[-3] == b"2"
        assert one.read() == [b"l", b"x"]
        two.send("SET", "b", "1")
        two.send("QUIT")
        assert two.read() == b"OK" and two.read() == b"OK"
        assert two.is_closed()


# ---- damage

def small_log(server):
    with server.connect() as client:
        client.ok("SET", "a", "1")
        client.pipeline([["MULTI"], ["SET", "b", "1"], ["SET", "c", "1"], ["EXEC"]])
        client.ok("SET", "d", "x")
    server.stop()
    with open(server.file(INCREMENT), "rb") as file:
        return file.read()


@pytest.mark.any_threads
def test_cut_at_every_byte(make_server):
    server = make_server(AOF, files=FILES)
    log = small_log(server)
    step = 3 if is_sanitized(server_path()) else 1  # it takes long to start, and is no word's length
    for length in [*range(0, len(log), step), len(log)]:
        with open(server.file(INCREMENT), "wb") as file:
            file.write(log[:length])
        server.start()
        with server.connect() as client:
            keys = sorted(client.call("KEYS", "*"))
            assert keys in ([], [b"a"], [b"a", b"b", b"c"], [b"a", b"b", b"c", b"d"]), length
            if length == len(log):
                assert len(keys) == 4
            client.ok("SET", "z", "1")  # goes behind what is whole
        server.stop()
        if length % (16 * step) == 0:
            server.start()
            with server.connect() as client:
                assert sorted(client.call("KEYS", "*")) == keys + [b"z"]
            server.stop()
    server.start()


@pytest.mark.any_threads
def test_a_torn_end_may_be_refused(make_server):
    server = make_server(dict(AOF, **{"aof-load-truncated": "no"}), files=FILES)
    log = small_log(server)
    with open(server.file(INCREMENT), "wb") as file:
        file.write(log[:-3])
    text = server.start_fails()
    assert "ends within a command" in text and "offset %d" % (len(log) - len(encode("SET", "d", "x"))) in text


@pytest.mark.any_threads
@pytest.mark.parametrize("old,new,says", [
    (b"$3\r\nSET\r\n$1\r\na", b"$9\r\nSET\r\n$1\r\na", "a word does not end where it should"),
    (b"*3\r\n$3\r\nSET\r\n$1\r\na", b"+3\r\n$3\r\nSET\r\n$1\r\na", "does not begin with *"),
    (b"$3\r\nSET\r\n$1\r\na", b"$x\r\nSET\r\n$1\r\na", "a number is damaged"),
    (b"$3\r\nSET\r\n$1\r\na", b"$3\r\nNOT\r\n$1\r\na", "cannot be run"),
    (b"$1\r\n0\r\n", b"$2\r\n99\r\n", "cannot be run"),
    (b"EXEC\r\n", b"MULTI", "MULTI within"),
])
def test_other_damage_is_refused(make_server, old, new, says):
    server = make_server(AOF, files=FILES)
    log = small_log(server)
    assert log.count(old) == 1
    damaged = log.replace(b"$4\r\nEXEC\r\n", b"$5\r\nMULTI\r\n") if b"EXEC" in old else log.replace(old, new)
    with open(server.file(INCREMENT), "wb") as file:
        file.write(damaged)
    text = server.start_fails()
    assert says in text and "offset" in text, text
    server.expected_files |= set(FILES)


@pytest.mark.any_threads
@pytest.mark.parametrize("text,says", [
    ("", "empty"),
    ("file x seq 1 type b", "no end"),
    ("file ../x seq 1 type b\n", "without directory"),
    ("file x seq 0 type b\n", "sequence number"),
    ("file x seq 1 type q\n", "type of file"),
    ("file x seq 1\n", "pairs|needed"),
    ("file x seq 1 type b\nfile y seq 2 type b\n", "more than one base"),
    ("file x seq 2 type i\nfile y seq 1 type i\n", "not in order"),
    ("file missing seq 1 type b\n", "not there"),
])
def test_bad_manifests(make_server, text, says):
    server = make_server(AOF, files=FILES)
    server.stop()
    with open(server.file(MANIFEST), "w", encoding="utf-8") as file:
        file.write(text)
    assert re.search(says, server.start_fails())


def test_a_torn_file_that_is_not_the_last(make_server):
    """Only where what follows is empty, as an interrupted rewrite leaves it."""
    server = make_server(AOF, files=FILES)
    log = small_log(server)
    with open(server.file(INCREMENT), "wb") as file:
        file.write(log[:-3])
    files = manifest(server) + "file appendonly.aof.2.incr.aof seq 2 type i\n"
    with open(server.file(MANIFEST), "w", encoding="utf-8") as file:
        file.write(files)
    second = server.file("appendonlydir/appendonly.aof.2.incr.aof")
    with open(second, "wb") as file:
        file.write(b"")
    server.start()
    with server.connect() as client:
        assert sorted(client.call("KEYS", "*")) == [b"a", b"b", b"c"]
        client.ok("SET", "e", "1")
    server.stop()
    with open(server.file(INCREMENT), "wb") as file:
        file.write(log[:-3])
    assert "others follow it" in server.start_fails()


# ---- faults

@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own of 1 MiB."""
    place = str(tmp_path / "disk")
    os.mkdir(place)
    if os.geteuid() != 0 or subprocess.call(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place],
            stderr=subprocess.DEVNULL) != 0:
        pytest.skip("cannot mount a file system here")
    yield place
    subprocess.call(["umount", "-l", place])


@pytest.mark.parametrize("policy", ["always", "everysec"])
def test_a_full_disk(make_server, small_disk, policy):
    server = make_server(dict(AOF, dir=small_disk, appendfsync=policy,
                              **{"auto-aof-rewrite-percentage": "0"}), files=FILES)
    ballast = os.path.join(small_disk, "ballast")
    with server.connect() as client, server.connect() as other:
        client.ok("SET", "k", "v")
        eventually(lambda: server.info()["aof_buffer_length"] == "0")
        with open(ballast, "wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096) == 4096:
                    pass
            except OSError:
                pass
        client.send("SET", "large", "x" * 20_000)
        eventually(lambda: server.info()["aof_last_write_status"] == "err")
        assert other.call("GET", "k") == b"v"
        error = other.call("SET", "refused", "1")
        assert isinstance(error, Error) and error.startswith(b"MISCONF Errors writing to the AOF"), error
        answer = client.read()
        if policy == "always":
            assert isinstance(answer, Error) and b"MISCONF" in answer and client.is_closed(), answer
        else:
            assert answer == b"OK"
        os.unlink(ballast)
        eventually(lambda: server.info()["aof_last_write_status"] == "ok")
        other.ok("SET", "again", "1")
        eventually(lambda: server.info()["aof_buffer_length"] == "0")
    server.kill()
    server.start()
    with server.connect() as client:
        assert sorted(client.call("KEYS", "*")) == [b"again", b"k", b"large"]


SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Syncs fail while the file that KT_FAULT names is there. */
static int broken(void)
{
    const char *path = getenv("KT_FAULT");
    return path && access(path, F_OK) == 0;
}

int fdatasync(int fd)
{
    if (broken()) {
        errno = EIO;
        return -1;
    }
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}
"""


@pytest.fixture
def sync_fault(tmp_path, monkeypatch):
    """Has fdatasync of servers that are started now fail while the returned file is there."""
    source, library = str(tmp_path / "shim.c"), str(tmp_path / "shim.so")
    with open(source, "w", encoding="utf-8") as file:
        file.write(SHIM)
    if is_sanitized(server_path()):
        pytest.skip("a sanitizer has to be the first library of a process")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    monkeypatch.setenv("LD_PRELOAD", library)
    monkeypatch.setenv("KT_FAULT", str(tmp_path / "fault"))
    return str(tmp_path / "fault")


def test_a_sync_that_fails(make_server, sync_fault):
    """No later sync is believed: the log is rewritten, and only then writes are answered. That at
    which it happened is never."""
    server = make_server(AOF, files=FILES)
    with server.connect() as client, server.connect() as other:
        client.ok("SET", "a", "1")
        with open(sync_fault, "w", encoding="utf-8"):
            pass
        client.send("SET", "b", "1")
        eventually(lambda: server.info()["aof_last_write_status"] == "err")
        error = other.call("SET", "refused", "1")
        assert isinstance(error, Error) and b"Input/output error" in error
        assert other.call("GET", "b") == b"1"
        answer = client.read()
        assert isinstance(answer, Error) and b"MISCONF" in answer and client.is_closed(), answer
        os.unlink(sync_fault)
        eventually(lambda: server.info()["aof_last_write_status"] == "ok")
        assert re.search(r"seq ([2-9]|\d\d) type b", server.read(MANIFEST))
        other.ok("SET", "c", "1")
    server.kill()
    server.start()
    with server.connect() as client:
        assert sorted(client.call("KEYS", "*")) == [b"a", b"b", b"c"]


def test_a_rewrite_that_is_killed(make_server):
    server = make_server(AOF, files=FILES)
    with server.connect() as client:
        client.call("DEBUG", "POPULATE", "100000")
        client.ok("CONFIG", "SET", "key-load-delay", "0")
        client.ok("SET", "k", "v")
        assert client.call("BGREWRITEAOF").startswith(b"Background append only file rewriting")
        pid = re.findall(r"Background append only file rewriting started by pid (\d+)", server.output())[-1]
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass
        eventually(lambda: server.info()["aof_rewrite_in_progress"] == "0")
        client.ok("SET", "l", "w")
        rewrite(server)
    server.kill()
    server.start()
    with server.connect() as client:
        assert client.call("MGET", "k", "l") == [b"v", b"w"]
    assert not [name for name in os.listdir(server.directory) if name.startswith("temp-")]


def test_a_rewrite_that_waits_for_a_save(make_server):
    server = make_server(AOF, files=FILES + ("dump.rdb",))
    with server.connect() as client:
        client.ok("DEBUG", "POPULATE", "1000")
        client.ok("CONFIG", "SET", "rdb-key-save-delay", "1000000")
        assert client.call("BGSAVE") == b"Background saving started"
        assert client.call("BGREWRITEAOF") == b"Background append only file rewriting scheduled"
        info = server.info("persistence")
        assert info["aof_rewrite_scheduled"] == info["aof_pending_rewrite"] == "1"
        client.ok("CONFIG", "SET", "rdb-key-save-delay", "0")
        client.ok("DEBUG", "RELOAD")  # ends the child
        eventually(lambda: server.info("persistence")["aof_rewrites"] == "1")
        assert server.info("persistence")["aof_pending_rewrite"] == "0"


@pytest.mark.any_threads
def test_bgrewriteaof_without_a_log(make_server):
    server = make_server(files=FILES)
    with server.connect() as client:
        client.ok("SET", "k", "v")
        rewrite(server)
        assert manifest(server) == "file appendonly.aof.1.base.rdb seq 1 type b\n"
