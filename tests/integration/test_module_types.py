"""Values of modules' types: in files, payloads and logs, with a module that is not there or refuses them,
freed by several threads. Beside redis-server: differential/test_module_types.py."""

import os
import shutil
import subprocess
import threading

import pytest

from lib.active import check_equal, check_quiet, follow, is_up, make_node
from lib.bounds import eventually
from lib.modules import path_of, rewrites
from lib.payload import sealed
from lib.resp import Error
from lib.seeds import generator, seeds
from lib.server import server_path

__all__ = ["make_node"]  # fixtures

CHECK = os.path.join(os.path.dirname(server_path()), "keydb-check-rdb")
UNKNOWN = "a value of the type 'testboxes' of a module that is not loaded"


@pytest.fixture
def with_types(make_server):
    """with_types(word ..., options={...}): a server with the module `types`."""

    def make(*words, options=None, files=("dump.rdb", "appendonlydir"), start=True):
        return make_server({"loadmodule": [path_of("types"), *words], "enable-module-command": "yes",
                            "enable-debug-command": "yes", "repl-diskless-sync-delay": "0", **(options or {})}, files=files, start=start)

    return make


def fill(c):
    c.call("TY.PUSH", "b", "one", "two", "x" * 3000)
    c.call("TY.NUMBERS", "b", "-7", "18446744073709551615", "1.5", "-0.25", "3.1")
    c.call("TY.PLAIN", "p", "-12")
    c.call("SET", "s", "v")


SHORT = {"repl-backlog-size": "16kb"}


def fill_logs(*clients):
    """More than SHORT keeps: peers need the whole data set."""
    for number, c in enumerate(clients):
        c.pipeline([["SET", "%d:%d" % (number, i), "x" * 60] for i in range(600)])


def linked(*nodes):
    for node in nodes:
        follow(node, *[peer for peer in nodes if peer is not node])
    eventually(lambda: all(is_up(n, len(nodes) - 1) for n in nodes), "links", 60)


def content(c):
    return c.call("TY.ALL", "b"), c.call("TY.SEE", "p"), c.call("GET", "s")


# ---- files

def test_reload(with_types):
    server = with_types()
    with server.connect() as c:
        fill(c)
        c.ok("TY.AUX", "before", "early")
        c.ok("TY.AUX", "after", "late")
        expected, digest = content(c), c.call("DEBUG", "DIGEST")
        c.ok("DEBUG", "RELOAD")
        assert content(c) == expected and c.call("DEBUG", "DIGEST") == digest
        eventually(lambda: c.call("TY.LIVE") == 1, "what was before is freed")
        c.call("BGSAVE")
        eventually(lambda: b"rdb_bgsave_in_progress:0" in c.call("INFO", "persistence"), "the save")
        assert b"rdb_last_bgsave_status:ok" in c.call("INFO", "persistence")
    server.stop()
    server.start()
    with server.connect() as c:
        assert content(c) == expected
        assert c.call("TY.AUX", "before") == b"early" and c.call("TY.AUX", "after") == b"late"


def saved(with_types, *words, aux=False):
    server = with_types(*words)
    with server.connect() as c:
        fill(c)
        if aux:
            c.call("DEL", "b", "p")
            c.ok("TY.AUX", "before", "early")
        c.ok("SAVE")
    return server


def start_with(make, first, *words, **options):
    second = make(*words, **options)
    shutil.copy(first.file("dump.rdb"), second.file("dump.rdb"))
    return second


@pytest.mark.parametrize("aux", (False, True))
def test_a_file_of_a_module_that_is_not_there(with_types, make_server, aux):
    """The start is refused with the type's name, and the file is as it was."""
    first = saved(with_types, *([] if aux else ["noaux"]), aux=aux)
    first.stop()
    second = make_server({}, files=["dump.rdb"], start=False)
    shutil.copy(first.file("dump.rdb"), second.file("dump.rdb"))
    before = second.file("dump.rdb")
    with open(before, "rb") as file:
        data = file.read()
    text = second.start_fails()
    assert (UNKNOWN.replace("a value", "data") if aux else UNKNOWN) in text, text
    with open(before, "rb") as file:
        assert file.read() == data


def test_a_module_that_refuses_its_value(with_types):
    first = saved(with_types)
    first.stop()
    second = start_with(with_types, first, "refuse", start=False)
    text = second.start_fails()
    assert "the module refuses, of the type 'testboxes'" in text and "<types> no box of version 1" in text, text
    third = start_with(with_types, first, "encver", "0", start=False)
    assert "of the type 'testboxes'" in third.start_fails()
    fourth = start_with(with_types, first, "encver", "7", start=False)
    fourth.start()
    with fourth.connect() as c:
        assert c.call("TY.PLAIN", "p") == -12


def test_aux_that_is_left_out(with_types):
    """aux_save2 that writes nothing leaves nothing in the file, so that it loads without the module."""
    server = saved(with_types, "aux2")
    with open(server.file("dump.rdb"), "rb") as file:
        assert b"\xf7" not in file.read().split(b"aof-base")[1][:12]
    with server.connect() as c:
        c.call("FLUSHALL")
        c.call("SET", "s", "v")
        c.ok("SAVE")
    done = subprocess.run([CHECK, server.file("dump.rdb")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "1 keys read" in done.stdout


def test_check_rdb(with_types):
    server = saved(with_types)
    done = subprocess.run([CHECK, server.file("dump.rdb")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "RDB looks OK" in done.stdout and "3 keys read" in done.stdout, done.stdout
    with open(server.file("dump.rdb"), "rb") as file:
        data = file.read()
    path = server.file("cut.rdb")
    server.expected_files.add("cut.rdb")
    with open(path, "wb") as file:
        file.write(data[:data.index(b"two")])
    done = subprocess.run([CHECK, path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "Reading type 7 (module-value)" in done.stdout, done.stdout


def test_rdb_save(with_types):
    server = with_types(files=("dump.rdb", "by-module.rdb"))
    with server.connect() as c:
        fill(c)
        c.ok("TY.RDBSAVE", "by-module.rdb", "0")
        assert c.error("TY.RDBSAVE", "by-module.rdb", "1") == b"Invalid argument"
        assert c.error("TY.RDBSAVE", "no/such/folder.rdb", "0") == b"No such file or directory"
    done = subprocess.run([CHECK, server.file("by-module.rdb")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "3 keys read" in done.stdout


def test_a_load_amid_a_transaction(with_types):
    """The first one that there is. As in Redis the log begins anew when the transaction is over; here it has no part of it
    that the load has done away with."""
    server = with_types(options={"appendonly": "yes", "appendfsync": "always"}, files=("dump.rdb", "appendonlydir", "kept.rdb"))
    replica = with_types(options={"replicaof": "127.0.0.1 %d" % server.port})
    with server.connect() as c, replica.connect() as r:
        fill(c)
        c.ok("TY.RDBSAVE", "kept.rdb", "0")
        c.ok("SET", "s", "later")
        eventually(lambda: r.call("GET", "s") == b"later", "the replica has it")
        before = eventually(lambda: rewrites(c) + 1, "none runs") - 1
        c.ok("MULTI")
        for words in (("SET", "gone", "v"), ("TY.RDBLOAD", "kept.rdb", "0"), ("SET", "stays", "v"), ("GET", "s"), ("DBSIZE",)):
            c.call(*words)
        assert c.call("EXEC") == [b"OK", b"OK", b"OK", b"v", 4]
        eventually(lambda: rewrites(c) > before, "the log begins anew")
        c.ok("SET", "last", "v")
        kept = ["MGET", "s", "gone", "stays", "last"]
        assert c.call(*kept) == [b"v", None, b"v", b"v"]
        expected = content(c)
        eventually(lambda: r.call(*kept) == [b"v", None, b"v", b"v"] and content(r) == expected, "the replica has the same")
    replica.stop()
    server.kill()
    server.start()
    with server.connect() as c:
        assert c.call(*kept) == [b"v", None, b"v", b"v"] and content(c) == expected


@pytest.mark.parametrize("count", [1, 3])
def test_a_crash_before_the_log_begins_anew(with_types, count):
    """Of the transaction in which all was loaded the old log has nothing, also of what stood before that."""
    server = with_types(options={"appendonly": "yes", "appendfsync": "always"}, files=("dump.rdb", "appendonlydir", "kept.rdb"))
    with server.connect() as c:
        fill(c)
        c.ok("TY.RDBSAVE", "kept.rdb", "0")
        c.ok("SET", "s", "later")
        c.ok("CONFIG", "SET", "rdb-key-save-delay", "100000000")
        c.ok("MULTI")
        for i in range(count):
            c.call("SET", "gone%d" % i, "v")
        c.call("TY.RDBLOAD", "kept.rdb", "0")
        c.call("SET", "stays", "v")
        assert c.call("EXEC") == [b"OK"] * (count + 2)
        assert c.call("MGET", "s", "gone0", "stays") == [b"v", None, b"v"]
    server.kill()
    server.start()
    with server.connect() as c:
        assert c.call("MGET", "s", "gone0", "stays") == [b"later", None, None]
        c.ok("SET", "more", "v")
    server.kill()
    server.start()
    with server.connect() as c:
        assert c.call("MGET", "s", "gone0", "stays", "more") == [b"later", None, None, b"v"]
    for name in os.listdir(server.file(".")):
        if name.startswith("temp-rewriteaof"):  # of a child that was killed
            os.remove(server.file(name))


def test_rdb_load(with_types):
    """In place of all that is there, also at a replica and in the log; or nothing changes."""
    server = with_types(options={"appendonly": "yes", "appendfsync": "always"},
                        files=("dump.rdb", "appendonlydir", "kept.rdb", "bad.rdb"))
    replica = with_types(options={"replicaof": "127.0.0.1 %d" % server.port})
    with server.connect() as c, replica.connect() as r, server.connect() as watching:
        fill(c)
        expected = content(c)
        c.ok("TY.RDBSAVE", "kept.rdb", "0")
        eventually(lambda: b"master_link_status:up" in r.call("INFO", "replication"), "the link")
        c.call("TY.PUSH", "b", "later")
        c.ok("SET", "other", "v")
        eventually(lambda: r.call("GET", "other") == b"v", "the replica has it")
        now = content(c)
        with open(server.file("kept.rdb"), "rb") as file:
            data = file.read()
        with open(server.file("bad.rdb"), "wb") as file:
            file.write(data[:-20])
        assert c.error("TY.RDBLOAD", "kept.rdb", "1") == b"Invalid argument"
        assert c.error("TY.RDBLOAD", "none.rdb", "0") == b"No such file or directory"
        assert c.error("TY.RDBLOAD", "bad.rdb", "0") == b"Input/output error"
        assert r.error("TY.RDBLOAD", "dump.rdb", "0") == b"Operation not supported"
        assert content(c) == now and c.call("GET", "other") == b"v"
        watching.ok("WATCH", "s")
        before = eventually(lambda: rewrites(c) + 1, "those of the loads that failed are over") - 1
        c.ok("TY.RDBLOAD", "kept.rdb", "0")
        assert content(c) == expected and c.call("GET", "other") is None
        watching.ok("MULTI")
        watching.call("GET", "s")
        assert watching.call("EXEC") is None
        eventually(lambda: r.call("GET", "other") is None and content(r) == expected, "the replica has what was loaded")
        c.ok("SET", "s", "after")
        expected = content(c)
        eventually(lambda: content(r) == expected, "and what follows")
        eventually(lambda: rewrites(c) > before, "the log begins anew")
        before = rewrites(c)
        c.ok("MULTI")
        c.call("TY.RDBLOAD", "kept.rdb", "0")
        assert c.call("EXEC") == [b"OK"]  # the world is there: an earlier call has said that it is wanted
        eventually(lambda: rewrites(c) > before, "and once more")
        c.call("SET", "s", "last")
        expected = content(c)
    replica.stop()
    server.kill()
    server.start()
    with server.connect() as c:
        assert content(c) == expected and c.call("GET", "other") is None


@pytest.mark.parametrize("preamble", ("yes", "no"))
def test_log(with_types, preamble):
    server = with_types(options={"appendonly": "yes", "aof-use-rdb-preamble": preamble, "appendfsync": "always"})
    with server.connect() as c:
        fill(c)
        c.call("PEXPIREAT", "b", "99999999999999")
        c.call("BGREWRITEAOF")
        eventually(lambda: b"aof_rewrite_in_progress:0" in c.call("INFO", "persistence"), "the rewriting")
        c.call("TY.PUSH", "b", "behind the base")
        c.call("COPY", "b", "c")
        expected, digest = content(c), c.call("DEBUG", "DIGEST")
    server.kill()
    server.start()
    with server.connect() as c:
        assert content(c) == expected and c.call("DEBUG", "DIGEST") == digest
        assert c.call("PEXPIRETIME", "c") == 99999999999999


# ---- payloads

def test_payloads_without_the_module(with_types, make_server):
    server, other = with_types(), make_server({})
    with server.connect() as c, other.connect() as d:
        fill(c)
        assert d.error("RESTORE", "b", "0", c.call("DUMP", "b")) == b"ERR Bad data format"
        assert d.call("DBSIZE") == 0


@pytest.mark.parametrize("words", ((), ("errors",)))
@pytest.mark.parametrize("seed", seeds(3))
def test_hostile_payloads(with_types, words, seed):
    """Whatever is in a payload, the value is refused or is one: nothing leaks, nobody crashes."""
    server, random = with_types(*words), generator(seed)
    with server.connect() as c:
        fill(c)
        body = c.call("DUMP", "b")[:-10]
        for cut in range(len(body) if len(body) < 300 else 300):
            assert isinstance(c.call("RESTORE", "x", "0", sealed(body[:cut]), "REPLACE"), Error), cut
        for _ in range(500):
            damaged = bytearray(body)
            for _ in range(random.randint(1, 4)):
                damaged[random.randrange(1, min(len(damaged), 400))] = random.choice((0, 1, 2, 3, 4, 5, 6, 0x81, 255))
            reply = c.call("RESTORE", "x", "0", sealed(bytes(damaged)), "REPLACE")
            if not isinstance(reply, Error):
                c.call("TY.ALL", "x")
        assert c.error("RESTORE", "y", "0", sealed(body + b"\0")) == b"ERR Bad data format"
        c.call("FLUSHALL")
        eventually(lambda: c.call("TY.LIVE") == 0, "all are freed")


def test_more_than_is_read(with_types):
    """What the module leaves unread would be lost: refused."""
    server = with_types()
    with server.connect() as c:
        c.call("TY.PLAIN", "p", "5")
        body = c.call("DUMP", "p")[:-10]
        assert body[-1:] == b"\0"
        assert c.error("RESTORE", "q", "0", sealed(body[:-1] + b"\2\5\0")) == b"ERR Bad data format"
        c.ok("RESTORE", "q", "0", sealed(body))
        assert c.call("TY.PLAIN", "q") == 5


# ---- coming and going

def test_unloading_and_loading_again(with_types):
    server = with_types()
    with server.connect() as c:
        assert b"module-side data types, can't unload" in c.error("MODULE", "UNLOAD", "types")
        assert b"its OnLoad refused" in c.error("MODULE", "LOAD", path_of("types"), "nonsense")
        assert b"its OnLoad refused" in c.error("MODULE", "LOAD", path_of("types"))
        fill(c)
        c.call("TY.ALL", "b")


def test_types_of_a_failed_load_are_gone(make_server):
    """Its types are taken back: with the next attempt the same name is free."""
    server = make_server({"enable-module-command": "yes"})
    with server.connect() as c:
        c.ok("MODULE", "LOAD", path_of("types"), "encver", "3")
        fill(c)
        assert c.call("TYPE", "b") == b"testboxes"
        assert c.call("TY.KIND", "b") == [6, b"box", 1, 0]


def test_freeing(with_types):
    """At once where that is asked for, in the background where that may be and is much work."""
    server = with_types()
    with server.connect() as c:
        for how in (("DEL", "b"), ("UNLINK", "b"), ("SET", "b", "v"), ("FLUSHALL", "SYNC"), ("FLUSHALL", "ASYNC"),
                    ("PEXPIRE", "b", "-1"), ("RESTORE", "b", "0", None, "REPLACE"), ("FLUSHDB",)):
            for texts in (1, 200):
                c.call("DEL", "b")
                c.call("SET", "s", "v")
                c.call("TY.PUSH", "b", *(["t"] * texts))
                words = [c.call("DUMP", "s") if word is None else word for word in how]
                assert not isinstance(c.call(*words), Error)
                if how[0] in ("DEL", "SET", "PEXPIRE", "RESTORE"):
                    assert c.call("TY.LIVE") == 0, how
                eventually(lambda: c.call("TY.LIVE") == 0, "%s" % (how,))


def test_eviction(with_types):
    server = with_types(options={"maxmemory-policy": "allkeys-lru"})
    with server.connect() as c:
        for i in range(200):
            c.call("TY.PUSH", "b%d" % i, "x" * 20000)
        used = int([line for line in c.call("INFO", "memory").split(b"\r\n")
                    if line.startswith(b"used_memory:")][0].split(b":")[1])
        c.ok("CONFIG", "SET", "maxmemory", str(used - 1500000))
        eventually(lambda: c.call("DBSIZE") < 190, "keys are evicted")
        eventually(lambda: c.call("TY.LIVE") == c.call("DBSIZE"), "their values are freed")
        assert any(note.startswith(b"unlink b") for note in c.call("TY.LOG"))


def test_replica_and_what_follows(with_types):
    primary = with_types()
    replica = with_types(options={"replicaof": "127.0.0.1 %d" % primary.port})
    with primary.connect() as c, replica.connect() as r:
        fill(c)
        c.ok("TY.AUX", "before", "early")
        eventually(lambda: b"master_link_status:up" in r.call("INFO", "replication"), "the link")
        c.ok("MULTI")
        c.call("TY.PUSH", "b", "in a unit")
        c.call("COPY", "b", "c")
        c.call("EXEC")
        c.call("EVAL", "redis.call('TY.PUSH', KEYS[1], 'by a script'); return redis.call('DUMP', KEYS[1])", "1", "b")
        eventually(lambda: content(r) == content(c), "the replica has it")
        eventually(lambda: r.call("TY.ALL", "c") == c.call("TY.ALL", "c"), "and the copy")
        assert r.call("DEBUG", "DIGEST") == c.call("DEBUG", "DIGEST")


def test_a_replica_without_the_module(with_types, make_server):
    """It does not take half a data set for a whole one."""
    primary = with_types("noaux")
    other = make_server({"enable-debug-command": "yes"}, files=["dump.rdb"])
    with primary.connect() as c, other.connect() as r:
        fill(c)
        r.call("SET", "own", "v")
        r.ok("REPLICAOF", "127.0.0.1", str(primary.port))
        eventually(lambda: UNKNOWN in other.output(), "it says why")
        assert b"master_link_status:down" in r.call("INFO", "replication")
        r.ok("REPLICAOF", "NO", "ONE")


def test_active_replicas(make_node):
    """Filled nodes that meet are told one another's values; what follows too."""
    module = [path_of("types"), "noaux"]
    a, b = make_node(loadmodule=module, **SHORT), make_node(loadmodule=module, **SHORT)
    with a.connect() as ca, b.connect() as cb:
        fill(ca)
        fill_logs(ca, cb)
        cb.call("TY.PUSH", "other", "y" * 5000)
        linked(a, b)
        check_equal([a, b], "met")
        assert content(cb) == content(ca) and ca.call("TYPE", "other") == b"testboxes"
        for c in (ca, cb):  # conflicts are told at the pace of a log of that length
            c.ok("CONFIG", "SET", "repl-backlog-size", "16mb")
        check_quiet([a, b])  # no value of before is told once more
        before = cb.call("TY.LOADED")
        ca.call("TY.PUSH", "b", "behind")
        eventually(lambda: cb.call("TY.ALL", "b") == ca.call("TY.ALL", "b"), "it comes")
        assert cb.call("TY.LOADED") == before + 1
        cb.call("TY.PLAIN", "p", "77")
        eventually(lambda: content(ca)[1] == 77, "no digest tells one number of that type from another")
        check_equal([a, b], "after")
        assert content(cb) == content(ca)
    check_quiet([a, b])


@pytest.mark.parametrize("log", ("short", "long"))
def test_active_replicas_of_which_one_lacks_the_module(make_node, log):
    """Half a data set is never taken for a whole one: it says why, and goes on when the module is there."""
    options = {**SHORT, "enable-module-command": "yes"} if log == "short" else {"enable-module-command": "yes"}
    a, b = make_node(loadmodule=[path_of("types"), "noaux"], **options), make_node(**options)
    with a.connect() as ca, b.connect() as cb:
        fill(ca)
        if log == "short":
            fill_logs(ca)
        cb.ok("SET", "own", "v")
        for node, peer in ((a, b), (b, a)):
            follow(node, peer)
        eventually(lambda: "a value of the modules' type 'test" in b.output(), "it says why", 30)
        assert cb.call("EXISTS", "b", "p") == 0
        cb.ok("MODULE", "LOAD", path_of("types"), "noaux")
        eventually(lambda: content(cb) == content(ca), "all of it comes", 30)
    check_quiet([a, b])


def test_data_that_are_no_keys_are_not_for_active_replicas(make_node):
    a, b = (make_node(loadmodule=path_of("types"), **SHORT) for _ in range(2))
    with a.connect() as ca, b.connect() as cb:
        fill(ca)
        fill_logs(ca)
        for node, peer in ((a, b), (b, a)):
            follow(node, peer)
        eventually(lambda: "data that are no keys" in a.output(), "it says why", 30)
        assert cb.call("DBSIZE") == 0


def test_from_all_threads(with_types):
    """Values are made, read, copied, freed and saved by all threads at once."""
    server = with_types()
    faults, rounds = [], 60

    def use(name):
        try:
            with server.connect() as c:
                for i in range(rounds):
                    key = "%s%d" % (name, i % 5)
                    replies = c.pipeline([["TY.PUSH", key, "a", "b"], ["DUMP", key], ["MEMORY", "USAGE", key],
                                          ["COPY", key, "copy", "REPLACE"], ["TY.ALL", "copy"],
                                          ["TYPE", key], ["SCAN", "0", "TYPE", "testboxes"], ["UNLINK", key],
                                          ["DEL", "copy"], ["GET", "s"], ["TY.KIND", key]])
                    wrong = [reply for reply in replies if isinstance(reply, Error)]
                    if wrong:
                        faults.append(wrong)
        except BaseException as fault:  # told by the thread that waits
            faults.append(fault)

    def save():
        with server.connect() as c:
            for _ in range(5):
                c.call("BGSAVE")
                c.call("FLUSHDB", "ASYNC")

    threads = [threading.Thread(target=use, args=("k%d-" % i,)) for i in range(4)] + [threading.Thread(target=save)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults[:3]
    with server.connect() as c:
        c.call("FLUSHALL")
        eventually(lambda: c.call("TY.LIVE") == 0, "all are freed")
