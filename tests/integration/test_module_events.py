"""Modules: what they are told of keys and of the server, timers, the event loop. Beside a redis-server."""

import threading

import pytest

from lib.bounds import eventually
from lib.modules import path_of


@pytest.fixture(params=["ours", "redis-server"])
def both(request, make_server, make_oracle):
    """A server with the module `events`: ours, and Debian's redis-server."""
    options = {"loadmodule": [path_of("events")], "enable-module-command": "yes", "appendonly": "yes",
               "enable-debug-command": "yes", "repl-diskless-sync-delay": "0"}
    server = make_server(options, files=("appendonlydir", "dump.rdb")) if request.param == "ours" else make_oracle(options)
    server.has_jobs = request.param == "ours"  # Redis has them from 7.2 on
    return server


def log(c, *kinds):
    """What was noted since the last time; of these kinds only, if some are named."""
    return [line for line in c.call("EV.LOG") if not kinds or line.split()[0].decode() in kinds]


def appended(server):
    """What the AOF has got."""
    name = next(name for name in server.read("appendonlydir/appendonly.aof.manifest").split() if name.endswith("incr.aof"))
    return server.read("appendonlydir/" + name)


# ---- keys

def test_keys(both):
    with both.connect() as c:
        c.ok("EV.LISTEN", "yes")
        for words in (("SET", "k", 1), ("INCR", "k"), ("EXPIRE", "k", 100), ("RENAME", "k", "l"), ("DEL", "l"),
                      ("RPUSH", "list", 1), ("LPOP", "list"), ("SADD", "s", 1), ("HSET", "h", "f", 1),
                      ("ZADD", "z", 1, "m"), ("XADD", "x", "1-1", "f", "v"), ("GET", "none"), ("MSET", "a", 1, "b", 2)):
            c.call(*words)
        lines = log(c, "key")
    assert [line.rsplit(b" ", 1)[0] for line in lines] == [
        b"key 8 set k db0", b"key 8 incrby k db0", b"key 4 expire k db0", b"key 4 rename_from k db0",
        b"key 4 rename_to l db0", b"key 4 del l db0", b"key 16 rpush list db0", b"key 16 lpop list db0",
        b"key 4 del list db0", b"key 32 sadd s db0", b"key 64 hset h db0", b"key 128 zadd z db0",
        b"key 1024 xadd x db0", b"key 2048 keymiss none db0", b"key 8 set a db0", b"key 8 set b db0"]


def test_a_name_has_an_address_of_its_own(both):
    """RediSearch knows the events that it has met by the addresses of their names."""
    events = [("SET", "k", 1), ("DEL", "k"), ("HSET", "k", "f", 1), ("HDEL", "k", "f"), ("RPUSH", "k", 1), ("RPOP", "k"),
              ("SADD", "k", 1), ("EXPIRE", "k", 100), ("PERSIST", "k"), ("RENAME", "k", "l"), ("RESTORE", "r", 0, b"bad"), ("GETDEL", "l"),
              ("SETRANGE", "k", 3, "x"), ("APPEND", "k", "y"), ("INCR", "n"), ("MSET", "k", 1, "l", 2), ("UNLINK", "k", "l", "n")]
    with both.connect() as c:
        c.ok("EV.LISTEN", "yes")
        for k in range(len(events)):
            for words in events[k % len(events):] + events[:k % len(events)]:
                c.call(*words)
            lines = log(c)
            assert len([line for line in lines if line.startswith(b"key")]) >= 10
            assert not [line for line in lines if line.startswith(b"address")]


def test_more_names_than_are_kept(both):
    with both.connect() as c:
        c.ok("EV.LISTEN", "yes")
        for part in range(5):
            names = ["name-%d" % i for i in range(500 * part, 500 * part + 500)]
            c.pipeline([("EV.NOTIFY", name, "k") for name in names])
            assert [line.split()[2].decode() for line in log(c, "key")] == names


def test_keys_that_a_module_keeps(both):
    """Short ones and long ones, several in a command, and others between them."""
    keys = ["kept" + str(n) * length for n, length in enumerate((1, 200, 1, 123, 124, 128, 5, 1))]
    with both.connect() as c:
        c.ok("EV.LISTEN", "yes")
        for _ in range(3):
            c.ok("MSET", "a", 1, keys[0], 1, keys[1], 1, "x" * 300, 1)
            for key in keys[2:]:
                c.ok("SET", key, 1)
                c.ok("SET", "between", 1)
            assert c.call("EV.KEPT") == [key.encode() for key in keys]
            c.call("EV.LOG")


def test_expired_keys(both):
    with both.connect() as c:
        c.ok("EV.LISTEN", "yes")
        c.ok("SET", "k", 1, "PX", 20)
        eventually(lambda: b"key 256 expired k db0 gone" in log(c), "it is told")


def test_an_event_of_its_own(both):
    with both.connect() as c:
        c.ok("CONFIG", "SET", "notify-keyspace-events", "KEA")
        log(c)
        c.ok("EV.LISTEN", "yes")
        c.call("SELECT", 2)
        assert (c.call("EV.NOTIFY", "odd", "k") & 3) == 3
        assert log(c, "key") == [b"key 8192 odd k db2 gone"]


def test_jobs_after_events(both):
    """They write, as one with the command; what they do in a transaction comes behind all of it."""
    if not both.has_jobs:
        return
    with both.connect() as c:
        c.ok("EV.LISTEN", "yes")
        c.ok("SET", "job1", 1)
        assert c.call("GET", "jobs") == b"1"
        c.ok("MULTI")
        c.call("SET", "job1", 2)
        c.call("SET", "job2", 2)
        c.call("GET", "jobs")
        assert c.call("EXEC")[2] == b"1"
        assert c.call("GET", "jobs") == b"3"
        c.call("EVAL", "redis.call('SET', 'job3', 1); redis.call('SET', 'job4', 1)", 0)
        assert c.call("GET", "jobs") == b"5"


def test_what_is_told_because_of_an_event(both):
    """It is one with the command, in the logs."""
    with both.connect() as c:
        c.ok("EV.LISTEN", "yes")
        c.ok("SET", "told", 1)
        eventually(lambda: "telling" in appended(both) and "EXEC" in appended(both), "it is in the log")
        text = appended(both)
        places = [text.index(word) for word in ("MULTI", "SET\n", "telling", "EXEC")]
        assert places[0] == min(places) and places[3] == max(places), text  # Redis tells the other one first


# ---- the server

def test_the_server(both):
    with both.connect() as c:
        log(c)
        c.ok("FLUSHDB")
        c.ok("FLUSHALL", "ASYNC")
        c.ok("SWAPDB", 3, 1)
        c.ok("MODULE", "LOAD", path_of("shares"))
        c.ok("MODULE", "UNLOAD", "gives")
        c.ok("CONFIG", "SET", "maxmemory-samples", 7)
        assert log(c, "flush", "swap", "module", "config") == [
            b"flush 0 db0 sync1", b"flush 1 db0 sync1", b"flush 0 db-1 sync0", b"flush 1 db-1 sync0",
            b"swap 0 db3 db1", b"module 0 gives 1", b"module 1 gives 1", b"config 1 maxmemory-samples"]
        c.ok("EV.CRON")
        eventually(lambda: b"cron hz10" in log(c), "the cron's beat is told")


def test_loading(both):
    with both.connect() as c:
        c.ok("SET", "k", 1)
        assert [line for line in log(c) if b"loading" in line][-1:] in ([], [b"loading 3"])
        c.ok("DEBUG", "RELOAD")
        assert [line for line in log(c) if b"loading" in line] == [b"loading 0", b"loading 3"]


def test_keys_that_a_file_brings(both):
    with both.connect() as c:
        c.ok("SET", "k", 1)
        c.call("SELECT", 5)
        c.call("RPUSH", "l", 1, 2)
        log(c)
        c.ok("DEBUG", "RELOAD")
        assert sorted(log(c, "key")) == [b"key 4096 loaded k db0", b"key 4096 loaded l db5"]


def test_loading_goes_on(both):
    with both.connect() as c:
        c.ok("CONFIG", "SET", "rdbcompression", "no")
        c.ok("DEBUG", "POPULATE", 800, "k", 10000)  # it is told of every two megabytes
        before = c.call("EV.PROGRESS")
        c.ok("DEBUG", "RELOAD")
        assert c.call("EV.PROGRESS") > before
        assert not log(c, "progress"), "it goes up, to 1024 at most"


def test_saving(both):
    """In the server: the module sees it. In a child: what it sets there is in the file, and only there."""
    with both.connect() as c:
        log(c)
        c.ok("SAVE")
        assert log(c, "saving", "child") == [b"saving 2", b"saving 3"]
        c.call("BGSAVE")
        seen = []
        eventually(lambda: seen.extend(log(c, "saving", "child")) or len(seen) == 2, "the child is told of")
        assert seen == [b"child 0", b"child 1"]
        assert c.call("GET", "of:child") is None
        eventually(lambda: b"rdb_bgsave_in_progress:0\r" in c.call("INFO", "persistence"), "it has ended")
        c.ok("DEBUG", "RELOAD", "NOSAVE")
        assert c.call("GET", "of:child") == b"0"


def test_rewriting(both):
    """The same of the AOF."""
    with both.connect() as c:
        c.ok("SET", "k", 1)
        log(c)
        c.call("BGREWRITEAOF")
        seen = []
        eventually(lambda: seen.extend(log(c, "saving", "child")) or len(seen) == 2, "the child is told of")
        assert seen == [b"child 0", b"child 1"]
        eventually(lambda: b"aof_rewrite_in_progress:0\r" in c.call("INFO", "persistence"), "it has ended")
        assert c.call("GET", "of:child") is None
        c.ok("DEBUG", "LOADAOF")
        assert c.call("MGET", "of:child", "k") == [b"1", b"1"]


def test_replicas_come_and_go(both, make_server):
    replica = make_server()
    port = both.address()[1]
    with both.connect() as c, replica.connect() as r:
        log(c)
        r.ok("REPLICAOF", "127.0.0.1", port)
        seen = []
        eventually(lambda: seen.extend(log(c, "replica")) or len(seen) == 1, "it is online")
        eventually(lambda: r.call("REPLICAOF", "NO", "ONE") == b"OK", "it has loaded what it got")
        eventually(lambda: seen.extend(log(c, "replica")) or len(seen) == 2, "it has gone")
        assert seen == [b"replica 0", b"replica 1"]


def test_the_loop_itself(both):
    with both.connect() as c:
        c.ok("EV.LOOP")
        seen = []
        eventually(lambda: seen.extend(log(c, "loop")) or len(seen) == 2, "it has slept")
        assert seen == [b"loop 0", b"loop 1"]


def test_keys_that_go(both):
    """While they are there: the module sees what they hold."""
    if not both.has_jobs:
        return  # Redis has it from 7.2 on, as it has jobs
    with both.connect() as c:
        c.ok("EV.LISTEN", "yes")
        for words in (("RPUSH", "l", 1, 2, 3), ("SET", "l", "now a string"), ("SET", "l", "another"), ("APPEND", "l", "!"),
                      ("DEL", "l"), ("SADD", "s", 1, 2), ("RENAME", "s", "t"), ("SADD", "u", 9), ("SINTERSTORE", "t", "u"),
                      ("SPOP", "u"), ("HSET", "h", "f", 1), ("HDEL", "h", "f"), ("SET", "e", "1", "PX", 1)):
            c.call(*words)
        eventually(lambda: c.call("EXISTS", "e") == 0, "it has expired")
        seen = log(c, "going")
        eventually(lambda: any(b" e " in line for line in seen) or seen.extend(log(c, "going")), "the last one is told")
        assert seen == [
            b"going 3 l type2 length3 db0", b"going 3 l type1 length12 db0", b"going 0 l type1 length8 db0",
            b"going 0 s type4 length2 db0", b"going 3 t type4 length2 db0", b"going 0 u type4 length0 db0",
            b"going 0 h type3 length0 db0", b"going 1 e type1 length1 db0"]


def test_keys_that_are_evicted(both):
    if not both.has_jobs:
        return
    with both.connect() as c:
        c.ok("EV.LISTEN", "yes")
        c.ok("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
        c.ok("SET", "k", "x" * 100)
        log(c)
        c.ok("CONFIG", "SET", "maxmemory", 1)
        eventually(lambda: b"going 2 k type1 length100 db0" in log(c, "going"), "it is told")
        c.ok("CONFIG", "SET", "maxmemory", 0)


@pytest.mark.parametrize("words", [("SHUTDOWN", "NOSAVE"), ("SHUTDOWN", "SAVE"), None])
def test_the_end(both, words):
    """Told last of all, once, when everything is saved."""
    with both.connect() as c:
        c.ok("SET", "k", 1)
        if words:
            c.send(*words)
            both.wait_exit()
    if not words:
        both.stop()
    assert both.output().count("told of the end, with 1 keys") == 1


def test_roles(both, make_server):
    primary = make_server({"repl-diskless-sync-delay": "0"})
    port = primary.address()[1]
    with both.connect() as c:
        log(c)
        c.ok("REPLICAOF", "127.0.0.1", port)
        eventually(lambda: b"master_link_status:up" in c.call("INFO", "replication"), "the link is up")
        lines = []
        eventually(lambda: lines.extend(log(c, "role", "link", "loading")) or len(lines) >= 4, "all of it is told")
        assert lines == [b"role 1 master0 host '127.0.0.1' port%d id40" % port, b"loading 2", b"loading 3", b"link 0"]
        c.ok("REPLICAOF", "NO", "ONE")
        lines = []
        eventually(lambda: lines.extend(log(c, "role", "link")) or len(set(lines)) >= 2, "both are told")
        lines = [line.split(b" port")[0] for line in lines]  # Redis keeps that
        assert set(lines) == {b"link 1", b"role 0 master1 host ''"}  # Redis 7.0 tells of the link twice
        eventually(lambda: b"aof_rewrite_in_progress:0\r" in c.call("INFO", "persistence"), "the log has a base again")


def test_clients_come_and_go(both):
    with both.connect() as c:
        log(c)
        c.ok("EV.CLIENTS", "yes")
        with both.connect() as d:
            d.call("SELECT", 2)
        seen = []
        eventually(lambda: seen.extend(log(c, "client")) or len(seen) == 2, "both are told")
        assert seen == [b"client 0 127.0.0.1 db0 id port", b"client 1 127.0.0.1 db2 id port"]
        c.ok("EV.CLIENTS", "no")


# ---- timers and the event loop

def test_timers(both):
    with both.connect() as c:
        c.call("SELECT", 3)
        late = c.call("EV.TIMER", 3600000, "late")
        # At once: each is due so long after it was made.
        timers = [("EV.TIMER", ms, text) for ms, text in ((300, "b"), (150, "a"), (0, "now"))]
        assert len(c.pipeline([("MULTI",), *timers, ("EXEC",)])[-1]) == 3
        assert 3000000 < c.call("EV.INFO", late) <= 3600000
        assert c.call("EV.STOP", late) == b"late"
        assert c.call("EV.STOP", late) is None and c.call("EV.INFO", late) is None
        eventually(lambda: c.call("LLEN", "timers") == 3, "all have fired")
        assert log(c, "timer") == [b"timer now db3", b"timer a db3", b"timer b db3"]
        assert c.call("LRANGE", "timers", 0, -1) == [b"now", b"a", b"b"]


def test_the_event_loop(both):
    with both.connect() as c:
        log(c)
        c.ok("EV.TURN")
        eventually(lambda: log(c, "turn") == [b"turn once"], "it has run")
        for _ in range(5):
            seen = []
            c.ok("EV.PIPE")
            eventually(lambda: seen.extend(log(c, "readable", "writable")) or len(seen) == 2, "both ends are told")
            assert seen[0] == b"writable 2" and seen[1] in (b"readable 1 x", b"readable 3 x")  # the other end is closed


def test_all_from_four_threads(both):
    errors = []

    def use(number):
        try:
            with both.connect() as c:
                for i in range(50):
                    c.call("SET", "job%d" % number, i)
                    c.call("EV.TIMER", i % 3, "t")
                    c.ok("EV.TURN")
                    c.ok("EV.PIPE")
        except Exception as e:  # pylint: disable=broad-except
            errors.append(e)

    with both.connect() as c:
        c.ok("EV.LISTEN", "yes")
        users = [threading.Thread(target=use, args=(n,)) for n in range(4)]
        for user in users:
            user.start()
        for user in users:
            user.join()
        assert not errors, errors
        eventually(lambda: c.call("LLEN", "timers") == 200, "all timers have fired")
        assert c.call("GET", "jobs") == (b"200" if both.has_jobs else None)
