"""What KeyDB says beside Redis outside of the data: its words of replication, of ACL, of FLUSHALL and DEBUG. What does
not exist here says so; nothing of it is a mere syntax error or unknown."""

import os
import re

import pytest

from lib.bounds import eventually
from lib.primary import HandMadePrimary
from lib.replication import everything, in_step, replication
from lib.resp import Error
from lib.server import closed_port

pytestmark = [pytest.mark.any_threads, pytest.mark.usefixtures("ours_only")]


# ---- REPLPING, @replication

@pytest.mark.parametrize("proto", [2, 3])
def test_replping_is_ping(connect, proto):
    client = connect(proto)
    assert client.call("REPLPING") == b"PONG" and client.call("REPLPING", "a") == b"a"
    assert client.error("REPLPING", "a", "b") == b"ERR wrong number of arguments for 'replping' command"
    assert client.call("MULTI") == b"OK"
    assert client.call("REPLPING", "") == b"QUEUED"
    assert client.call("EXEC") == [b""]
    assert client.call("EVAL", "return redis.call('replping')", "0") in (b"PONG", {b"ok": b"PONG"})


def test_replping_reaches_a_replica_without_its_primary(make_server):
    with closed_port() as port:
        server = make_server({"replicaof": ["127.0.0.1", str(port)], "replica-serve-stale-data": "no"})
        with server.connect() as client:
            assert client.error("PING").startswith(b"MASTERDOWN")
            assert client.call("REPLPING") == b"PONG"


def test_the_category_of_replicas(client, connect):
    assert set(client.call("ACL", "CAT", "replication")) == {b"ping", b"replping", b"replconf", b"psync", b"sync"}
    client.ok("ACL", "SETUSER", "copy", "on", ">secret", "+@replication")
    other = connect()
    other.ok("AUTH", "copy", "secret")
    assert other.call("PING") == b"PONG" and other.call("REPLCONF", "listening-port", "1") == b"OK"
    assert other.error("GET", "k").startswith(b"NOPERM") and other.error("INFO").startswith(b"NOPERM")
    client.ok("ACL", "SETUSER", "copy", "reset", "on", ">secret", "~*", "+@all", "-@replication")
    last = connect()
    last.ok("AUTH", "copy", "secret")
    assert last.error("REPLPING").startswith(b"NOPERM") and last.error("PSYNC", "?", "-1").startswith(b"NOPERM")
    assert last.call("GET", "k") is None


# ---- INFO (reference/keydb.md, 1.4): a field, its section and what it may say

FRACTION = r"\d+\.\d+"
FIELDS = {
    "availability_zone": ("server", "z 1"), "features": ("server", ""), "current_client_thread": ("clients", r"\d+"),
    "thread_0_clients": ("clients", r"\d+"), "storage_provider": ("memory", "none"),
    "available_system_memory": ("memory", r"[1-9]\d*"), "instantaneous_lock_contention": ("stats", FRACTION),
    "avg_lock_contention": ("stats", FRACTION), "storage_provider_read_hits": ("stats", "0"),
    "storage_provider_read_misses": ("stats", "0"), "server_threads": ("cpu", r"[1-9]\d*"),
    "long_lock_waits": ("cpu", r"\d+"), "mvcc_depth": ("keydb", "0"),
}
# With flash storage, or on a replica, only.
NOT_HERE = {"storage_flash_used_bytes", "storage_flash_total_bytes", "storage_flash_rocksdb_bytes",
            "master_global_link_status", "connected_masters"}


@pytest.mark.parametrize("asked", ["section", "everything", "all"])
def test_fields_of_info(client, server, threads, asked):
    client.ok("CONFIG", "SET", "availability-zone", "z 1")
    client.ok("SET", "k", "v")
    for name, (section, pattern) in FIELDS.items():
        text = client.call("INFO", section if asked == "section" else asked).decode()
        found = re.findall(r"(?m)^%s:(.*)\r$" % name, text)
        assert len(found) == 1 and re.fullmatch(pattern, found[0]), name
    everything_said = client.call("INFO", "everything").decode()
    assert not [name for name in NOT_HERE if "\n" + name + ":" in everything_said]
    on_threads = [int(n) for n in re.findall(r"\nthread_\d+_clients:(\d+)", everything_said)]
    assert len(on_threads) == threads and sum(on_threads) == 1
    assert re.search(r"\ndb0:keys=1,.*cached_keys=1\b", everything_said)


# ---- what does not exist

NO_FLASH = b"needs a storage provider (FLASH), which does not exist in this version"


@pytest.mark.parametrize("proto", [2, 3])
@pytest.mark.parametrize("name", ["FLUSHALL", "FLUSHDB"])
def test_flush_cache(connect, name, proto):
    client = connect(proto)
    client.ok("SET", "k", "v")
    refusal = b"ERR '%s CACHE' " % name.lower().encode() + NO_FLASH
    assert client.error(name, "CACHE") == refusal and client.error(name, "cache") == refusal
    assert client.error(name, "CACHE", "ASYNC") == client.error(name, "NO") == b"ERR syntax error"
    assert client.call("MULTI") == b"OK" and client.call(name, "cache") == b"QUEUED"
    assert client.call("EXEC") == [refusal]
    assert refusal in client.error("EVAL", "return redis.call('%s', 'CACHE')" % name, "0")
    assert client.call("GET", "k") == b"v"


@pytest.mark.parametrize("word,lacks", [("FORCE-MASTER", b"RREPLAY"), ("GET-TEMP-FILE", b"temporary files"),
                                        ("FLUSH-STORAGE", b"storage providers"),
                                        ("GET-STORAGE-USAGE", b"storage providers")])
def test_doors_of_debug_that_do_not_exist(client, word, lacks):
    for words in ([word], [word.lower()], [word, "yes"]):
        said = client.error("DEBUG", *words)
        assert b"does not exist in this version" in said and lacks in said and words[0].encode() in said
    assert b"unknown subcommand" in client.error("DEBUG", word + "X")


# ---- DEBUG TRUNCATE-REPL-BACKLOG

def test_a_truncated_backlog_keeps_nothing_and_connected_replicas_go_on(make_server, play):
    primary = make_server({"repl-diskless-sync-delay": "0"})
    with primary.connect() as client:
        client.ok("DEBUG", "TRUNCATE-REPL-BACKLOG")  # there is none yet
        replicas = [make_server({"replicaof": ["127.0.0.1", str(primary.port)]}) for _ in range(2)]
        for replica in replicas:
            eventually(lambda r=replica: replication(r)["master_link_status"] == "up", "the link")
        client.ok("SET", "a", "1")
        client.call("WAIT", "2", "0")
        client.ok("DEBUG", "TRUNCATE-REPL-BACKLOG")
        assert int(replication(primary)["repl_backlog_histlen"]) < 100
        first = int(replication(primary)["repl_backlog_first_byte_offset"])
        client.ok("SET", "b", "2")
        assert client.call("WAIT", "2", "0") == 2
        # Who was told everything goes on; an offset before what is kept is a full transfer.
        late = play(primary)
        late.c.send("PSYNC", replication(primary)["master_replid"], str(first - 1))
        assert late.line().startswith(b"+FULLRESYNC")
        assert client.error("DEBUG", "TRUNCATE-REPL-BACKLOG", "x").startswith(b"ERR unknown subcommand")
        for replica in replicas:
            eventually(lambda: in_step(primary, replica), "in step", 60)
            assert everything(replica) == everything(primary)
        assert int(primary.info("stats")["sync_partial_err"]) == 1


# ---- replica-quorum

@pytest.mark.parametrize("quorum,without,with_it", [("-1", False, True), ("0", True, True), ("1", False, True),
                                                    ("2", False, False), ("2147483647", False, False)])
def test_how_many_primaries_must_be_there(make_server, quorum, without, with_it):
    """By the file before there is a link, by CONFIG SET while there is one, and not at all as a primary."""
    primary = make_server({"repl-diskless-sync-delay": "0"})
    replica = make_server({"replica-serve-stale-data": "no", "replica-quorum": quorum})

    def serves():
        with replica.connect() as client:
            reply = client.call("GET", "k")
        return not (isinstance(reply, Error) and reply.startswith(b"MASTERDOWN"))

    def told():
        about = replication(replica)
        return about.get("master_global_link_status"), about.get("connected_masters")

    with closed_port() as nobody, replica.connect() as client:
        assert serves()
        client.ok("REPLICAOF", "127.0.0.1", nobody)
        assert serves() == without and told() == ("up" if without else "down", "0")
        client.ok("CONFIG", "SET", "replica-serve-stale-data", "yes")
        assert serves()
        client.ok("CONFIG", "SET", "replica-serve-stale-data", "no", "replica-quorum", "0")
        assert serves()
        client.ok("REPLICAOF", "127.0.0.1", primary.port)
        eventually(lambda: replication(replica)["master_link_status"] == "up", "the link")
        client.ok("CONFIG", "SET", "replica-quorum", quorum)
        assert serves() == with_it and told() == ("up" if with_it else "down", "1")
        client.ok("REPLICAOF", "NO", "ONE")
        assert serves() and told() == (None, None)


# ---- a primary that is an active replica

@pytest.mark.parametrize("capa", [b"+OK active-replica", b"+OK active-replica keydb-fastsync-save"])
def test_an_active_replica_is_followed(make_server, capa):
    """test_keydb_active.py has what it tells."""
    primary = HandMadePrimary(capa)
    server = make_server({"replicaof": ["127.0.0.1", str(primary.port)]})
    assert primary.transfer().asked[0] == b"PSYNC"
    eventually(lambda: "is an active replica of KeyDB" in server.output(), "the log says so")
    primary.close()


def test_keydbs_plain_primary_is_followed(make_server):
    primary = HandMadePrimary(b"+OK keydb-fastsync-save")
    make_server({"replicaof": ["127.0.0.1", str(primary.port)]})
    assert primary.transfer().asked[0] == b"PSYNC"
    primary.close()


# ---- server-thread-affinity

@pytest.mark.one_thread("each thread has a core")
def test_the_first_core_is_counted_from_one(make_server):
    cores = sorted(os.sched_getaffinity(0))

    def pinned(option):
        server = make_server({"server-thread-affinity": option, "server-threads": "1"})
        tasks = "/proc/%d/task" % server.pid
        names = {open("%s/%s/comm" % (tasks, t), encoding="ascii").read().strip(): int(t) for t in os.listdir(tasks)}
        return sorted(os.sched_getaffinity(names["server-0"]))

    assert pinned("false") == cores
    assert pinned(str(cores[-1] + 1)) == [cores[-1]]
    if cores[0] == 0:
        assert pinned("true") == pinned("1") == [0]
    assert pinned("4096") == cores  # no such core: it is told, and any will do
