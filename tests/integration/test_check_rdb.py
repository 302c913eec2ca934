"""keydb-check-rdb: what it says of whole and of damaged files, and that no file is too much for it;
the server's loader reads by the same code."""

import json
import os
import re
import subprocess
import tempfile

import pytest

from integration.test_dump import build
from integration.test_rdb import LOADABLE, SAMPLES, make, sample, with_file  # noqa: F401 (a fixture)
from lib.seeds import generator, seeds
from lib.server import server_path

TOOL = os.path.join(os.path.dirname(server_path()), "keydb-check-rdb")


def run(data):
    with tempfile.NamedTemporaryFile(prefix="kt-check-") as file:
        file.write(data)
        file.flush()
        return subprocess.run([TOOL, file.name], capture_output=True, text=True, timeout=60)


@pytest.mark.any_threads
@pytest.mark.parametrize("name", LOADABLE)
def test_whole_files(name, threads):
    done = run(sample(name + ".rdb"))
    assert done.returncode == 0 and "\\o/ RDB looks OK! \\o/" in done.stdout
    assert "[offset 0] Checking RDB file" in done.stdout and "keys read" in done.stdout


def every_sample():
    names = os.listdir(SAMPLES) if os.path.isdir(SAMPLES) else []
    return sorted(name for name in names if not name.endswith((".json", ".md")))


@pytest.mark.any_threads
@pytest.mark.parametrize("name", every_sample() or ["none"])
def test_every_sample(name, threads):
    """Whatever lies there: read as a server would (test_rdb.py), with the keys and expiries that the json tells."""
    done = run(sample(name))
    if "corrupt_ziplist" in name:
        assert done.returncode == 1 and re.search(r"--- RDB ERROR DETECTED ---\n\[offset [1-9]\d*\] ", done.stdout)
        return
    assert done.returncode == 0 and "RDB looks OK!" in done.stdout and done.stderr == ""
    counted = re.search(r"\[info\] (\d+) keys read\n\[info\] (\d+) expires\n\[info\] 0 already expired\n", done.stdout)
    told = os.path.join(SAMPLES, os.path.splitext(name)[0] + ".json")
    if os.path.exists(told):
        with open(told, encoding="utf-8") as file:
            keys = json.load(file)["keys"].values()
        assert [int(n) for n in counted.groups()] == [len(keys), sum("expire_ms" in key for key in keys)]
    assert ("empty collections" in done.stdout) == ("empty_keys" in name)
    assert (" bytes follow" in done.stdout) == name.endswith(".aof")
    with tempfile.NamedTemporaryFile(prefix="kt-check-") as file:
        file.write(sample(name))
        file.flush()
        of_aof = subprocess.run([TOOL.replace("check-rdb", "check-aof"), file.name], capture_output=True, timeout=60)
    assert of_aof.returncode == 0, of_aof


@pytest.mark.any_threads
def test_shape_of_output(threads):
    lines = run(sample("redis-7.0.15.rdb")).stdout.split("\n")
    assert lines[1:] == [
        "[offset 27] AUX FIELD redis-ver = '7.0.15'", "[offset 41] AUX FIELD redis-bits = '64'",
        "[offset 53] AUX FIELD ctime = '1795199993'", "[offset 68] AUX FIELD used-mem = '1719032'",
        "[offset 80] AUX FIELD aof-base = '0'", "[offset 156] Selecting DB ID 0",
        "[offset 47784] Selecting DB ID 5", "[offset 47809] Checksum OK",
        "[offset 47809] \\o/ RDB looks OK! \\o/", "[info] 26 keys read", "[info] 2 expires",
        "[info] 0 already expired", "[info] 1 libraries of functions", ""]


@pytest.mark.any_threads
def test_damage_is_told_with_its_place(threads):
    data = sample("redis-7.0.15.rdb")
    done = run(data[:len(data) // 2])
    assert done.returncode == 1
    assert "--- RDB ERROR DETECTED ---\n[offset 23901]" in done.stdout
    assert "While doing: read-object-value" in done.stdout
    assert "Reading key 'set:big'" in done.stdout
    assert "Reading type 2 (set-hashtable)" in done.stdout
    for data in (b"", b"hello world, which is no RDB file", b"REDIS", b"REDIS0010", b"REDIS9999\xff"):
        assert run(data).returncode == 1


@pytest.mark.any_threads
def test_arguments(threads):
    for arguments in ([], ["a", "b"], ["/nonexistent"], ["/dev/null"], ["/"], ["--help"]):
        assert subprocess.run([TOOL] + arguments, capture_output=True).returncode == 1
    assert subprocess.run([TOOL, "-v"], capture_output=True).stdout.startswith(b"keydb-check-rdb ")


@pytest.fixture(scope="module")
def small_file():
    """All types in few bytes."""
    from lib.server import Server
    server = Server(threads=1).start()
    server.expected_files.add("dump.rdb")
    try:
        with server.connect() as c:
            c.ok("SET", "s", "some text that LZF packs " + 4 * "aaaaaaaaaa")
            c.ok("SET", "n", 12345, "PX", 10**9)
            c.call("RPUSH", "l", "a", 1, "b")
            c.call("SADD", "i", 1, 2, 300)
            c.call("SADD", "t", "x", "y")
            c.call("ZADD", "z", 1.5, "a", 2, "b")
            c.call("HSET", "h", "f", "v", "g", "w")
            c.call("HPEXPIRE", "h", 10**9, "FIELDS", 1, "f")
            c.call("XADD", "x", "1-1", "a", "b")
            c.call("XGROUP", "CREATE", "x", "g", "0")
            c.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "x", ">")
            c.ok("CONFIG", "SET", "hash-max-listpack-entries", "1", "zset-max-listpack-entries", "1",
                 "set-max-listpack-entries", "1", "set-max-intset-entries", "1")
            c.call("HSET", "h2", "f", "v", "g", "w")
            c.call("SADD", "t2", "x", "y")
            c.call("ZADD", "z2", 1.5, "a", 2, "b")
            c.ok("SAVE")
        with open(server.file("dump.rdb"), "rb") as file:
            return file.read()
    finally:
        server.stop()
        server.remove()


@pytest.mark.any_threads
def test_every_byte_flipped(threads, small_file):
    """A checksum sees every single change: all are refused, and none kills the reader."""
    assert run(small_file).returncode == 0
    assert len(small_file) < 1500
    random = generator(next(iter(seeds(5, 1))))
    for at in range(len(small_file)):
        data = bytearray(small_file)
        data[at] ^= random.choice([0xff, 1 << random.randrange(8)])
        done = run(bytes(data))
        assert done.returncode == 1, (at, data[at], done)
        assert "RDB ERROR DETECTED" in done.stdout


@pytest.mark.any_threads
def test_every_byte_flipped_without_checksum(threads, small_file):
    """Loads or refuses; never dies."""
    random = generator(next(iter(seeds(6, 1))))
    for at in range(len(small_file) - 8):
        data = bytearray(small_file)
        data[-8:] = bytes(8)
        data[at] ^= random.choice([0xff, 1 << random.randrange(8)])
        done = run(bytes(data))
        assert done.returncode in (0, 1), (at, data[at], done)


def test_server_refuses_flipped_bytes(make, small_file):
    random = generator(next(iter(seeds(7, 1))))
    for at in random.sample(range(len(small_file)), 12):
        data = bytearray(small_file)
        data[at] ^= 1 << random.randrange(8)
        text = with_file(make, bytes(data)).start_fails()
        assert "exit status 1" in text and "at offset" in text
