"""Libraries of functions are part of the data set: in RDB files and AOFs, ours and Redis's, and on
replicas."""

import shutil

import pytest

from lib.bounds import eventually
from lib.replication import in_step, replication
from lib.resp import Error
from lib.server import ORACLE, Server, is_redis, server_path

pytestmark = pytest.mark.skipif(is_redis(server_path()), reason="looks at our files and log")

ONE = """#!lua name=one
redis.register_function{function_name='first', flags={'no-writes'},
    callback=function(k, a) return {'one', a[1]} end}"""
# Long enough to be written compressed.
TWO = "#!lua name=two\n-- " + "a" * 5000 + "\n" + """
redis.register_function{function_name='second', flags={'no-writes'}, description='reads',
    callback=function(k, a) return redis.call('GET', k[1]) end}
redis.register_function('third', function(k, a) return redis.call('SET', k[1], a[1]) end)"""
NOW = {"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "1"}


def load(client):
    for code in (ONE, TWO):
        client.call("FUNCTION", "LOAD", "REPLACE", code)


def listed(client):
    found = []
    for library in client.call("FUNCTION", "LIST", "WITHCODE"):
        library[5] = sorted(map(repr, library[5]))  # Redis has them in no order
        found.append(repr(library))
    return sorted(found)


def works(client):
    """What the libraries do; and the form in which all are told."""
    client.ok("SET", "k", "v")
    assert client.call("FCALL", "first", 0, "x") == [b"one", b"x"]
    assert client.call("FCALL_RO", "second", 1, "k") == b"v"
    client.ok("FCALL", "third", 1, "k", "w")
    assert client.call("GET", "k") == b"w"
    return True


def names(client):
    return sorted(library[1] for library in client.call("FUNCTION", "LIST"))


@pytest.fixture
def redis():
    """redis(options): a redis-server."""
    servers = []

    def make(files=(), **options):
        server = Server(ORACLE, 1, dict({"save": ""}, **options))
        server.expected_files |= {"dump.rdb", "appendonlydir"}
        for name, source in files:
            shutil.copy(source, server.file(name))
        servers.append(server)
        return server.start()
    yield make
    for server in servers:
        # The child of a full sync outlives it a moment.
        eventually(lambda s=server: s.info("persistence")["rdb_bgsave_in_progress"] == "0",
                   "no child", 60)
        server.stop()
    problems = [server.problems() for server in servers]
    for server in servers:
        server.remove()
    assert not any(problems), problems


# ---- RDB ----

def test_debug_reload(make_server):
    server = make_server(files=["dump.rdb"])
    with server.connect() as client:
        load(client)
        before = listed(client)
        client.ok("DEBUG", "RELOAD")
        assert listed(client) == before and works(client)
        # What is in memory only is not mixed with what is in the file.
        client.ok("FUNCTION", "DELETE", "one")
        client.ok("DEBUG", "RELOAD", "NOSAVE")
        assert listed(client) == before
        client.ok("FUNCTION", "FLUSH")
        client.ok("DEBUG", "RELOAD")
        assert listed(client) == []


def test_rdb_to_and_from_redis(make_server, redis):
    ours = make_server({"dbfilename": "dump.rdb"}, files=["dump.rdb"])
    with ours.connect() as client:
        load(client)
        client.ok("SAVE")
        before, dump = listed(client), client.call("FUNCTION", "DUMP")
    theirs = redis(files=[("dump.rdb", ours.file("dump.rdb"))])
    with theirs.connect() as client:
        assert listed(client) == before and works(client)
        client.ok("FUNCTION", "RESTORE", dump, "FLUSH")
        client.ok("SAVE")
    again = make_server(files=["dump.rdb"], start=False)
    shutil.copy(theirs.file("dump.rdb"), again.file("dump.rdb"))
    with again.start().connect() as client:
        assert listed(client) == before and works(client)


def test_flushall_keeps_them(client):
    load(client)
    before = listed(client)
    client.ok("FLUSHALL")
    client.ok("FLUSHDB")
    assert listed(client) == before
    client.ok("FUNCTION", "FLUSH", "ASYNC")
    assert listed(client) == []


@pytest.mark.parametrize("damage", ["syntax", "duplicate", "header"])
def test_broken_library_is_refused(make_server, redis, damage):
    """As Redis does: a server that starts with it ends; nothing half loaded is served."""
    ours = make_server({"rdbchecksum": "no", "rdbcompression": "no"}, files=["dump.rdb"])
    with ours.connect() as client:
        client.call("FUNCTION", "LOAD", ONE)
        client.call("FUNCTION", "LOAD", ONE.replace("one", "two").replace("first", "other"))
        client.ok("SET", "a", "1")
        client.ok("SAVE")
    with open(ours.file("dump.rdb"), "rb") as file:
        data = file.read()
    old, new = {"syntax": (b"function(k, a)", b"function(k  a)"),
                "duplicate": (b"name=two", b"name=one"),
                "header": (b"#!lua name=two", b"#!lux name=two")}[damage]
    assert old in data
    broken = make_server(files=["dump.rdb"], start=False)
    with open(broken.file("dump.rdb"), "wb") as file:
        file.write(data.replace(old, new))
    output = broken.start_fails()
    assert "a library that cannot be loaded" in output, output
    theirs = Server(ORACLE, 1, {"save": ""})
    theirs.expected_files.add("dump.rdb")
    shutil.copy(broken.file("dump.rdb"), theirs.file("dump.rdb"))
    try:
        assert "Failed loading library" in theirs.start_fails()
    finally:
        theirs.stop()
        theirs.remove()


# ---- AOF ----

AOF = {"appendonly": "yes", "appendfsync": "always"}


@pytest.mark.parametrize("preamble", ["yes", "no"])
@pytest.mark.parametrize("rewritten", [False, True])
def test_aof(make_server, preamble, rewritten):
    server = make_server(dict(AOF, **{"aof-use-rdb-preamble": preamble}), files=["appendonlydir"])
    with server.connect() as client:
        load(client)
        client.call("FUNCTION", "LOAD", ONE.replace("one", "gone").replace("first", "lost"))
        payload = client.call("FUNCTION", "DUMP")
        client.ok("FUNCTION", "FLUSH")
        client.ok("FUNCTION", "RESTORE", payload)
        client.ok("FUNCTION", "DELETE", "gone")
        before = listed(client)
        if rewritten:
            rewrites = int(server.info()["aof_rewrites"])
            client.call("BGREWRITEAOF")
            eventually(lambda: server.info()["aof_rewrite_in_progress"] == "0"
                       and int(server.info()["aof_rewrites"]) > rewrites, "rewrite")
        client.ok("DEBUG", "LOADAOF")
        assert listed(client) == before and works(client)
    server.kill()
    server.start()
    with server.connect() as client:
        assert listed(client) == before and works(client)
        assert names(client) == [b"one", b"two"]


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_aof_for_redis(make_server, redis, preamble):
    server = make_server(dict(AOF, **{"aof-use-rdb-preamble": preamble}), files=["appendonlydir"])
    with server.connect() as client:
        load(client)
        rewrites = int(server.info()["aof_rewrites"])
        client.call("BGREWRITEAOF")
        eventually(lambda: server.info()["aof_rewrite_in_progress"] == "0"
                   and int(server.info()["aof_rewrites"]) > rewrites, "rewrite")
        client.ok("FUNCTION", "DELETE", "one")
        before = listed(client)
    server.stop()
    theirs = Server(ORACLE, 1, {"save": "", "appendonly": "yes"})
    theirs.expected_files |= {"appendonlydir", "dump.rdb"}
    shutil.copytree(server.file("appendonlydir"), theirs.file("appendonlydir"))
    try:
        with theirs.start().connect() as client:
            assert listed(client) == before
    finally:
        theirs.stop()
        theirs.remove()


# ---- replicas ----

def follow(replica, primary):
    with replica.connect() as client:
        client.ok("REPLICAOF", "127.0.0.1", primary.port)
    eventually(lambda: replication(replica).get("master_link_status") == "up", "link", 60)


def check_replica(primary, replica):
    """Full sync replaces what was there; later changes follow; clients are refused."""
    with primary.connect() as p, replica.connect() as r:
        load(p)
        r.call("FUNCTION", "LOAD", ONE.replace("one", "own").replace("first", "mine"))
        follow(replica, primary)
        assert listed(r) == listed(p)
        for words in (["LOAD", ONE], ["LOAD", "REPLACE", ONE], ["DELETE", "one"], ["FLUSH"],
                      ["RESTORE", p.call("FUNCTION", "DUMP"), "FLUSH"]):
            refusal = r.call("FUNCTION", *words)
            assert isinstance(refusal, Error) and refusal.startswith(b"READONLY"), (words, refusal)
        assert listed(r) == listed(p)
        p.call("FUNCTION", "LOAD", "REPLACE", ONE.replace("'one'", "'new'"))
        p.ok("FUNCTION", "DELETE", "two")
        payload = p.call("FUNCTION", "DUMP")
        eventually(lambda: in_step(primary, replica), "in step", 60)
        assert listed(r) == listed(p) and names(r) == [b"one"]
        assert r.call("FCALL", "first", 0, "x") == [b"new", b"x"]
        p.ok("FUNCTION", "FLUSH")
        eventually(lambda: listed(r) == [], "flush", 60)
        p.ok("FUNCTION", "RESTORE", payload)
        eventually(lambda: listed(r) == listed(p), "restore", 60)
        p.call("MULTI")
        p.call("FUNCTION", "LOAD", TWO)
        p.call("FCALL", "third", "1", "t", "w")
        assert p.call("EXEC") == [b"two", b"OK"]
        eventually(lambda: listed(r) == listed(p) and r.call("GET", "t") == b"w", "EXEC", 60)


def test_replica_of_ours(make_server):
    primary, replica = make_server(NOW), make_server(dict(AOF), files=["appendonlydir"])
    check_replica(primary, replica)
    with primary.connect() as client:
        before = listed(client)
    # Its own AOF has them too.
    with replica.connect() as client:
        client.ok("REPLICAOF", "NO", "ONE")
        eventually(lambda: replica.info()["aof_rewrite_in_progress"] == replica.info()["aof_rewrite_scheduled"] == "0",
                   "rewrite")
        client.ok("SET", "synced", "1")  # and all before it
    replica.kill()
    replica.start()
    with replica.connect() as client:
        assert listed(client) == before


def test_replica_of_redis(make_server, redis):
    check_replica(redis(**NOW), make_server())


def test_redis_as_replica(make_server, redis):
    check_replica(make_server(NOW), redis())


def test_replica_refuses_broken_library(make_server, redis):
    """A library that the primary could load and we cannot: nothing of its data set stays here, and
    the server lives, tries again, and takes the data set when it can."""
    picky = """#!lua name=picky
if redis.REDIS_VERSION_NUM > 0x00070100 then an_old_server() end
redis.register_function('f', function() return 1 end)"""
    primary, replica = redis(**NOW), make_server()
    with primary.connect() as p, replica.connect() as r:
        load(r)
        r.ok("SET", "mine", "1")
        load(p)
        p.ok("SET", "a", "1")
        assert p.call("FUNCTION", "LOAD", picky) == b"picky"
        r.ok("REPLICAOF", "127.0.0.1", primary.port)
        eventually(lambda: "'an_old_server'" in replica.output(), "refusal", 60)
        # It may be loading again at any time: then both say so.
        eventually(lambda: r.call("DBSIZE") == 0 and r.call("FUNCTION", "LIST") == [], "nothing", 60)
        p.ok("FUNCTION", "DELETE", "picky")
        eventually(lambda: r.call("GET", "a") == b"1", "sync", 60)
        assert listed(r) == listed(p) and r.call("DBSIZE") == 1
