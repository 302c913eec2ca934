"""repl-diskless-load: a replica that loads its primary's data set straight from the link."""

import socket

import pytest

from lib.bounds import eventually, scaled
from lib.primary import HISTORY, OTHER, HandMadePrimary
from lib.replication import Load, check_equal, everything, replication
from lib.resp import Error
from lib.seeds import generator
from lib.server import ORACLE, Server, parse_info

NOW = {"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "1"}
LOADING = b"LOADING Redis is loading the dataset in memory"
MARK = b"m" * 40
EVERY_WAY = ["disabled", "on-empty-db", "swapdb"]
LIBRARY = "#!lua name=%s\nredis.register_function{function_name='%s', flags={'no-writes'}, " \
    "callback=function() return '%s' end}"
OLD_LIBRARY, NEW_LIBRARY = LIBRARY % (("old",) * 3), LIBRARY % (("new",) * 3)


@pytest.fixture
def primary():
    made = HandMadePrimary()
    yield made
    made.close()


@pytest.fixture(scope="module")
def data():
    """A data set with something of every kind, as redis-server writes it, of about 200 kB."""
    oracle = Server(ORACLE, options={"save": ""}).start()
    oracle.expected_files.add("dump.rdb")
    random = generator(7, "data")
    try:
        with oracle.connect() as c:
            c.ok("FUNCTION", "FLUSH")
            c.call("FUNCTION", "LOAD", NEW_LIBRARY)
            c.ok("DEBUG", "POPULATE", 2000, "new")
            c.ok("SET", "both", "new")
            c.ok("SET", "noise", random.randbytes(100000))
            c.call("RPUSH", "list", *[random.randbytes(50) for _ in range(300)])
            c.call("SADD", "set", *range(1000))
            c.call("ZADD", "zset", *[w for i in range(300) for w in (i, "m%d" % i)])
            c.call("HSET", "hash", *[w for i in range(300) for w in ("f%d" % i, i)])
            c.call("XADD", "stream", "1-1", "f", "v")
            c.call("XGROUP", "CREATE", "stream", "g", "0")
            c.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "stream", ">")
            c.call("PEXPIREAT", "new:1", 33333333333333)
            c.ok("SELECT", 5)
            c.ok("SET", "far", "new")
            c.ok("SAVE")
        with open(oracle.file("dump.rdb"), "rb") as file:
            return file.read(), everything(oracle)
    finally:
        oracle.stop()
        oracle.remove()


def follow(replica, primary):
    with replica.connect() as c:
        c.ok("REPLICAOF", "127.0.0.1", primary.port)


def is_up(replica):
    return replication(replica).get("master_link_status") == "up"


def persistence(server):
    return server.info("persistence")


def framed(rdb, by_mark):
    return b"$EOF:" + MARK + b"\r\n" + rdb + MARK if by_mark else b"$%d\r\n" % len(rdb) + rdb


def fill(server):
    """What is there before: keys in two databases, a library."""
    with server.connect() as c:
        for i in range(100):
            c.ok("SET", "old:%d" % i, i)
        c.ok("SET", "both", "old")
        c.call("RPUSH", "list", "old")
        c.call("FUNCTION", "LOAD", OLD_LIBRARY)
        c.ok("SELECT", 9)
        c.ok("SET", "far", "old")
    return everything(server)


def has_old(server):
    with server.connect() as c:
        return c.call("FCALL", "old", 0) == b"old" and isinstance(c.call("FCALL", "new", 0), Error)


def serve_whole(primary, replica, rdb, by_mark=True, history=HISTORY):
    """Answers with the data set until the replica's link is up: one that it gave up meanwhile may have asked before."""
    answered = []

    def is_served():
        while not primary.waiting.empty():
            answered.append(primary.transfer())
            try:
                answered[-1].say(history, 1000)
            except OSError:
                continue
            answered[-1].send(framed(rdb, by_mark))
        return is_up(replica)
    eventually(is_served, "link", 30)
    return answered[-1]


def says_no_more(transfer):
    """The other side may have gone already."""
    try:
        transfer.sock.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def sync_old(primary, replica, rdb):
    """The replica's data are those of HISTORY now; the link is cut."""
    follow(replica, primary)
    serve_whole(primary, replica, rdb).end()


# ---- equal content

@pytest.mark.parametrize("by_pipe", ["yes", "no"])
@pytest.mark.parametrize("way", EVERY_WAY)
@pytest.mark.parametrize("kind", ["ours", "redis"])
def test_equal(make_server, make_oracle, kind, way, by_pipe):
    options = dict(NOW, **{"repl-diskless-sync": by_pipe, "repl-backlog-size": "64mb"})
    primary = make_server(options) if kind == "ours" else make_oracle(options)
    replica = make_server({"repl-diskless-load": way})
    if way == "swapdb":
        fill(replica)
    with primary.connect() as c:
        c.call("FUNCTION", "LOAD", NEW_LIBRARY)
        c.ok("DEBUG", "POPULATE", 3000)
        c.ok("SET", "noise", generator(3, "noise").randbytes(3000000))
    with Load(primary, [generator(4, n) for n in range(2)]) as load:
        eventually(lambda: load.commands > 1000 or load.errors, "load", 30)
        follow(replica, primary)
        eventually(lambda: is_up(replica), "link", 30)
        begun = load.commands
        eventually(lambda: load.commands > begun + 500 or load.errors, "load", 30)
    check_equal(primary, replica)
    assert ("straight from the link" in replica.output()) == (way != "disabled")
    with replica.connect() as c:
        assert c.call("FUNCTION", "LIST")[0][1] == b"new" and len(c.call("FUNCTION", "LIST")) == 1
        assert c.call("FCALL", "new", 0) == b"new"
    assert primary.info("stats")["sync_full"] == "1"
    assert persistence(replica)["async_loading"] == persistence(replica)["loading"] == "0"


def test_not_empty_goes_by_a_file(make_server):
    """on-empty-db: with keys here, in whatever database, a file is first."""
    primary, replica = make_server(NOW), make_server({"repl-diskless-load": "on-empty-db"})
    with replica.connect() as r, primary.connect() as p:
        r.ok("SELECT", 9)
        r.ok("SET", "a", "1")
        p.ok("SET", "b", "2")
        follow(replica, primary)
        eventually(lambda: is_up(replica), "link", 30)
        assert "straight" not in replica.output()
        assert r.call("GET", "a") is None
        r.ok("REPLICAOF", "NO", "ONE")
        r.ok("FLUSHALL")
        follow(replica, primary)
        check_equal(primary, replica)
    assert replica.output().count("straight from the link") == 1


@pytest.mark.parametrize("kind", ["ours", "redis"])
def test_same_history_is_served(make_server, make_oracle, kind):
    """A replica that was away for too long: what it has is served until the new data are there."""
    options = dict(NOW, **{"repl-backlog-size": "16384"})
    primary = make_server(options) if kind == "ours" else make_oracle(options)
    replica = make_server({"repl-diskless-load": "swapdb"})
    with primary.connect() as p:
        for i in range(1000):
            p.ok("SET", "k%d" % i, "old")
        follow(replica, primary)
        eventually(lambda: is_up(replica), "link", 30)
        with replica.standing_still():
            p.call("CLIENT", "KILL", "TYPE", "replica")
            for i in range(1000):
                p.ok("SET", "k%d" % i, "new" * 100)
            p.ok("CONFIG", "SET", "rdb-key-save-delay", "3000")
        with replica.connect() as r:
            def look():
                """All at one time: the loading ends by itself."""
                found = r.pipeline([("MULTI",), ("INFO", "persistence"), ("GET", "k1"), ("DBSIZE",), ("EXEC",)])[-1]
                if isinstance(found, Error) or parse_info(found[0])["async_loading"] != "1":
                    return None
                return parse_info(found[0]), found[1:]
            about, found = eventually(look, "async loading", 30)
            assert about["loading"] == "0" and "loading_start_time" in about
            assert found == [b"old", 1000]
            eventually(lambda: r.call("GET", "k1") == b"new" * 100, "swapped", 60)
            assert r.call("GET", "k999") == b"new" * 100
            p.ok("CONFIG", "SET", "rdb-key-save-delay", "0")
        check_equal(primary, replica)
        assert primary.info("stats")["sync_full"] == "2"


# ---- in the middle of it

def test_while_served(make_server, primary, data):
    """Who reads, watches, tracks, waits or replicates from here sees one step, at the end."""
    rdb, content = data
    first = make_server({"repl-diskless-load": "swapdb"})
    last = make_server()
    sync_old(primary, first, tiny(b"both", b"old"))
    second = primary.transfer()
    second.say(HISTORY, 2000)
    follow(last, first)
    whole = framed(rdb, True)
    with first.connect() as r, first.connect() as watches, first.connect() as tracks, \
            first.connect() as waits:
        watches.ok("WATCH", "both")
        tracks.hello(3)
        tracks.ok("CLIENT", "TRACKING", "ON")
        assert tracks.call("GET", "both") == b"old"
        waits.send("XREAD", "BLOCK", 0, "STREAMS", "stream", "0")
        cut = len(whole) - 100  # nearly all: in which order the keys come is redis-server's choice
        second.send(whole[:cut])
        eventually(lambda: persistence(first)["async_loading"] == "1", "async loading", 30)
        eventually(lambda: int(persistence(first).get("rdb_last_load_keys_loaded", 0)) > 100, "keys")
        assert persistence(first)["loading"] == "0"
        assert replication(first)["master_sync_in_progress"] == "1"
        assert r.call("GET", "both") == b"old" and r.call("DBSIZE") == 1
        assert r.call("KEYS", "*") == [b"both"]
        assert r.call("SET", "both", "x").startswith(b"READONLY")
        for words in (["REPLICAOF", "NO", "ONE"], ["BGSAVE"], ["SAVE"], ["BGREWRITEAOF"],
                      ["PSYNC", "?", "-1"]):
            assert r.call(*words) == LOADING, words
        r.ok("MULTI")
        assert r.call("REPLICAOF", "NO", "ONE") == LOADING
        assert isinstance(r.call("EXEC"), Error)
        assert r.call("EVAL", "return redis.call('GET', 'both')", 0) == b"old"
        r.ok("CONFIG", "SET", "maxmemory", "1gb")
        assert second.send(whole[cut:])
        eventually(lambda: is_up(first), "link", 30)
        assert r.call("GET", "both") == b"new"
        watches.ok("MULTI")
        watches.call("GET", "both")
        assert watches.call("EXEC") is None
        assert waits.read() == [[b"stream", [[b"1-1", [b"f", b"v"]]]]]
        assert list(tracks.read_frame()[1]) == [b"invalidate", None]
        assert persistence(first)["async_loading"] == "0"
        assert replication(first)["master_replid"] == HISTORY.decode()
        second.send(b"*3\r\n$3\r\nSET\r\n$5\r\nafter\r\n$1\r\n1\r\n")
        eventually(lambda: r.call("GET", "after") == b"1", "the stream")
        eventually(lambda: is_up(last), "link", 30)
        content = dict(content)
        eventually(lambda: len(everything(last)) == len(content) + 1, "the replica's replica", 30)
        assert everything(last) == everything(first)


def tiny(key, value):
    """The smallest data set with a key."""
    return b"REDIS0009\xfe\x00\x00" + bytes([len(key)]) + key + bytes([len(value)]) + value + \
        b"\xff" + bytes(8)


@pytest.mark.parametrize("by_mark", [True, False])
@pytest.mark.parametrize("same", [True, False])
def test_cut_anywhere(make_server, primary, data, same, by_mark):
    """swapdb: a transfer that breaks anywhere, or is damaged anywhere, changes nothing."""
    rdb, content = data
    whole = framed(rdb, by_mark)
    replica = make_server({"repl-diskless-load": "swapdb", "repl-timeout": "600"})
    random = generator(5, "cuts")
    if same:
        sync_old(primary, replica, tiny(b"a", b"1"))
        with replica.connect() as c:
            c.ok("CONFIG", "SET", "replica-read-only", "no")
        old = fill(replica)
    else:
        old = fill(replica)
        follow(replica, primary)
    head = whole.index(b"\n") + 1
    for n in range(12):
        place = random.randrange(head, len(whole) - 1)
        transfer = primary.transfer()
        if same:
            assert transfer.asked[1] == HISTORY and int(transfer.asked[2]) == 1001
        transfer.say(HISTORY, 5000 + n)
        if n % 3 == 2:
            damaged = bytearray(whole)
            damaged[place] ^= 1 << random.randrange(8)
            transfer.send(bytes(damaged))
            says_no_more(transfer)  # what was a length may want more than there is
        else:
            transfer.send(whole[:place])
            transfer.end()
        eventually(lambda n=n: replica.output().count("data set cannot be loaded") == n + 1,
                   "the fault is seen", 30)
        transfer.end()
        eventually(lambda: persistence(replica)["loading"] == "0", "the end of it", 30)
        assert everything(replica) == old and has_old(replica), place
    serve_whole(primary, replica, rdb, by_mark)
    assert everything(replica) == content and not has_old(replica)


@pytest.mark.parametrize("by_mark", [True, False])
def test_cut_on_empty(make_server, primary, data, by_mark):
    """on-empty-db: what had come of a broken transfer goes; the next one is loaded."""
    rdb, content = data
    whole = framed(rdb, by_mark)
    replica = make_server({"repl-diskless-load": "on-empty-db"})
    random = generator(6, "cuts")
    follow(replica, primary)
    for n in range(5):
        transfer = primary.transfer()
        assert transfer.asked[1:] == [b"?", b"-1"]
        transfer.say()
        transfer.send(whole[:random.randrange(60, len(whole) - 1)])
        with replica.connect() as c:
            eventually(lambda: persistence(replica)["loading"] == "1", "loading")
            assert c.call("GET", "both") == LOADING and c.call("REPLICAOF", "NO", "ONE") == LOADING
            transfer.end()
            eventually(lambda n=n: replica.output().count("data set cannot be loaded") == n + 1,
                       "the fault is seen", 30)
            eventually(lambda: c.call("DBSIZE") == 0, "empty")
            assert c.call("FUNCTION", "LIST") == []
    serve_whole(primary, replica, rdb, by_mark)
    assert everything(replica) == content


def test_other_history(make_server, primary, data):
    """swapdb with a foreign data set here: -LOADING meanwhile, and the old data if it fails."""
    rdb, content = data
    replica = make_server({"repl-diskless-load": "swapdb"})
    old = fill(replica)
    whole = framed(rdb, True)
    with replica.connect() as c:
        follow(replica, primary)
        transfer = primary.transfer()
        transfer.say(OTHER)
        transfer.send(whole[:len(whole) // 2])
        eventually(lambda: persistence(replica)["loading"] == "1", "loading", 30)
        assert persistence(replica)["async_loading"] == "0"
        assert c.call("GET", "both") == LOADING and c.call("REPLICAOF", "NO", "ONE") == LOADING
        assert isinstance(c.call("ECHO", "x"), bytes)
        transfer.end()
        eventually(lambda: c.call("GET", "both") == b"old", "as before", 30)
        c.ok("REPLICAOF", "NO", "ONE")
        assert everything(replica) == old and has_old(replica)
        c.ok("SET", "own", "1")
        c.call("DEL", "own")
        follow(replica, primary)
        serve_whole(primary, replica, rdb, True, OTHER)
        assert everything(replica) == content
        assert replication(replica)["master_replid"] == OTHER.decode()


@pytest.mark.parametrize("way", ["on-empty-db", "swapdb"])
def test_silence(make_server, primary, data, way):
    """A primary that falls silent in the middle is given up after repl-timeout."""
    rdb, content = data
    replica = make_server({"repl-diskless-load": way, "repl-timeout": "2"})
    follow(replica, primary)
    transfer = primary.transfer()
    transfer.say()
    transfer.send(framed(rdb, True)[:50000])
    eventually(lambda: "nothing came for repl-timeout" in replica.output(), "given up", 30)
    with replica.connect() as c:
        eventually(lambda: c.call("DBSIZE") == 0, "empty", 30)
    serve_whole(primary, replica, rdb)
    assert everything(replica) == content


@pytest.mark.parametrize("same", [True, False])
def test_end_in_the_middle(make_server, primary, data, same):
    """SHUTDOWN while a data set comes: at once; what is saved is what was there."""
    rdb, _ = data
    replica = make_server({"repl-diskless-load": "swapdb", "appendonly": "yes",
                           "repl-timeout": "600"}, files=["appendonlydir"])
    if same:
        sync_old(primary, replica, tiny(b"both", b"old"))
        eventually(lambda: persistence(replica)["aof_rewrite_in_progress"] == "0" and
                   persistence(replica)["aof_rewrite_scheduled"] == "0", "rewritten", 20)
    else:
        fill(replica)
        follow(replica, primary)
    transfer = primary.transfer()
    transfer.say()
    transfer.send(framed(rdb, True)[:50000])
    word = "async_loading" if same else "loading"
    eventually(lambda: persistence(replica)[word] == "1", "loading", 30)
    replica.stop()
    transfer.end()
    replica.options["replicaof"] = ["no", "one"]
    replica.start()
    with replica.connect() as c:
        assert c.call("GET", "both") == b"old"
        assert c.call("DBSIZE") == (1 if same else 102)


def test_kill_on_empty(make_server, primary, data):
    rdb, _ = data
    replica = make_server({"repl-diskless-load": "on-empty-db", "repl-timeout": "600"})
    follow(replica, primary)
    transfer = primary.transfer()
    transfer.say()
    transfer.send(framed(rdb, True)[:50000])
    eventually(lambda: persistence(replica)["loading"] == "1", "loading", 30)
    replica.stop()


@pytest.mark.parametrize("way", ["on-empty-db", "swapdb"])
def test_log(make_server, primary, data, way):
    """The append-only file of a replica has what came straight from the link."""
    rdb, content = data
    replica = make_server({"repl-diskless-load": way, "appendonly": "yes"}, files=["appendonlydir"])
    if way == "swapdb":
        fill(replica)
    follow(replica, primary)
    transfer = serve_whole(primary, replica, rdb)
    transfer.send(b"*3\r\n$3\r\nSET\r\n$5\r\nafter\r\n$1\r\n1\r\n")
    with replica.connect() as c:
        eventually(lambda: c.call("GET", "after") == b"1", "the stream")
        eventually(lambda: persistence(replica)["aof_rewrite_in_progress"] == "0" and
                   persistence(replica)["aof_rewrite_scheduled"] == "0", "rewritten", 20)
        c.ok("REPLICAOF", "NO", "ONE")
        found = everything(replica)
        c.ok("DEBUG", "LOADAOF")
        assert everything(replica) == found and len(found) == len(content) + 1
        assert isinstance(c.call("FCALL", "old", 0), Error)


# ---- what must not be believed

HUGE = b"\x81" + (1 << 61).to_bytes(8, "big")
LIES = {
    "a string": b"\xfe\x00\x00\x01k" + HUGE,
    "a key": b"\xfe\x00\x00" + HUGE,
    "a compressed string": b"\xfe\x00\x00\x01k\xc3" + HUGE + HUGE,
    "many keys": b"\xfe\x00\xfb" + HUGE + HUGE,
    "many elements": b"\xfe\x00\x01\x01k" + HUGE,
    "many members": b"\xfe\x00\x02\x01k" + HUGE + b"\x01a",
    "many scores": b"\xfe\x00\x05\x01k" + HUGE,
    "many fields": b"\xfe\x00\x04\x01k" + HUGE,
    "many pending entries": b"\xfe\x00\x0f\x01k\x00\x00\x00\x00\x01\x01g\x00\x00" +
                            b"\x81" + (1 << 55).to_bytes(8, "big"),
    "a database": b"\xfe" + HUGE,
    "a fact": b"\xfa" + HUGE,
    "a library": b"\xf5" + HUGE,
    "a library without sense": b"\xf5\x03abc\xff" + bytes(8),
    "two libraries of one name": b"".join(
        b"\xf5" + bytes([0x40 | len(NEW_LIBRARY) >> 8, len(NEW_LIBRARY) & 255]) +
        NEW_LIBRARY.encode() for _ in range(2)) + b"\xff" + bytes(8),
    "another mark": b"\xff" + bytes(8) + b"x" * 40,
}


@pytest.mark.parametrize("way", ["on-empty-db", "swapdb"])
def test_lies(make_server, primary, way):
    replica = make_server({"repl-diskless-load": way, "repl-timeout": "600"})
    follow(replica, primary)
    with replica.connect() as c:
        count = 0
        heads = [b"$EOF:" + MARK, b"$%d" % (1 << 62)]
        for what, lie in LIES.items():
            heads.reverse()
            transfer = primary.transfer(scaled(30))
            transfer.say(HISTORY, 1000)
            transfer.send(heads[way == "swapdb"] + b"\r\nREDIS0010" + lie + MARK)
            says_no_more(transfer)
            count += 1
            eventually(lambda: replica.output().count("cannot be loaded") >= count, what, 30)
            assert int(replica.info("memory")["used_memory_peak"]) < 60 << 20, what
            eventually(lambda: c.call("DBSIZE") == 0, what, 30)
            assert c.call("FUNCTION", "LIST") == []
        serve_whole(primary, replica, tiny(b"a", b"1"))
        assert c.call("GET", "a") == b"1"


def test_large_strings(make_server, primary):
    """Values longer than any piece of them that comes at once."""
    big = generator(8, "big").randbytes(5000000)
    rdb = b"REDIS0009\xfe\x00\x00\x03big\x80" + len(big).to_bytes(4, "big") + big + b"\xff" + bytes(8)
    replica = make_server({"repl-diskless-load": "swapdb"})
    follow(replica, primary)
    serve_whole(primary, replica, rdb)
    with replica.connect() as c:
        assert c.call("GET", "big") == big


def test_setting(make_server):
    server = make_server()
    with server.connect() as c:
        assert c.call("CONFIG", "GET", "repl-diskless-load") == [b"repl-diskless-load", b"disabled"]
        for way in EVERY_WAY:
            c.ok("CONFIG", "SET", "repl-diskless-load", way)
            assert c.call("CONFIG", "GET", "repl-diskless-load")[1] == way.encode()
        assert isinstance(c.call("CONFIG", "SET", "repl-diskless-load", "flush-before-load"), Error)
