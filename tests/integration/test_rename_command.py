"""rename-command: what clients call commands is the operator's choice; what files, replicas and users'
rules call them is not."""

import os

import pytest

from lib.bounds import eventually
from lib.resp import Error

LINES = 'rename-command FLUSHALL ""\nrename-command SET store\nrename-command Config "a-longer-name-than-16"\n'


@pytest.fixture
def renamed(make_server):
    return make_server({"appendonly": "yes"}, config=LINES, files=["appendonlydir"])


def test_what_clients_know(renamed, make_oracle):
    """As with redis-server."""
    oracle = make_oracle(start=False)
    oracle.config = LINES
    for server in (renamed, oracle.start()):
        with server.connect() as c:
            assert b"unknown command 'FLUSHALL'" in c.error("FLUSHALL")
            assert b"unknown command 'SET'" in c.error("SET", "k", "v")
            assert b"unknown command 'CONFIG'" in c.error("CONFIG", "GET", "port")
            c.ok("STORE", "k", "v")
            c.ok("store", "k", "v", "KEEPTTL")
            assert c.error("store", "k") == b"ERR wrong number of arguments for 'set' command"
            assert c.call("a-longer-NAME-than-16", "GET", "databases") == [b"databases", b"16"]
            assert c.call("COMMAND", "INFO", "flushall", "set", "config") == [None] * 3
            assert c.call("COMMAND", "INFO", "store")[0][0] == b"set"
            names = c.call("COMMAND", "LIST")
            assert b"flushall" not in names and b"set" in names
            assert c.call("COMMAND", "COUNT") == len(c.call("COMMAND"))
            assert isinstance(c.call("EVAL", "return redis.call('SET', 'k', 'x')", "0"), Error)
            c.ok("EVAL", "return redis.call('STORE', 'k', 'from a script')", "0")
            c.call("MULTI")
            c.call("store", "k", "queued")
            assert c.call("EXEC") == [b"OK"]
            assert c.call("GET", "k") == b"queued"


def test_rules_of_users_have_the_old_names(renamed):
    with renamed.connect() as c:
        c.ok("ACL", "SETUSER", "writer", "on", "nopass", "~*", "+set", "-config|get", "+auth")
        assert isinstance(c.call("ACL", "SETUSER", "other", "+store"), Error)
        c.ok("AUTH", "writer", "x")
        c.ok("STORE", "k", "v")
        assert b"'get'" in c.error("GET", "k")


def test_files_and_replicas_have_the_old_names(renamed, make_server):
    replica = make_server({"replicaof": "127.0.0.1 %d" % renamed.port}, files=["dump.rdb"])
    with renamed.connect() as c, replica.connect() as r:
        eventually(lambda: b"master_link_status:up" in r.call("INFO", "replication"), "the link")
        c.ok("STORE", "k", "v")
        c.call("EVAL", "return redis.call('STORE', KEYS[1], '1')", "1", "s")
        eventually(lambda: r.call("GET", "s") == b"1", "the replica has it")
        assert r.call("GET", "k") == b"v"
        log = renamed.file("appendonlydir")
        text = b"".join(open(os.path.join(log, name), "rb").read() for name in os.listdir(log))
        assert text.count(b"SET\r\n") + text.count(b"set\r\n") == 2 and b"STORE" not in text
        c.ok("DEBUG", "LOADAOF")
        assert c.call("GET", "k") == b"v" and c.call("GET", "s") == b"1"


def test_a_log_holds_what_clients_cannot_say(make_server):
    server = make_server({"appendonly": "yes"}, files=["appendonlydir", "server.conf"])
    with server.connect() as c:
        c.ok("SET", "gone", "v")
        c.ok("FLUSHALL")
        c.ok("SET", "k", "v")
    server.stop()
    server.options["rename-command"] = ["FLUSHALL", ""]
    server.start()
    with server.connect() as c:
        assert c.call("KEYS", "*") == [b"k"]
        assert b"unknown command" in c.error("FLUSHALL")


@pytest.mark.parametrize("name", ['""', "evaluate"])
def test_jobs_need_no_name(make_server, name):
    """A scheduled script is the server's doing, not a client's."""
    server = make_server(config="rename-command EVAL %s\n" % name)
    with server.connect() as c:
        c.ok("KEYDB.CRON", "job", "single", "1", "redis.call('SET', KEYS[1], 'ran')", "1", "k")
        eventually(lambda: c.call("GET", "k") == b"ran", "the job runs")


def test_config_rewrite_keeps_the_lines(make_server):
    server = make_server(config=LINES)
    with server.connect() as c:
        c.ok("a-longer-name-than-16", "SET", "slowlog-max-len", "77")
        c.ok("a-longer-name-than-16", "REWRITE")
    assert server.read("server.conf").startswith(LINES)
    assert "slowlog-max-len 77" in server.read("server.conf")


@pytest.mark.parametrize("lines,why", [
    ("rename-command NOPE x", "No such command"),
    ("rename-command SET get", "already exists"),
    ('rename-command GET ""\nrename-command SET get', "already exists"),
    ('rename-command GET ""\nrename-command GET x', "No such command"),
    ("rename-command config|get x", "No such command"),
    ("rename-command SET", "wrong number of arguments"),
    ("rename-command SET a b", "wrong number of arguments"),
    ("rename-command", "wrong number of arguments"),
    ('rename-command "SET x"', "wrong number of arguments"),
])
def test_what_is_no_renaming(make_server, lines, why):
    failure = make_server(config=lines + "\n", start=False).start_fails()
    assert why in failure and "server.conf" in failure


def test_a_new_name_may_have_another_one(make_server):
    server = make_server(config="rename-command GET one\nrename-command one two\n")
    with server.connect() as c:
        assert c.call("two", "k") is None
        assert b"unknown" in c.error("one", "k") and b"unknown" in c.error("GET", "k")
