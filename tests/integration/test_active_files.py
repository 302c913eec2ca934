"""What files of an active replica hold beside the data (active/DESIGN.md, "Files"), read by those who
are none: redis-server and its tools, a server of ours, keydb-check-rdb and keydb-check-aof."""

import os
import struct
import subprocess

from lib.bounds import scaled
from lib.server import REPOSITORY

NODE = b"a" * 16
EPOCH = 1800000000000 << 16
ORIGIN = NODE.hex() + "%016x" % EPOCH
FAR_MS = 4102444800000


def text(value):
    """An RDB string."""
    length = bytes([len(value)]) if len(value) < 64 else struct.pack(">H", 0x4000 | len(value))
    return length + value


def aux(name, value):
    return b"\xfa" + text(name) + text(value)


def dot(stamp, sequence):
    return aux(b"active-dot", struct.pack("<QQ", stamp, 1 << 48 | sequence))


def rdb():
    """Two databases; keys with and without dots, deadlines, an AUX field behind the last one."""
    table = struct.pack("<I", 1) + NODE + struct.pack("<QQ", EPOCH, 900)
    conflicts = struct.pack("<IQI", 0, 0, 1) + b"a"
    head = (b"REDIS0010" + aux(b"redis-ver", b"7.2.4") + aux(b"active-node", NODE.hex().encode()) +
            aux(b"active-clock", str(EPOCH + 1000).encode()) + aux(b"active-positions", table) +
            aux(b"active-conflicts", conflicts))
    first = (b"\xfe\x00" + b"\xfb\x04\x01" +
             dot(EPOCH + 1, 1) + b"\x00" + text(b"a") + text(b"1") +
             b"\x00" + text(b"plain") + text(b"2") +
             dot(EPOCH + 2, 2) + b"\xfc" + struct.pack("<Q", FAR_MS) + b"\x00" + text(b"b") +
             text(b"x" * 100) +
             dot(EPOCH + 3, 3) + b"\x02" + text(b"s") + b"\x01" + text(b"member"))
    second = b"\xfe\x01" + b"\xfb\x01\x00" + dot(EPOCH + 4, 900) + b"\x00" + text(b"c") + text(b"3")
    return head + first + second + b"\xff" + bytes(8)


def word(value):
    return b"$%d\r\n%s\r\n" % (len(value), value)


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(word(w.encode()) for w in words)


def head(sequence, *more):
    return command("KEYDB.DOT", ORIGIN, str(sequence), str(EPOCH + sequence), *more)


AOF = (command("SELECT", "0") + head(1) + command("SET", "a", "1") +
       head(2, "KEY", "0", "l", "KEY", "1", "l") + command("MULTI") + command("RPUSH", "l", "x") +
       command("SELECT", "1") + command("RPUSH", "l", "y") + command("EXEC") +
       head(3, "CONFLICT", "0", "a", "0", "ALONE"))


def check_rdb(server):
    with server.connect() as conn:
        assert conn.call("DBSIZE") == 4
        assert conn.call("GET", "a") == b"1" and conn.call("GET", "plain") == b"2"
        assert conn.call("GET", "b") == b"x" * 100
        assert conn.call("PEXPIRETIME", "b") == FAR_MS and conn.call("PTTL", "a") == -1
        assert conn.call("SMEMBERS", "s") == [b"member"]
        conn.ok("SELECT", "1")
        assert conn.call("GET", "c") == b"3"


def put(server, name, data):
    os.makedirs(os.path.dirname(server.file(name)), exist_ok=True)
    with open(server.file(name), "wb") as file:
        file.write(data)


def test_redis_reads_an_rdb_file_with_dots(make_oracle):
    oracle = make_oracle(start=False)
    put(oracle, "dump.rdb", rdb())
    check_rdb(oracle.start())
    done = subprocess.run(["redis-check-rdb", oracle.file("dump.rdb")], capture_output=True,
                          timeout=scaled(60))
    assert done.returncode == 0, done.stdout


def test_who_is_not_active_reads_over_dots(make_server):
    server = make_server(start=False, files=("dump.rdb",))
    put(server, "dump.rdb", rdb())
    server.start()
    check_rdb(server)
    with server.connect() as conn:
        conn.ok("SAVE")
    with open(server.file("dump.rdb"), "rb") as file:
        assert b"active-" not in file.read()


def test_who_is_not_active_replays_a_log_with_dots(make_server):
    server = make_server(start=False, files=("appendonlydir",), options={"appendonly": "yes"})
    put(server, "appendonlydir/appendonly.aof.manifest",
        b"file appendonly.aof.1.incr.aof seq 1 type i\n")
    put(server, "appendonlydir/appendonly.aof.1.incr.aof", AOF)
    server.start()
    with server.connect() as conn:
        assert conn.call("GET", "a") == b"1" and conn.call("LRANGE", "l", "0", "-1") == [b"x"]
        conn.ok("SELECT", "1")
        assert conn.call("LRANGE", "l", "0", "-1") == [b"y"]


def test_a_head_without_its_unit_is_torn_off(make_server):
    server = make_server(start=False, files=("appendonlydir",), options={"appendonly": "yes"})
    name = "appendonlydir/appendonly.aof.1.incr.aof"
    put(server, "appendonlydir/appendonly.aof.manifest",
        b"file appendonly.aof.1.incr.aof seq 1 type i\n")
    put(server, name, AOF + head(4) + command("SET", "a", "2")[:-3])
    server.start()
    with server.connect() as conn:
        assert conn.call("GET", "a") == b"1"
    with open(server.file(name), "rb") as file:
        assert file.read().startswith(AOF)


def test_the_tools_read_over_dots(make_server):
    server = make_server(files=("dots.rdb", "dots.aof"))
    put(server, "dots.rdb", rdb())
    put(server, "dots.aof", AOF)
    tools = os.path.dirname(server.path)
    for tool, name in (("keydb-check-rdb", "dots.rdb"), ("keydb-check-aof", "dots.aof")):
        done = subprocess.run([os.path.join(tools, tool), server.file(name)], capture_output=True,
                              timeout=scaled(60), cwd=REPOSITORY)
        assert done.returncode == 0, done.stdout + done.stderr


def test_redis_refuses_a_log_with_heads(make_oracle):
    oracle = make_oracle(start=False, options={"appendonly": "yes"})
    put(oracle, "appendonlydir/appendonly.aof.manifest",
        b"file appendonly.aof.1.incr.aof seq 1 type i\n")
    put(oracle, "appendonlydir/appendonly.aof.1.incr.aof", AOF)
    assert "Unknown command 'KEYDB.DOT'" in oracle.start_fails()
