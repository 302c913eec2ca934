"""Our server as a replica: of Debian's redis-server, of our own, in chains, and promoted."""

import os

import pytest

from lib import pubsub
from lib.bounds import eventually
from lib.replication import Load, check_equal, everything, in_step, log_is_whole, replication
from lib.resp import Error
from lib.seeds import generator

pytestmark = pytest.mark.one_thread("the link runs on the thread of all clients")

NOW = {"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "1"}


@pytest.fixture
def redis(make_oracle):
    """redis(options): a redis-server."""
    return lambda **options: make_oracle(options)


def follow(replica, primary):
    with replica.connect() as c:
        c.ok("REPLICAOF", "127.0.0.1", primary.port)


def is_up(replica):
    return replication(replica).get("master_link_status") == "up"


def cut(primary):
    with primary.connect() as c:
        return c.call("CLIENT", "KILL", "TYPE", "replica")


def load_and_cut(primary, replica, seed, cuts=4):
    with Load(primary, [generator(seed, n) for n in range(3)]) as load:
        follow(replica, primary)
        eventually(lambda: is_up(replica), "link", 30)
        for _ in range(cuts):
            begun = load.commands
            eventually(lambda at=begun: load.commands > at + 300 or load.errors, "load", 30)
            cuts_seen = int(primary.info("stats")["sync_partial_ok"])  # before: the replica is back at once
            eventually(lambda: cut(primary) > 0 or load.errors, "cut", 30)
            eventually(lambda at=cuts_seen: int(primary.info("stats")["sync_partial_ok"]) > at,
                       "goes on", 30)
            eventually(lambda: is_up(replica), "link", 30)
        eventually(lambda: load.commands > 3000 or load.errors, "load", 60)


@pytest.mark.parametrize("diskless", ["yes", "no"])
def test_follows_redis(make_server, redis, diskless):
    primary = redis(**{"repl-diskless-sync": diskless, "repl-diskless-sync-delay": "0",
                       "repl-backlog-size": "64mb", "repl-ping-replica-period": "1"})
    replica = make_server()
    load_and_cut(primary, replica, 2)
    check_equal(primary, replica)
    stats = primary.info("stats")
    assert stats["sync_full"] == "1" and int(stats["sync_partial_ok"]) >= 4


TRIMS = [["MAXLEN", "~", "3", "LIMIT", "2"], ["MAXLEN", "~", "0", "LIMIT", "100"],
         ["MINID", "~", "4", "LIMIT", "2"], ["MINID", "~", "99", "LIMIT", "0"],
         ["MAXLEN", "~", "2"], ["MAXLEN", "=", "1"]]


def trim_streams(client):
    """Trims with limits: Redis tells them as "=", with the limit still there."""
    for number, options in enumerate(TRIMS):
        for key, command in (("t%d" % number, ["XTRIM", "t%d" % number] + options),
                             ("a%d" % number, ["XADD", "a%d" % number] + options + ["50-1", "f", "v"])):
            for i in range(1, 9):
                client.call("XADD", key, "%d-1" % i, "f", "v")
            client.call(*command)


def set_back_streams(client, key):
    """The last ID before that of a deleted entry: before 7.2 XSETID allows it."""
    client.pipeline([["XADD", key, "5-0", "f", "v"], ["XADD", key, "9-0", "f", "v"],
                     ["XDEL", key, "9-0"]])
    client.ok("XSETID", key, "7-0")
    assert client.call("XADD", key, "8-0", "f", "v") == b"8-0"


def test_streams_of_redis(make_server, redis):
    nodes = {"stream-node-max-entries": "1"}
    primary, replica = redis(**nodes), make_server(nodes)
    with primary.connect() as client:
        set_back_streams(client, "before")
        follow(replica, primary)
        eventually(lambda: is_up(replica), "link", 30)
        trim_streams(client)
        set_back_streams(client, "after")
        payload = client.call("DUMP", "after")
    check_equal(primary, replica)
    with make_server(nodes).connect() as client:
        client.ok("RESTORE", "s", "0", payload)
        assert client.call("XRANGE", "s", "-", "+")[-1][0] == b"8-0"


def test_counts_of_redis(make_server, redis):
    """PFCOUNT writes what it has counted into the value, which GET shows."""
    primary, replica = redis(), make_server({"appendonly": "yes"}, files=["appendonlydir"])
    follow(replica, primary)
    eventually(lambda: is_up(replica), "link", 30)
    with primary.connect() as client:
        for number in range(0, 3000, 100):
            client.call("PFADD", "k", *range(number, number + 100))
            client.call("PFADD", "k%d" % number, "a", "b")
            assert client.call("PFCOUNT", "k") > number * 0.9
            client.pipeline([["MULTI"], ["PFCOUNT", "k%d" % number], ["EXEC"]])
        client.call("PFCOUNT", "k", "k100")
    check_equal(primary, replica)
    before = everything(replica)
    eventually(lambda: log_is_whole(replica), "base", 30)
    replica.stop()
    primary.stop()
    replica.start()
    assert everything(replica) == before


def test_follows_ours(make_server):
    primary = make_server(dict(NOW, **{"repl-backlog-size": "64mb"}))
    replica = make_server()
    load_and_cut(primary, replica, 3)
    check_equal(primary, replica)
    assert primary.info("stats")["sync_full"] == "1"


def test_chain(make_server, redis):
    """A primary, a replica of ours, behind that one of ours and a redis-server: one stream."""
    primary, middle = make_server(dict(NOW, **{"repl-backlog-size": "64mb"})), make_server(NOW)
    last, foreign = make_server(), redis()
    follow(middle, primary)
    eventually(lambda: is_up(middle), "link", 30)
    with Load(primary, [generator(4, n) for n in range(2)]) as load:
        follow(last, middle)
        follow(foreign, middle)
        eventually(lambda: is_up(last) and is_up(foreign), "links", 30)
        begun = load.commands
        eventually(lambda: load.commands > begun + 1000 or load.errors, "load", 30)
        cut(middle)
        cut(primary)
        begun = load.commands
        eventually(lambda: load.commands > begun + 1000 or load.errors, "load", 30)
        eventually(lambda: is_up(last) and is_up(foreign), "links", 30)
    check_equal(primary, middle, last, foreign)
    facts = [replication(s) for s in (primary, middle, last, foreign)]
    assert len({about["master_replid"] for about in facts}) == 1


def test_promotion(make_server):
    """The other replica goes on with the new primary where it was; so does the old primary."""
    primary, first, second = make_server(NOW), make_server(NOW), make_server(NOW)
    with primary.connect() as c:
        for replica in (first, second):
            follow(replica, primary)
            eventually(lambda r=replica: is_up(r), "link", 30)
        for i in range(100):
            c.ok("SET", "k%d" % i, i)
        eventually(lambda: in_step(primary, first, second), "in step", 30)
        identity = replication(primary)["master_replid"]
        with first.connect() as f:
            f.ok("REPLICAOF", "NO", "ONE")
            about = replication(first)
            assert about["role"] == "master" and about["master_replid2"] == identity
            follow(second, first)
            follow(primary, first)
            eventually(lambda: is_up(second) and is_up(primary), "links", 30)
            f.ok("SELECT", 2)
            f.ok("SET", "after", "promotion")
        check_equal(first, second, primary)
        assert first.info("stats")["sync_full"] == "0"
        assert int(first.info("stats")["sync_partial_ok"]) >= 2


def test_what_a_replica_says(make_server):
    primary = make_server(NOW)
    replica = make_server({"replicaof": ["127.0.0.1", str(primary.port)], "replica-priority": "7",
                           "replica-announce-ip": "replica.example"})
    eventually(lambda: is_up(replica), "link", 30)
    with primary.connect() as p, replica.connect() as r:
        p.ok("SET", "a", "1")
        assert p.call("WAIT", 1, 0) == 1
        assert r.call("GET", "a") == b"1"
        assert r.call("SET", "a", "2") == b"READONLY You can't write against a read only replica."
        r.call("MULTI")
        r.call("SET", "a", "2")
        assert isinstance(r.call("EXEC"), Error)
        assert isinstance(r.call("EVAL", "return redis.call('SET', 'a', '2')", 0), Error)
        assert isinstance(r.call("WAIT", 0, 0), Error)
        assert r.call("ROLE")[:4] == [b"slave", b"127.0.0.1", primary.port, b"connected"]
        assert r.call("CONFIG", "GET", "replicaof")[1] == b"127.0.0.1 %d" % primary.port
        assert replication(replica)["slave_priority"] == "7"
        assert replication(primary)["slave0"].startswith(
            "ip=replica.example,port=%d,state=online" % replica.port)
        assert r.call("REPLICAOF", "127.0.0.1", primary.port) == \
            b"OK Already connected to specified master"
        r.ok("CONFIG", "SET", "replica-read-only", "no")
        r.ok("SET", "own", "1")
        assert p.call("GET", "own") is None
        r.ok("CONFIG", "SET", "replica-read-only", "yes", "replica-serve-stale-data", "no")
        r.ok("REPLICAOF", "127.0.0.1", 1)
        assert r.call("GET", "a") == b"MASTERDOWN Link with MASTER is down and " \
            b"replica-serve-stale-data is set to 'no'."
        assert isinstance(r.call("PSYNC", "?", "-1"), Error)
        assert r.call("PING").startswith(b"MASTERDOWN")
        r.ok("CONFIG", "SET", "replica-serve-stale-data", "yes")
        assert r.call("GET", "a") == b"1"
        r.ok("REPLICAOF", "NO", "ONE")
        r.ok("SET", "a", "2")
        for words in (["REPLICAOF", "x", "y"], ["REPLICAOF", "", "1"], ["REPLICAOF", "a", "65536"]):
            assert isinstance(r.call(*words), Error)


def test_expiry_is_the_primarys(make_server):
    """A key whose time has come is hidden on the replica, and stays until the primary says so."""
    primary, replica = make_server(NOW), make_server()
    follow(replica, primary)
    eventually(lambda: is_up(replica), "link", 30)
    with primary.connect() as p, replica.connect() as r:
        p.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        p.ok("SET", "a", "1", "PX", 50)
        p.call("HSET", "h", "f", "1")
        assert p.call("WAIT", 1, 0) == 1
        eventually(lambda: r.call("GET", "a") is None, "hidden")
        assert r.call("DBSIZE") == 2
        assert r.call("EXISTS", "a") == 0
        assert r.call("DBSIZE") == 2
        assert p.call("GET", "a") is None
        eventually(lambda: r.call("DBSIZE") == 1, "deleted")


def test_password(make_server):
    primary = make_server(dict(NOW, requirepass="secret"), password="secret")
    replica = make_server({"masterauth": "wrong"})
    with replica.connect() as r:
        r.ok("REPLICAOF", "127.0.0.1", primary.port)
        eventually(lambda: "does not take masterauth" in replica.output(), "refused", 20)
        r.ok("CONFIG", "SET", "masterauth", "secret")
        eventually(lambda: is_up(replica), "link", 30)


def test_blocked_and_watching(make_server):
    """Who waits for keys is told; who watches a key sees that all data were replaced."""
    primary, replica = make_server(NOW), make_server()
    with replica.connect() as waits, replica.connect() as watches, primary.connect() as p:
        watches.ok("SET", "w", "1")
        watches.ok("WATCH", "w")
        waits.send("BLPOP", "nothing", 0)
        eventually(lambda: replica.info("clients")["blocked_clients"] == "1", "blocked")
        follow(replica, primary)
        assert waits.read() == (b"UNBLOCKED force unblock from blocking operation, instance state "
                                b"changed (master -> replica?)")
        assert waits.is_closed()
        eventually(lambda: is_up(replica), "link", 30)
        watches.ok("MULTI")
        watches.call("GET", "w")
        assert watches.call("EXEC") is None
        waits = replica.connect()
        waits.send("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
        eventually(lambda: replica.info("clients")["blocked_clients"] == "1", "blocked")
        p.call("XADD", "s", "1-1", "f", "v")
        assert waits.read() == [[b"s", [[b"1-1", [b"f", b"v"]]]]]


def test_large_values_and_transactions(make_server):
    """Arguments that come in many pieces, and a transaction around them."""
    primary, replica = make_server(NOW), make_server()
    follow(replica, primary)
    eventually(lambda: is_up(replica), "link", 30)
    noise = generator(1, "noise")
    with primary.connect() as c:
        c.call("MULTI")
        for i in range(6):
            c.call("SET", "t%d" % i, noise.randbytes(300000))
            c.call("MSET", "u%d" % i, noise.randbytes(100000), "v%d" % i, noise.randbytes(2000000))
        c.call("EXEC")
        c.call("EVAL", "for i = 1, 100 do redis.call('RPUSH', 'l', i) end", 0)
    check_equal(primary, replica)


def test_log_of_a_replica(make_server):
    """What a replica has fetched and followed is in its own append-only file."""
    primary = make_server(NOW)
    replica = make_server({"appendonly": "yes"}, files=["appendonlydir"])
    with primary.connect() as p, replica.connect() as r:
        r.ok("SET", "old", "1")
        p.ok("SET", "a", "1")
        follow(replica, primary)
        eventually(lambda: is_up(replica), "link", 30)
        p.ok("SELECT", 2)
        p.ok("SET", "b", "2")
        assert p.call("WAIT", 1, 0) == 1
        eventually(lambda: log_is_whole(replica), "rewritten", 20)
        r.ok("REPLICAOF", "NO", "ONE")
        r.ok("DEBUG", "LOADAOF")
        assert r.call("GET", "old") is None and r.call("GET", "a") == b"1"
        r.ok("SELECT", 2)
        assert r.call("GET", "b") == b"2"


def test_link_as_a_client(make_server):
    """CLIENT LIST shows the link to the primary, CLIENT KILL cuts it; it is made anew."""
    primary, replica = make_server(dict(NOW, **{"repl-backlog-size": "64mb"})), make_server()
    with replica.connect() as r:
        assert r.call("CLIENT", "KILL", "TYPE", "master") == 0
        assert r.call("CLIENT", "LIST", "TYPE", "master") == b""
        follow(replica, primary)
        eventually(lambda: is_up(replica), "link", 30)
        for n, words in enumerate((["TYPE", "master"], ["ADDR", "127.0.0.1:%d" % primary.port], ["ID"])):
            line = eventually(lambda: r.call("CLIENT", "LIST", "TYPE", "master"), "line", 30)
            assert b" addr=127.0.0.1:%d " % primary.port in line and b" flags=M " in line
            identity = line.split()[0][3:]
            assert b"id=" + identity + b" " in r.call("CLIENT", "LIST")
            assert r.call("CLIENT", "LIST", "ID", identity).startswith(b"id=" + identity + b" ")
            assert r.call("CLIENT", "KILL", *(words + [identity] if words == ["ID"] else words)) == 1
            eventually(lambda n=n: primary.info("stats")["sync_partial_ok"] == str(n + 1), "anew", 30)
            eventually(lambda: is_up(replica), "link", 30)
        assert r.call("REPLICAOF", "REMOVE", "127.0.0.1", 1) == b"ERR Master not found"
        assert isinstance(r.call("REPLICAOF", "REMOVED", "127.0.0.1", primary.port), Error)
        r.ok("REPLICAOF", "REMOVE", "127.0.0.1", primary.port)
        assert replication(replica)["role"] == "master"


def test_hello_tells_the_role(make_server):
    """Client libraries that look for a primary ask HELLO."""
    primary, replica = make_server(dict(NOW)), make_server()
    with replica.connect() as r, primary.connect() as p:
        def role(c):
            reply = c.call("HELLO", 2)
            return reply[reply.index(b"role") + 1]
        assert role(r) == b"master"
        follow(replica, primary)
        assert role(r) == b"replica" and role(p) == b"master"
        eventually(lambda: is_up(replica), "link", 30)
        r.ok("REPLICAOF", "NO", "ONE")  # refused while it loads
        assert role(r) == b"master"


@pytest.mark.parametrize("way", ["disabled", "on-empty-db", "swapdb"])
def test_clocks_of_loaded_keys(make_server, redis, way):
    """Keys of a full sync begin unused for as long as the primary says, not since 1970."""
    lru = redis(save="", **dict(NOW, **{"maxmemory-policy": "allkeys-lru", "maxmemory": "1gb"}))
    with lru.connect() as c:
        c.ok("SET", "fresh", "v")
        payload = c.call("DUMP", "fresh")
        c.ok("RESTORE", "old", 0, payload, "IDLETIME", 5000)
    lfu = redis(save="", **dict(NOW, **{"maxmemory-policy": "allkeys-lfu", "maxmemory": "1gb",
                                        "lfu-decay-time": "10"}))
    with lfu.connect() as c:
        c.ok("RESTORE", "used", 0, payload, "FREQ", 100)
    for primary, policy in ((lru, "allkeys-lru"), (lru, "noeviction"), (lfu, "allkeys-lfu")):
        replica = make_server({"repl-diskless-load": way, "maxmemory-policy": policy,
                               "lfu-decay-time": "10"})
        follow(replica, primary)
        eventually(lambda r=replica: is_up(r), "link", 30)
        with replica.connect() as c:
            if primary is lfu:
                assert c.call("OBJECT", "FREQ", "used") == 100
            else:
                assert c.call("OBJECT", "IDLETIME", "fresh") < 300
                assert 5000 <= c.call("OBJECT", "IDLETIME", "old") < 5300


@pytest.mark.parametrize("way", ["disabled", "on-empty-db", "swapdb"])
def test_due_keys_of_a_full_sync_are_kept(make_server, way):
    """They are hidden, and go when the primary says so, or with a promotion."""
    primary, replica = make_server(NOW), make_server({"repl-diskless-load": way})
    with primary.connect() as p, replica.connect() as r:
        p.ok("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        r.ok("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        for key in ("told", "kept"):
            p.ok("SET", key, "v", "PX", 1)
        p.ok("SET", "stays", "v")
        eventually(lambda: p.call("PTTL", "stays") == -1 and p.call("DBSIZE") == 3, "keys")
        follow(replica, primary)
        eventually(lambda: is_up(replica), "link", 30)
        assert r.call("DBSIZE") == 3 and r.call("GET", "told") is None
        assert p.call("GET", "told") is None  # which deletes it
        eventually(lambda: r.call("DBSIZE") == 2, "told")
        r.ok("REPLICAOF", "NO", "ONE")
        r.ok("DEBUG", "SET-ACTIVE-EXPIRE", 1)
        eventually(lambda: r.call("KEYS", "*") == [b"stays"] and r.call("DBSIZE") == 1, "swept")


def listen(server, *words):
    """A subscriber, from now on."""
    c = server.connect(3)
    pubsub.subscribe(c, *words)
    return c


def heard(listener):
    """All messages up to the last one."""
    got = [list(pubsub.frame(listener))]
    while got[-1][-1] != b"last":
        got.append(list(pubsub.frame(listener)))
    return got


MESSAGES = [["PUBLISH", "news", "plain"], ["MULTI"], ["PUBLISH", "news", "alone"], ["EXEC"],
            ["MULTI"], ["SET", "a", "1"], ["PUBLISH", "news", "unit"], ["SPUBLISH", "news", "shard"],
            ["EXEC"],
            ["EVAL", "redis.call('set', 'b', 1) return redis.call('publish', 'news', 'script')", "0"],
            ["EVAL", "return redis.call('spublish', 'news', 'script')", "0"],
            ["PUBLISH", "other", "x" * 100000], ["PUBLISH", "news", "last"],
            ["SPUBLISH", "news", "last"], ["SET", "end", "1"]]
PLAIN = [b"plain", b"alone", b"unit", b"script", b"last"]
SHARD = [b"shard", b"script", b"last"]


@pytest.mark.parametrize("chain", ["ours", "redis, ours", "ours, redis"])
def test_messages_reach_replicas(make_server, redis, chain):
    """What is published on the primary each subscriber behind it hears once; the logs say nothing."""
    log = {"appendonly": "yes"}
    primary = redis(**NOW) if chain.startswith("redis") else \
        make_server(dict(NOW, **log), files=["appendonlydir"])
    middle = make_server(dict(NOW, **log), files=["appendonlydir"])
    last = redis() if chain.endswith("redis") else make_server()
    servers = [primary, middle, last]
    follow(middle, primary)
    follow(last, middle)
    eventually(lambda: is_up(middle) and is_up(last), "links", 30)
    eventually(lambda: log_is_whole(middle), "what comes is in an increment that stays", 30)
    listeners = [(listen(s, "SUBSCRIBE", "news"), listen(s, "SSUBSCRIBE", "news"),
                  listen(s, "PSUBSCRIBE", "n*")) for s in servers]
    with primary.connect() as c:
        replies = c.pipeline(MESSAGES)
    assert not [r for r in replies if isinstance(r, Error)]
    for plain, shard, pattern in listeners:
        assert heard(plain) == [[b"message", b"news", text] for text in PLAIN]
        assert heard(shard) == [[b"smessage", b"news", text] for text in SHARD]
        assert heard(pattern) == [[b"pmessage", b"n*", b"news", text] for text in PLAIN]
        for listener in (plain, shard, pattern):
            listener.call("PING")  # and nothing stands before its reply
            assert not listener.pushes
            listener.close()
    check_equal(primary, middle, last)
    for server in [s for s in servers if os.path.isdir(s.file("appendonlydir"))]:
        eventually(lambda s=server: b"\r\nend\r\n" in log_text(s), "all is in the log")
        assert b"PUBLISH" not in log_text(server).upper()
    # What a replica publishes is heard by its own subscribers alone.
    above, own = listen(primary, "SUBSCRIBE", "news"), listen(middle, "SUBSCRIBE", "news")
    below = listen(last, "SUBSCRIBE", "news")
    with middle.connect() as c:
        eventually(lambda: c.call("PUBSUB", "NUMSUB", "news")[1] == 1 and c.call("PUBSUB", "NUMPAT") == 0,
                   "those before have gone")
        assert c.call("PUBLISH", "news", "here") == 1
    with primary.connect() as c:
        c.call("PUBLISH", "news", "last")
    assert [text for *_, text in heard(own)] == [b"here", b"last"]
    assert heard(above) == heard(below) == [[b"message", b"news", b"last"]]
    for c in (above, own, below):
        c.close()


def log_text(server):
    """All increments of the log."""
    folder, text = server.file("appendonlydir"), b""
    for name in sorted(os.listdir(folder)):
        if name.endswith("incr.aof"):
            with open(os.path.join(folder, name), "rb") as file:
                text += file.read()
    return text


def test_messages_are_waited_for(make_server):
    """A message is a part of the stream: WAIT after it asks for its place."""
    primary, replica = make_server(NOW), make_server()
    follow(replica, primary)
    eventually(lambda: is_up(replica), "link", 30)
    with primary.connect() as c:
        before = int(replication(primary)["master_repl_offset"])
        c.call("PUBLISH", "nobody", "listens")
        assert int(replication(primary)["master_repl_offset"]) > before
        assert c.call("WAIT", 1, 0) == 1
    assert int(replication(replica)["slave_repl_offset"]) > before
