"""The data set as a file: saving, loading, what earlier servers wrote, damaged files, save points,
the save before the end, a killed child."""

import json
import os
import signal

import pytest

from integration.test_dump import build, content
from lib.bounds import eventually
from lib.resp import Error
from lib.server import ORACLE, REPOSITORY, Server, children_of
from lib.seeds import generator, seeds

SAMPLES = os.path.join(os.path.dirname(REPOSITORY), "shared", "data", "rdb")
SAMPLES = SAMPLES if os.path.isdir(SAMPLES) else "/work/shared/data/rdb"
LOADABLE = ["redis-7.0.15", "redis-7.4.1", "valkey-8.0.1", "keydb-6.3.4", "keydb-6.3.4-active",
            "redis-assets-encodings", "redis-assets-hash-ziplist", "redis-assets-hash-zipmap",
            "redis-assets-list-quicklist", "redis-assets-zset-ziplist"]
FAR_MS = 4102444800000
BOUND_S = 20.0


def until(condition):
    eventually(condition, "what was begun is over", BOUND_S, 0.02)


def with_file(make_server, data, **options):
    """A server, not started, whose file holds `data`."""
    server = make_server(start=False, **options)
    server.expected_files.add("dump.rdb")
    if data is not None:
        with open(server.file("dump.rdb"), "wb") as file:
            file.write(data)
    return server


@pytest.fixture
def make(threads):
    made = []

    def make_server(start=True, options=None):
        server = Server(threads=threads, options=options)
        made.append(server)
        return server.start() if start else server
    yield make_server
    for server in made:
        server.stop()
    problems = [server.problems() for server in made]
    for server in made:
        server.remove()
    assert not any(problems), "\n".join(problems)


def sample(name):
    path = os.path.join(SAMPLES, name)
    if not os.path.exists(path):
        pytest.skip("no samples at %s" % SAMPLES)
    with open(path, "rb") as file:
        return file.read()


def latin(value):
    return value.decode("latin-1")


def value_of(c, key, kind):
    if kind == "string":
        return latin(c.call("GET", key))
    if kind == "list":
        return [latin(v) for v in c.call("LRANGE", key, 0, -1)]
    if kind == "set":
        return sorted(latin(v) for v in c.call("SMEMBERS", key))
    if kind == "hash":
        flat = [latin(v) for v in c.call("HGETALL", key)]
        return dict(zip(flat[::2], flat[1::2]))
    if kind == "zset":
        flat = [latin(v) for v in c.call("ZRANGE", key, 0, -1, "WITHSCORES")]
        return [[m, float(s)] for m, s in zip(flat[::2], flat[1::2])]
    assert kind == "stream"
    return [[latin(i), {latin(f): latin(v) for f, v in zip(w[::2], w[1::2])}]
            for i, w in c.call("XRANGE", key, "-", "+")]


@pytest.mark.any_threads
@pytest.mark.parametrize("name", LOADABLE)
def test_samples(make, name):
    server = with_file(make, sample(name + ".rdb"))
    expected = json.loads(sample(name + ".json"))
    server.start()
    with server.connect() as c:
        count = 0
        for where, about in expected["keys"].items():
            count += 1
            db, key = where.split(":", 1)
            key = key.encode("latin-1")
            c.ok("SELECT", db)
            if about["type"] == "unknown":  # what KeyDB calls a job
                assert c.call("TYPE", key) == b"cron"
                continue
            wanted = about["value"]
            if about["type"] == "zset":
                wanted = [[m, float(s)] for m, s in wanted]
            assert latin(c.call("TYPE", key)) == about["type"], where
            assert value_of(c, key, about["type"]) == wanted, where
            # One of KeyDB's files holds a millisecond more than its json says.
            slack = 1 if name.startswith("keydb") and "expire_ms" in about else 0
            assert abs(c.call("PEXPIRETIME", key) - about.get("expire_ms", -1)) <= slack, where
            for group in about.get("groups", []) if about["type"] == "stream" else []:
                assert c.call("XINFO", "GROUPS", key)
        keyspace = server.info("keyspace")
        total = sum(int(line.split("=")[1].split(",")[0]) for line in keyspace.values())
        assert total == count
        c.ok("SELECT", 0)
        for where, fields in expected.get("hash_field_expire_ms", {}).items():
            key = where.split(":", 1)[1] if where[:2] == "0:" else where
            for field, at_ms in fields.items():
                got = c.call("HPEXPIRETIME", key, "FIELDS", 1, field)
                assert got == [at_ms if at_ms and at_ms > 0 else -1], (key, field)
        if name.startswith("keydb"):
            assert c.call("HPEXPIRETIME", "member-ttl:hash", "FIELDS", 2, "f", "g") == [FAR_MS, -1]
            assert c.call("PTTL", "member-ttl:set", "a") > 10**11
            assert c.call("PTTL", "member-ttl:zset", "p") > 10**11
            assert c.call("PTTL", "member-ttl:zset", "q") == -1
        digest = c.call("DEBUG", "DIGEST")
        c.ok("DEBUG", "RELOAD")
        assert c.call("DEBUG", "DIGEST") == digest


@pytest.mark.any_threads
def test_sample_with_empty_collections(make):
    server = with_file(make, sample("redis-assets-corrupt_empty_keys.rdb"))
    server.start()
    with server.connect() as c:
        assert c.call("DBSIZE") == 0
    assert "0 keys" in server.output()


@pytest.mark.any_threads
def test_sample_that_is_damaged(make):
    server = with_file(make, sample("redis-assets-corrupt_ziplist.rdb"))
    assert "at offset" in server.start_fails()


def fill(c):
    build(c)
    c.call("HPEXPIREAT", "hash:small", FAR_MS, "FIELDS", 1, "f")
    assert c.call("PEXPIREMEMBERAT", "set:str", "a", FAR_MS) == 1
    assert c.call("PEXPIREMEMBERAT", "zset:big", "mem7", FAR_MS) == 1
    c.call("KEYDB.NHSET", "nested.a.b", "1")
    c.call("PEXPIREAT", "str", FAR_MS)
    c.ok("SELECT", 3)
    c.ok("SET", "elsewhere", "x", "PX", 10**9)
    c.ok("SELECT", 0)


def test_restart_keeps_everything(make):
    server = with_file(make, None)
    server.start()
    with server.connect() as c:
        fill(c)
        digest = c.call("DEBUG", "DIGEST")
        assert c.call("SAVE") == b"OK"
        assert server.info("persistence")["rdb_changes_since_last_save"] == "0"
    server.stop()
    server.start()
    with server.connect() as c:
        assert c.call("DEBUG", "DIGEST") == digest
        assert c.call("PEXPIRETIME", "str") == FAR_MS
        assert c.call("HPEXPIRETIME", "hash:small", "FIELDS", 1, "f") == [FAR_MS]
        assert c.call("PTTL", "zset:big", "mem7") > 10**11
        assert server.info("persistence")["rdb_last_load_keys_loaded"] == str(
            c.call("DBSIZE") + 1)
        c.ok("DEBUG", "RELOAD")
        assert c.call("DEBUG", "DIGEST") == digest
        c.ok("SET", "lost", "1")
        c.ok("DEBUG", "RELOAD", "NOSAVE")
        assert c.call("DEBUG", "DIGEST") == digest


@pytest.mark.any_threads
def test_the_oracle_reads_our_file(make):
    server = with_file(make, None)
    server.start()
    with server.connect() as c:
        build(c)
        keys = {key: content(c, key) for key in c.call("KEYS", "*")}
        c.ok("SAVE")
    with open(server.file("dump.rdb"), "rb") as file:
        data = file.read()
    other = Server(ORACLE)
    try:
        other.expected_files.add("dump.rdb")
        with open(other.file("dump.rdb"), "wb") as file:
            file.write(data)
        other.start()
        with other.connect() as c:
            assert {key: content(c, key) for key in c.call("KEYS", "*")} == keys
    finally:
        other.stop()
        other.remove()


def test_bgsave(make):
    server = with_file(make, None)
    server.start()
    with server.connect() as c:
        fill(c)
        before = c.call("LASTSAVE")
        assert c.call("BGSAVE") == b"Background saving started"
        digest = c.call("DEBUG", "DIGEST")
        until(lambda: server.info("persistence")["rdb_bgsave_in_progress"] == "0")
        facts = server.info("persistence")
        assert facts["rdb_last_bgsave_status"] == "ok"
        assert facts["rdb_saves"] == "1"
        assert facts["rdb_changes_since_last_save"] == "0"
        assert c.call("LASTSAVE") >= before
        assert c.error("BGSAVE", "NONSENSE") == b"ERR syntax error"
    server.kill()
    server.process = None
    server.start()
    with server.connect() as c:
        assert c.call("DEBUG", "DIGEST") == digest


@pytest.mark.any_threads
def test_a_killed_child_leaves_the_old_file(make):
    server = with_file(make, None)
    server.start()
    with server.connect() as c:
        c.ok("SET", "old", "1")
        c.ok("SAVE")
        with open(server.file("dump.rdb"), "rb") as file:
            old = file.read()
        c.call("DEBUG", "POPULATE", 50000, "k", 100)
        c.ok("CONFIG", "SET", "rdb-key-save-delay", 10000)
        assert c.call("BGSAVE") == b"Background saving started"
        c.ok("CONFIG", "SET", "rdb-key-save-delay", 0)
        assert c.error("BGSAVE") == b"ERR Background save already in progress"
        assert c.error("BGSAVE", "SCHEDULE") == b"ERR Background save already in progress"
        assert c.error("SAVE") == b"ERR Background save already in progress"
        assert server.info("persistence")["rdb_bgsave_in_progress"] == "1"
        for pid in children_of(server.pid):
            os.kill(pid, signal.SIGKILL)
        until(lambda: server.info("persistence")["rdb_bgsave_in_progress"] == "0")
        assert server.info("persistence")["rdb_last_bgsave_status"] == "err"
        with open(server.file("dump.rdb"), "rb") as file:
            assert file.read() == old
        assert sorted(f for f in os.listdir(server.directory) if "rdb" in f) == ["dump.rdb"]
        # Without save points writes go on; with one they do not until a save succeeds.
        c.ok("SET", "a", "1")
        c.ok("CONFIG", "SET", "save", "10000 1000000000")
        assert c.error("SET", "a", "1").startswith(b"MISCONF ")
        assert c.call("GET", "a") == b"1"
        c.ok("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
        c.ok("SET", "a", "2")
        c.ok("CONFIG", "SET", "stop-writes-on-bgsave-error", "yes")
        c.ok("SAVE")
        c.ok("SET", "a", "3")
        c.ok("CONFIG", "SET", "save", "")


def test_reload_while_a_child_saves(make):
    """It is of what is there now, not of what the child's file or the one before it holds."""
    server = with_file(make, None)
    server.start()
    with server.connect() as c:
        c.ok("SET", "old", "1")
        c.ok("SAVE")
        c.call("DEBUG", "POPULATE", 1000, "k")
        c.ok("CONFIG", "SET", "rdb-key-save-delay", "1000000")
        assert c.call("BGSAVE") == b"Background saving started"
        c.ok("SET", "new", "1")
        digest = c.call("DEBUG", "DIGEST")
        c.ok("DEBUG", "RELOAD")
        assert c.call("DBSIZE") == 1002 and c.call("DEBUG", "DIGEST") == digest
        until(lambda: server.info("persistence")["rdb_bgsave_in_progress"] == "0")
        assert sorted(f for f in os.listdir(server.directory) if "rdb" in f) == ["dump.rdb"]
        c.ok("DEBUG", "RELOAD", "NOSAVE")
        assert c.call("DEBUG", "DIGEST") == digest


def test_save_points(make):
    server = with_file(make, None, options={"save": ["1", "3"]})
    server.start()
    with server.connect() as c:
        assert c.call("CONFIG", "GET", "save") == [b"save", b"1 3"]
        for i in range(3):
            c.ok("SET", "k%d" % i, "v")
        until(lambda: server.info("persistence")["rdb_saves"] == "1")
        c.ok("SET", "last", "v")
    server.stop()
    assert server.problems() == ""
    server.start()
    with server.connect() as c:
        assert c.call("DBSIZE") == 4
        for bad in ("x", "1", "1 x", "0 1", "1 -1", "1 2 3"):
            assert c.error("CONFIG", "SET", "save", bad)
        c.ok("CONFIG", "SET", "save", "900 1 60 20")
        assert c.call("CONFIG", "GET", "save") == [b"save", b"900 1 60 20"]


@pytest.mark.parametrize("words, kept", [(["SAVE"], True), (["NOSAVE"], False), ([], False)],
                         ids=["save", "nosave", "plain"])
def test_shutdown_without_save_points(make, words, kept):
    server = with_file(make, None)
    server.start()
    with server.connect() as c:
        c.ok("SET", "k", "v")
        c.send("SHUTDOWN", *words)
        assert server.wait_exit() == 0
    assert os.path.exists(server.file("dump.rdb")) == kept


def test_shutdown_with_save_points(make):
    server = with_file(make, None, options={"save": ["3600", "1"]})
    server.start()
    with server.connect() as c:
        c.ok("SET", "k", "v")
        c.send("SHUTDOWN", "NOSAVE")
        assert server.wait_exit() == 0
    assert not os.path.exists(server.file("dump.rdb"))
    server.start()
    with server.connect() as c:
        c.ok("SET", "k", "v")
        c.send("SHUTDOWN")
        assert server.wait_exit() == 0
    assert os.path.exists(server.file("dump.rdb"))


@pytest.mark.any_threads
def test_a_save_that_fails(make):
    server = with_file(make, None, options={"save": ["3600", "1"]})
    server.start()
    with server.connect() as c:
        c.ok("SET", "k", "v")
        # Nothing can be renamed onto a directory that holds something.
        os.makedirs(os.path.join(server.file("dump.rdb"), "inside"))
        assert isinstance(c.call("SAVE"), Error)
        assert c.error("SHUTDOWN") == b"ERR Errors trying to SHUTDOWN. Check logs."
        assert c.call("GET", "k") == b"v"
        # Who asked was told; only a BGSAVE that failed keeps writes out.
        assert server.info("persistence")["rdb_last_bgsave_status"] == "ok"
        assert server.info("persistence")["rdb_last_bgsave_time_sec"] == "-1"
        c.ok("SET", "k", "v")
        os.kill(server.pid, signal.SIGTERM)
        until(lambda: server.output().count("the server goes on") == 2)  # one is SHUTDOWN's
        assert c.call("GET", "k") == b"v"
        os.rmdir(os.path.join(server.file("dump.rdb"), "inside"))
        os.rmdir(server.file("dump.rdb"))
        c.ok("SAVE")
        c.ok("SET", "k", "w")


@pytest.mark.any_threads
@pytest.mark.parametrize("seed", seeds(1))
def test_flipped_bytes(make, seed):
    rng = generator(seed, "flips")
    server = with_file(make, None, options={"save": ""})
    server.start()
    with server.connect() as c:
        c.ok("SET", "s", "v" * 30)
        c.call("RPUSH", "l", "a", 1, "b")
        c.call("HSET", "h", "f", "v")
        c.call("ZADD", "z", 1.5, "m")
        c.call("XADD", "x", "1-1", "f", "v")
        c.call("SADD", "i", 1, 2, 3)
        c.ok("SAVE")
    server.stop()
    with open(server.file("dump.rdb"), "rb") as file:
        data = file.read()
    for _ in range(25):
        at = rng.randrange(len(data))
        broken = bytearray(data)
        broken[at] ^= 1 << rng.randrange(8)
        if at >= len(data) - 8 and not any(broken[-8:]):
            continue
        with open(server.file("dump.rdb"), "wb") as file:
            file.write(broken)
        assert "at offset" in server.start_fails(), at
    for cut in (0, 1, 9, len(data) // 2, len(data) - 9, len(data) - 1):
        with open(server.file("dump.rdb"), "wb") as file:
            file.write(data[:cut])
        assert "at offset" in server.start_fails(), cut


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-lru", "allkeys-lfu", "volatile-lfu"])
def test_last_use_is_kept(make, policy):
    """Idle times and frequencies are in the file, as the policy wants; ours, the oracle reads."""
    server = with_file(make, None)
    server.options["maxmemory-policy"] = policy
    server.start()
    lfu = policy.endswith("lfu")
    word = "FREQ" if lfu else "IDLETIME"
    with server.connect() as c:
        c.ok("SET", "k", "v")
        payload = c.call("DUMP", "k")
        c.ok("RESTORE", "k", 0, payload, "REPLACE", word, 200 if lfu else 5000)
        c.ok("SAVE")
        c.ok("DEBUG", "RELOAD", "NOSAVE")
        assert 190 <= c.call("OBJECT", word, "k") <= 5100
    oracle = Server(ORACLE, options={"save": "", "maxmemory-policy": policy})
    oracle.expected_files.add("dump.rdb")
    with open(server.file("dump.rdb"), "rb") as file:
        data = file.read()
    with open(oracle.file("dump.rdb"), "wb") as file:
        file.write(data)
    try:
        oracle.start()
        with oracle.connect() as c:
            assert 190 <= c.call("OBJECT", word, "k") <= 5100
    finally:
        oracle.stop()
        oracle.remove()


def test_progress_of_a_save(make):
    """INFO while the child writes, and after it; a stopped child has written all or nothing."""
    server = with_file(make, None)
    server.start()
    with server.connect() as c:
        c.ok("DEBUG", "POPULATE", 20000)
        info = server.info("persistence")
        for field in ("current_cow_peak", "current_cow_size", "current_cow_size_age",
                      "current_save_keys_processed", "current_save_keys_total"):
            assert info[field] == "0", field
        assert info["current_fork_perc"] == "0.00"
        c.call("BGSAVE")
        until(lambda: server.info("persistence")["rdb_bgsave_in_progress"] == "0")
        info = server.info("persistence")
        assert info["rdb_last_bgsave_status"] == "ok" and info["rdb_saves"] == "1"
        assert int(info["rdb_last_cow_size"]) > 0
        assert info["current_save_keys_processed"] == "0"


def test_info_has_the_oracles_fields(make, oracle):
    server = make()

    def names(one):
        return [name for name in one.info("persistence") if name.split("_")[0] in
                ("loading", "async", "current", "rdb")]
    assert sorted(names(server)) == sorted(names(oracle))
