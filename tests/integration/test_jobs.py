"""KEYDB.CRON: scripts that run at times. What must be: a job runs once or again and again, on the
primary only, with the rights of who made it, and its key is a key like any other."""

import os
import shutil
import time

import pytest

from lib.bounds import eventually
from lib.replication import in_step, replication
from lib.resp import Error
from lib.server import is_redis, server_path

pytestmark = pytest.mark.skipif(is_redis(server_path()), reason="a type of KeyDB's and ours")

COUNT = "return redis.call('INCR', KEYS[1])"
FAR = "1000000000"  # an interval that no test lives to see
NOW = {"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "1"}


def number(client, key="n"):
    return int(client.call("GET", key) or 0)


def runs(client, more=2, key="n"):
    """Waits until the job has run so many times more."""
    begun = number(client, key)
    eventually(lambda: number(client, key) >= begun + more, "the job runs", 60)


def stands_still(client, key="n"):
    """Jobs run in order of time: one that was made later, with a longer interval, is no earlier."""
    before = number(client, key)
    client.ok("KEYDB.CRON", "witness", "repeat", 50, COUNT, 1, "seen")
    runs(client, 3, "seen")
    assert number(client, key) == before
    client.call("DEL", "witness", "seen")


# ---- the command ----

def test_errors(client):
    for words, error in (
            (["twice", 100, COUNT], b"ERR syntax error"),
            (["repeat:default", 100, COUNT], b"ERR syntax error"),
            (["repeat", "x", COUNT], b"ERR missing expire time"),
            (["repeat", 0, COUNT], b"ERR interval must be positive"),
            (["single", 5, 0, COUNT], b"ERR interval must be positive"),
            (["single", -5, COUNT], b"ERR interval must be positive"),
            (["single", 2**62, 5, COUNT], b"ERR value is out of range"),
            (["single", 2**62, COUNT], b"ERR value is out of range"),
            (["single", -(2**60) - 1, 5, COUNT], b"ERR value is out of range"),
            (["repeat", 2**60 + 1, 5, COUNT], b"ERR value is out of range"),
            (["repeat", 0, 2**60 + 1, COUNT], b"ERR value is out of range"),
            (["repeat", 0, 0, COUNT], b"ERR interval must be positive"),
            (["repeat", 0, -(2**63), COUNT], b"ERR interval must be positive"),
            (["repeat", 2**63, COUNT], b"ERR missing expire time"),
            (["repeat", "1.5", 5, COUNT], b"ERR missing expire time"),
            (["single", 5, COUNT, "x"], b"ERR value is not an integer or out of range"),
            (["single", 5, COUNT, 2, "k"], b"ERR Missing arguments or numkeys is too big"),
            (["single", 5, COUNT, -1, "k"], b"ERR Missing arguments or numkeys is too big")):
        assert client.call("KEYDB.CRON", "j", *words) == error, words
    assert isinstance(client.call("KEYDB.CRON", "j", "repeat", 5), Error)
    assert client.call("EXISTS", "j") == 0


def test_a_key_like_others(client):
    client.ok("KEYDB.CRON", "j", "repeat", FAR, COUNT, 1, "n", "argument")
    assert client.call("TYPE", "j") == b"cron"
    assert client.call("OBJECT", "ENCODING", "j") == b"raw"
    assert client.call("TTL", "j") == -1
    assert client.call("SCAN", 0, "TYPE", "cron")[1] == [b"j"]
    assert client.call("MEMORY", "USAGE", "j") > len(COUNT)
    assert client.call("GET", "j").startswith(b"WRONGTYPE")
    assert client.call("COMMAND", "GETKEYS", "KEYDB.CRON", "j", "single", 5, COUNT) == [b"j"]
    digest = client.call("DEBUG", "DIGEST-VALUE", "j")
    assert client.call("COPY", "j", "k") == 1
    assert client.call("DEBUG", "DIGEST-VALUE", "k") == digest
    payload = client.call("DUMP", "j")
    client.ok("RESTORE", "l", 0, payload)
    assert client.call("DEBUG", "DIGEST-VALUE", "l") == digest
    client.ok("KEYDB.CRON", "k", "single", FAR, COUNT, 1, "n", "argument")
    assert client.call("DEBUG", "DIGEST-VALUE", "k") != digest


# ---- when it runs ----

def test_repeats_until_deleted(client):
    client.ok("KEYDB.CRON", "j", "repeat", 10, "redis.call('INCRBY', KEYS[1], ARGV[1])", 1, "n", 1)
    runs(client, 5)
    assert client.call("DEL", "j") == 1
    stands_still(client)


def test_runs_once(client):
    client.ok("KEYDB.CRON", "j", "single", 10, COUNT, 1, "n")
    eventually(lambda: number(client) == 1, "the job runs", 60)
    assert client.call("EXISTS", "j") == 0
    stands_still(client)


def test_once_may_make_itself_anew(client):
    """Its key goes first, so that a script can set the next one's time."""
    again = "redis.call('INCR', 'n') if redis.call('GET', 'n') ~= '3' then " \
            "redis.call('KEYDB.CRON', 'j', 'single', 5, ARGV[1], 0, ARGV[1]) end"
    client.ok("KEYDB.CRON", "j", "single", 5, again, 0, again)
    eventually(lambda: number(client) == 3, "three runs", 60)
    eventually(lambda: client.call("EXISTS", "j") == 0, "the end", 60)


LONG_AGO = [0, -1, -2**60, 1, -(10**12)]


@pytest.mark.parametrize("mode", ["repeat", "single"])
def test_a_first_time_that_has_passed_is_now(client, mode):
    for i, start in enumerate(LONG_AGO):
        client.ok("KEYDB.CRON", "j%d" % i, mode, start, 1000000, COUNT, 1, "n")
    eventually(lambda: number(client) == len(LONG_AGO), "each has run", 60)
    stands_still(client)
    assert client.call("EXISTS", *("j%d" % i for i in range(len(LONG_AGO)))) == \
        (len(LONG_AGO) if mode == "repeat" else 0)


def server_ms(client):
    seconds, microseconds = client.call("TIME")
    return int(seconds) * 1000 + int(microseconds) // 1000


def test_a_first_time_that_has_passed_counts_on_from_now(client):
    """By the server's own clock, as jobs go by it: not at the next multiple of 900 ms since 1970."""
    count_and_tell = "redis.call('INCR', KEYS[1]) local t = redis.call('TIME') " \
        "redis.call('RPUSH', KEYS[2], t[1] * 1000 + math.floor(t[2] / 1000))"
    begun = server_ms(client)
    client.ok("KEYDB.CRON", "j", "repeat", 0, 900, count_and_tell, 2, "n", "at")
    eventually(lambda: number(client) >= 2, "two runs", 60)
    assert int(client.call("LINDEX", "at", 1)) - begun >= 900


def test_times_at_the_ends(client):
    """Past, now, and beyond: what runs, and what waits."""
    wall_ms = int(time.time() * 1000)
    waits = [(wall_ms, FAR), (wall_ms - 3600000, 86400000), (wall_ms + 86400000, 1), (2**60, 2**60), (0, 2**60)]
    due = [(wall_ms - 3600000, 5), (wall_ms - 5, 5), (-(2**60), 2**60), (-(2**60), 1), (wall_ms, 1)]
    for i, (start, interval) in enumerate(waits):
        client.ok("KEYDB.CRON", "wait%d" % i, "single", start, interval, COUNT, 1, "waits%d" % i)
    client.ok("KEYDB.CRON", "without start", "single", 2**60, COUNT, 1, "none")
    for i, (start, interval) in enumerate(due):
        client.ok("KEYDB.CRON", "due%d" % i, "single", start, interval, COUNT, 1, "n")
    eventually(lambda: number(client) == len(due), "what is due", 60)
    assert client.call("EXISTS", *("waits%d" % i for i in range(len(waits)))) == 0
    assert client.call("EXISTS", *("wait%d" % i for i in range(len(waits)))) == len(waits)


def test_runs_late_once_only(make_server):
    """What is told to logs and replicas holds the time that it was made to begin at: a restart does not
    make it late again."""
    server = make_server({"appendonly": "yes", "appendfsync": "always", "aof-use-rdb-preamble": "no",
                          "repl-diskless-sync-delay": "0"}, files=["appendonlydir"])
    replica = make_server(NOW)
    follow(replica, server)
    with server.connect() as client:
        client.ok("KEYDB.CRON", "j", "repeat", 0, FAR, COUNT, 1, "n")
        eventually(lambda: number(client) == 1, "the first run", 60)
        client.ok("RENAME", "j", "k")
        client.call("MOVE", "k", 3)
        eventually(lambda: in_step(server, replica), "the replica has heard of it", 60)
    server.kill()
    server.start()
    for s in (server, replica):
        with s.connect() as client:
            if s is replica:
                eventually(lambda c=client: c.call("REPLICAOF", "NO", "ONE") == b"OK", "loaded", 60)
            stands_still(client)
            assert number(client) == 1
            client.ok("SELECT", 3)
            assert client.call("TYPE", "k") == b"cron"


def test_made_anew_replaces(client):
    client.ok("KEYDB.CRON", "j", "repeat", 10, COUNT, 1, "n")
    runs(client)
    client.ok("KEYDB.CRON", "j", "repeat", 10, COUNT, 1, "m")
    runs(client, 2, "m")
    stands_still(client, "n")
    client.ok("SET", "j", "a string")
    stands_still(client, "m")
    assert client.call("GET", "j") == b"a string"


@pytest.mark.parametrize("lost", [["FLUSHALL"], ["FLUSHDB", "ASYNC"], ["UNLINK", "j"],
                                  ["PEXPIREAT", "j", "1"], ["RENAME", "other", "j"]])
def test_ends_with_its_key(client, lost):
    client.ok("SET", "other", "1")
    client.ok("KEYDB.CRON", "j", "repeat", 10, COUNT, 1, "n")
    runs(client)
    client.call(*lost)
    stands_still(client)


def test_moves_with_its_key(client):
    """It runs in the database where its key is."""
    client.ok("KEYDB.CRON", "j", "repeat", 10, COUNT, 1, "n")
    runs(client)
    client.ok("RENAME", "j", "k")
    runs(client)
    assert client.call("MOVE", "k", 3) == 1
    client.ok("SELECT", 3)
    runs(client)
    client.ok("SWAPDB", 3, 5)
    client.ok("SELECT", 5)
    runs(client)
    assert client.call("COPY", "k", "c", "DB", 0) == 1
    client.call("DEL", "k")
    stands_still(client)
    client.ok("SELECT", 0)
    runs(client)


def test_many_in_order(client):
    """Hundreds of jobs, made in another order than they run in, replaced and deleted at random."""
    start = int(time.time() * 1000)
    client.ok("DEBUG", "PAUSE-CRON", 1)
    append = "redis.call('RPUSH', 'order', ARGV[1])"
    for i in (n * 7919 % 400 for n in range(400)):
        client.ok("KEYDB.CRON", "j%d" % i, "single", start, i + 1, append, 0, i)
    for i in range(0, 400, 3):
        client.call("DEL", "j%d" % i)
    client.ok("DEBUG", "PAUSE-CRON", 0)
    wanted = [b"%d" % i for i in range(400) if i % 3]
    eventually(lambda: client.call("LLEN", "order") == len(wanted), "all of them", 60)
    assert client.call("LRANGE", "order", 0, -1) == wanted
    assert client.call("KEYS", "j*") == []


def test_bystanders(client, connect):
    """A job serves who waits for its keys, and marks who watches them."""
    waiter, watcher = connect(), connect()
    watcher.ok("WATCH", "n")
    waiter.send("BLPOP", "list", 0)
    client.ok("KEYDB.CRON", "j", "single", 20,
              "redis.call('INCR', 'n') redis.call('RPUSH', 'list', 'from the job')")
    assert waiter.read() == [b"list", b"from the job"]
    watcher.ok("MULTI")
    watcher.call("SET", "n", "mine")
    assert watcher.call("EXEC") is None
    assert client.call("GET", "n") == b"1"


# ---- who runs it ----

def test_rights_of_its_maker(client, connect, server):
    client.ok("ACL", "SETUSER", "alice", "on", ">a", "~a:*", "~n", "+keydb.cron", "+eval", "+incr",
              "+get", "+restore", "+dump", "+del")
    alice = connect()
    alice.ok("AUTH", "alice", "a")
    alice.ok("KEYDB.CRON", "a:j", "repeat", 10, COUNT, 1, "n")
    runs(client)
    # What she may not do, her job may not.
    alice.ok("KEYDB.CRON", "a:forbidden", "repeat", 10, "redis.call('SET', 'n', 'x')", 1, "n")
    alice.ok("KEYDB.CRON", "a:foreign", "repeat", 10, "redis.call('INCR', 'foreign')", 0)
    runs(client, 5)
    assert client.call("EXISTS", "foreign") == 0
    eventually(lambda: b"The job 'a:foreign' failed" in server.output().encode()
               and b"The job 'a:forbidden' failed" in server.output().encode(), "log", 60)
    # Nor a job of somebody else's that she brings.
    client.ok("KEYDB.CRON", "admin", "repeat", FAR, "redis.call('INCR', 'foreign')", 0)
    payload = bytearray(client.call("DUMP", "admin"))
    client.call("DEL", "admin")
    alice.ok("RESTORE", "a:brought", 0, bytes(payload))
    assert b"alice" in client.call("DUMP", "a:brought")
    # Her rights are those of the moment.
    alice.call("DEL", "a:forbidden", "a:foreign", "a:brought")
    client.ok("ACL", "SETUSER", "alice", "-eval")
    stands_still(client)
    client.ok("ACL", "SETUSER", "alice", "+eval")
    runs(client)
    client.ok("ACL", "SETUSER", "alice", "off")
    stands_still(client)
    client.ok("ACL", "SETUSER", "alice", "on")
    runs(client)
    assert client.call("ACL", "DELUSER", "alice") == 1
    stands_still(client)


def test_user_survives(make_server):
    """A job is its maker's behind a restart out of each kind of file, too."""
    for options in ({"dbfilename": "dump.rdb"},
                    {"appendonly": "yes", "appendfsync": "always"},
                    {"appendonly": "yes", "appendfsync": "always", "aof-use-rdb-preamble": "no"}):
        server = make_server(dict(options), files=["dump.rdb", "appendonlydir"],
                             config="user alice on >a ~* +keydb.cron +eval +incr +get +restore\n")
        with server.connect() as client, server.connect() as alice:
            alice.ok("AUTH", "alice", "a")
            alice.ok("KEYDB.CRON", "j", "repeat", 20, COUNT, 1, "n")
            alice.ok("KEYDB.CRON", "f", "repeat", 20, "redis.call('SET', 'forbidden', '1')")
            client.ok("KEYDB.CRON", "once", "single", FAR, COUNT, 1, "n")
            alice.ok("RESTORE", "copy", 0, client.call("DUMP", "once"))
            digests = client.call("DEBUG", "DIGEST-VALUE", "j", "f", "once", "copy")
            assert digests[2] != digests[3]
            if "appendonly" not in options:
                client.ok("SAVE")
            elif "aof-use-rdb-preamble" in options:
                rewrites = int(server.info()["aof_rewrites"])
                client.call("BGREWRITEAOF")
                eventually(lambda: server.info()["aof_rewrite_in_progress"] == "0"
                           and int(server.info()["aof_rewrites"]) > rewrites, "rewrite")
        server.kill()
        server.start()
        with server.connect() as client:
            runs(client)
            assert client.call("DEBUG", "DIGEST-VALUE", "j", "f", "once", "copy") == digests
            assert client.call("EXISTS", "forbidden") == 0
        server.stop()


# ---- failures ----

def test_failures_are_few_in_the_log(make_server):
    server = make_server()
    with server.connect() as client:
        client.ok("KEYDB.CRON", "bad", "repeat", 5, "error('no luck')")
        client.ok("KEYDB.CRON", "n", "repeat", 20, COUNT, 1, "count")
        runs(client, 20, "count")
        client.ok("KEYDB.CRON", "syntax", "single", 5, "not lua")
        eventually(lambda: "The job 'syntax' failed" in server.output(), "log", 60)
        client.call("DEL", "bad", "n")
    assert server.output().count("The job 'bad' failed") <= 2
    assert "no luck" in server.output()


def test_long_job_can_be_killed(make_server):
    server = make_server({"busy-reply-threshold": "50"})
    with server.connect() as client, server.connect() as other:
        client.ok("KEYDB.CRON", "loop", "single", 5, "while true do end")
        eventually(lambda: (other.call("GET", "a") or b"").startswith(b"BUSY"), "BUSY", 60)
        client.ok("SCRIPT", "KILL")
        eventually(lambda: other.call("GET", "a") is None, "the end", 60)
        client.ok("KEYDB.CRON", "j", "repeat", 10, COUNT, 1, "n")
        runs(client)
        # SHUTDOWN NOSAVE ends it too, whatever it has written.
        client.ok("KEYDB.CRON", "loop", "single", 5, "redis.call('SET', 'a', 1) while true do end")
        eventually(lambda: (other.call("GET", "b") or b"").startswith(b"BUSY"), "BUSY", 60)
        assert client.call("SCRIPT", "KILL").startswith(b"UNKILLABLE")
        client.send("SHUTDOWN", "NOSAVE")
        server.wait_exit()


def test_held_up(client):
    """While clients are paused, or DEBUG stops what is periodic, nothing runs."""
    client.ok("KEYDB.CRON", "j", "repeat", 10, COUNT, 1, "n")
    runs(client)
    client.ok("DEBUG", "PAUSE-CRON", 1)
    before = number(client)
    time.sleep(0.2)
    assert number(client) == before
    client.ok("DEBUG", "PAUSE-CRON", 0)
    runs(client)


# ---- files ----

def test_debug_reload(make_server):
    server = make_server(files=["dump.rdb"])
    with server.connect() as client:
        client.ok("KEYDB.CRON", "far", "single", FAR, COUNT, 2, "a", "b", "c", "d")
        client.ok("KEYDB.CRON", "j", "repeat", 20, COUNT, 1, "n")
        digest = client.call("DEBUG", "DIGEST")
        client.ok("DEBUG", "RELOAD")
        assert client.call("TYPE", "far") == b"cron"
        runs(client)
        client.call("DEL", "n")
        eventually(lambda: client.call("DEL", "n") is not None
                   and client.call("DEBUG", "DIGEST") == digest, "the same", 60)


def test_of_keydb(make_server, data_dir="/work/shared/data/rdb/"):
    """A job in KeyDB's file; its start is in 1973, and it has an interval of three years."""
    for name in ("keydb-6.3.4.rdb", "keydb-6.3.4-active.rdb"):
        server = make_server(files=["dump.rdb"], start=False)
        shutil.copy(data_dir + name, server.file("dump.rdb"))
        with server.start().connect() as client:
            assert client.call("TYPE", "cron:job") == b"cron"
            dump = client.call("DUMP", "cron:job")
            assert b"redis.call('incr', KEYS[1])" in dump and b"counter" in dump
            assert client.call("TTL", "cron:job") == -1
            assert "left out" not in server.output().replace("empty ones left out", "")


# ---- replicas ----

def follow(replica, primary):
    with replica.connect() as client:
        client.ok("REPLICAOF", "127.0.0.1", primary.port)
    eventually(lambda: replication(replica).get("master_link_status") == "up", "link", 60)


def test_runs_on_the_primary_only(make_server):
    """Each run is seen once on the replica; promoted it runs the jobs itself."""
    primary, replica = make_server(NOW), make_server(NOW)
    with primary.connect() as p, replica.connect() as r:
        p.ok("KEYDB.CRON", "before", "repeat", 20, COUNT, 1, "n")
        follow(replica, primary)
        p.ok("KEYDB.CRON", "j", "repeat", 20, "redis.call('RPUSH', 'l', redis.call('INCR', 'm')) "
             "redis.call('INCR', 'm2')", 0)
        runs(p, 5)
        runs(p, 5, "m")
        assert p.call("DEL", "j", "before") == 2
        eventually(lambda: in_step(primary, replica), "in step", 60)
        for key in ("n", "m", "m2"):
            assert r.call("GET", key) == p.call("GET", key)
        assert r.call("LRANGE", "l", 0, -1) == [b"%d" % i for i in range(1, number(p, "m") + 1)]
        p.ok("KEYDB.CRON", "once", "single", 20, COUNT, 1, "once:n")
        eventually(lambda: r.call("GET", "once:n") == b"1" and r.call("EXISTS", "once") == 0,
                   "once", 60)
        p.ok("KEYDB.CRON", "late", "repeat", FAR, COUNT, 1, "far")
        p.ok("KEYDB.CRON", "j", "repeat", 20, COUNT, 1, "q")
        runs(p, 3, "q")
        eventually(lambda: r.call("EXISTS", "j", "late") == 2, "there", 60)
        r.ok("REPLICAOF", "NO", "ONE")
        runs(r, 3, "q")
        assert r.call("EXISTS", "far") == 0


def test_effects_are_one_transaction(make_server):
    """A log holds a run whole: with the removal of its key where it runs once."""
    server = make_server({"appendonly": "yes", "appendfsync": "always",
                          "aof-use-rdb-preamble": "no"}, files=["appendonlydir"])
    with server.connect() as client:
        client.ok("KEYDB.CRON", "j", "single", 10,
                  "redis.call('SET', 'a', 1) redis.call('SET', 'b', 2)")
        eventually(lambda: client.call("GET", "b") == b"2", "the run", 60)
    def words():
        with open(server.file("appendonlydir/appendonly.aof.1.incr.aof"), "rb") as file:
            return [w for w in file.read().split(b"\r\n") if w and w[:1] not in b"*$"]
    eventually(lambda: words()[-1] == b"EXEC", "in the file", 60)
    server.kill()
    at = words().index(b"MULTI")
    assert words()[at:] == [b"MULTI", b"DEL", b"j", b"SET", b"a", b"1", b"SET", b"b", b"2", b"EXEC"]
    server.start()
    with server.connect() as client:
        assert client.call("EXISTS", "j") == 0 and client.call("GET", "b") == b"2"


def test_idle_without_jobs(make_server):
    """The runner sleeps: its thread is not woken while there is nothing to run."""
    server = make_server()

    def switches():
        total = 0
        for task in os.listdir("/proc/%d/task" % server.pid):
            with open("/proc/%d/task/%s/comm" % (server.pid, task)) as comm:
                if comm.read().strip() != "jobs":
                    continue
            with open("/proc/%d/task/%s/status" % (server.pid, task)) as status:
                for line in status:
                    if "ctxt_switches" in line:
                        total += int(line.split()[1])
        return total
    with server.connect() as client:
        client.ok("KEYDB.CRON", "j", "single", 1, COUNT, 1, "n")
        eventually(lambda: number(client) == 1 and not client.call("EXISTS", "j"), "run", 60)
        time.sleep(0.2)
        assert switches() > 0

        def is_quiet():
            before = switches()
            time.sleep(2.5)
            return switches() <= before + 1
        # A busy machine may not have let it go to sleep yet; one that is woken is so in every look.
        assert any(is_quiet() for _ in range(4))
