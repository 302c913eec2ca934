"""Keys with an expiry that clients of a writable replica have written: the replica removes them by
itself when their time is up, and nothing that came from the primary."""

import pytest

from lib.bounds import eventually
from lib.replication import check_equal, log_is_whole, replication

pytestmark = pytest.mark.any_threads

WRITABLE = {"replica-read-only": "no", "repl-diskless-sync-delay": "0", "appendonly": "yes",
            "notify-keyspace-events": "EA"}
FOREVER = {"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "1"}

# How a client gives "own" an expiry of LIFE_MS, having "plain" (no expiry) and "far" (one far ahead)
# of the primary's; how many of these three are left, and how many names are noted on the way.
PAYLOAD = b"\x00\x01x\n\x00\"\x80\x86_\xbd\xe8H\xd0"
# None is over before the last word of its way is said.
LIFE_MS = 1500
WAYS = [
    (2, 1, [["SET", "own", "1", "PX", LIFE_MS]]),
    (2, 1, [["PSETEX", "own", LIFE_MS, "1"]]),
    (2, 1, [["SET", "own", "1"], ["SET", "own", "2"], ["PEXPIRE", "own", LIFE_MS]]),
    (2, 1, [["SET", "own", "1", "EX", 1000], ["PEXPIRE", "own", LIFE_MS, "LT"]]),
    (2, 1, [["SET", "own", "1"], ["GETEX", "own", "PX", LIFE_MS]]),
    (2, 1, [["SET", "own", "1", "PX", LIFE_MS], ["SET", "own", "2", "KEEPTTL"], ["APPEND", "own", "x" * 3000]]),
    (2, 2, [["SET", "from", "1", "PX", LIFE_MS], ["COPY", "from", "own"]]),
    (2, 2, [["SET", "from", "1", "PX", LIFE_MS], ["RENAME", "from", "own"]]),
    (2, 1, [["SET", "own", "1", "PX", LIFE_MS], ["MOVE", "own", 7]]),
    (2, 1, [["EVAL", "redis.call('SET', KEYS[1], 1, 'PX', %d)" % LIFE_MS, 1, "own"]]),
    (2, 1, [["MULTI"], ["SADD", "own", "1"], ["PEXPIRE", "own", LIFE_MS], ["EXEC"]]),
    (2, 1, [["RPUSH", "own", "1"], ["PEXPIRE", "own", LIFE_MS]]),
    (2, 1, [["RESTORE", "own", LIFE_MS, PAYLOAD]]),
    (2, 1, [["SELECT", 15], ["SET", "own", "1", "PX", LIFE_MS], ["SELECT", 0]]),
    (1, 1, [["PEXPIRE", "plain", LIFE_MS]]),
    (1, 1, [["SET", "far", "2", "PX", LIFE_MS]]),
    (1, 1, [["RENAME", "far", "own"], ["PEXPIRE", "own", LIFE_MS]]),
    (2, 0, [["SET", "far", "2", "KEEPTTL"], ["APPEND", "far", "x" * 3000], ["SETRANGE", "far", 9, "x"]]),
]


@pytest.fixture
def make_replica(make_server, make_oracle):
    """make_replica(by, primary, options): one that takes writes, and its primary's data."""
    def make(by, primary, **options):
        options = dict(WRITABLE, **options)
        replica = make_oracle(options) if by == "redis" else \
            make_server(options, files=["appendonlydir"])
        follow(replica, primary)
        return replica
    return make


def follow(replica, primary):
    with replica.connect() as c:
        c.ok("REPLICAOF", "127.0.0.1", primary.port)
    eventually(lambda: replication(replica).get("master_link_status") == "up", "link", 30)


def tracked(replica):
    return int(replica.info("stats")["slave_expires_tracked_keys"])


def keys(replica):
    """How many there are in each database, hidden ones among them."""
    return {db: int(text.split(",")[0].split("=")[1])
            for db, text in replica.info("keyspace").items() if db.startswith("db")}


def named(command, number):
    """The command with keys of its own."""
    return [word + "-%d" % number if word in ("own", "from", "plain", "far") else word for word in command]


@pytest.mark.parametrize("by", ["ours", "redis"])
def test_each_way_to_an_expiry(make_server, make_replica, by):
    primary = make_server(FOREVER)
    replica = make_replica(by, primary)
    left = 0
    with primary.connect() as p, replica.connect() as r:
        p.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        r.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        for number in range(len(WAYS)):
            p.ok(*named(["SET", "plain", "1"], number))
            p.ok(*named(["SET", "far", "1", "EX", 1000], number))
        p.ok("SET", "due", "1", "PX", 1)
        assert p.call("WAIT", 1, 0) == 1
        for number, (stay, noted, commands) in enumerate(WAYS):
            before = tracked(replica)
            r.pipeline([named(command, number) for command in commands])
            # Redis counts a name in two databases once.
            assert tracked(replica) - before in (noted, noted + (["MOVE"] == commands[-1][:1])), commands
            left += stay
        r.ok("DEBUG", "SET-ACTIVE-EXPIRE", "1")
        eventually(lambda: keys(replica) == {"db0": left + 1}, "removed")
        eventually(lambda: tracked(replica) == 0, "forgotten")
        assert r.call("GET", "due") is None


@pytest.mark.parametrize("by", ["ours", "redis"])
def test_what_is_told_of_it(make_server, make_replica, by):
    """The event, the counter, the log; and replicas behind this one are told nothing."""
    primary = make_server(FOREVER)
    replica = make_replica(by, primary)
    last = make_server()
    follow(last, replica)
    with primary.connect() as p, replica.connect() as r, replica.connect() as listener, \
            last.connect() as behind:
        p.ok("SET", "k", "1")
        assert p.call("WAIT", 1, 0) == 1
        listener.call("SUBSCRIBE", "__keyevent@0__:expired")
        eventually(lambda: behind.call("GET", "k") == b"1", "told")
        offset = replication(replica)["master_repl_offset"]
        behind.ok("CONFIG", "SET", "replica-read-only", "no")
        behind.ok("SET", "own", "here")
        r.ok("SET", "own", "1", "PX", 50)
        assert listener.read() == [b"message", b"__keyevent@0__:expired", b"own"]
        assert replica.info("stats")["expired_keys"] == "1"
        assert behind.call("GET", "own") == b"here"
        if by == "ours":  # a ping may have come from the primary
            assert int(replication(replica)["master_repl_offset"]) - int(offset) < 100
        eventually(lambda: log_is_whole(replica), "log")
        r.ok("REPLICAOF", "NO", "ONE")
        r.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        r.ok("DEBUG", "LOADAOF")
        assert r.call("DBSIZE") == 1


@pytest.mark.parametrize("by", ["ours", "redis"])
def test_promotion_and_back(make_server, make_replica, by):
    """What was noted as a replica is removed by the primary that it becomes, and by the replica that
    it is again."""
    primary = make_server(FOREVER)
    replica = make_replica(by, primary)
    with primary.connect() as p, replica.connect() as r:
        r.ok("SET", "a", "1", "PX", 100)
        r.ok("REPLICAOF", "NO", "ONE")
        r.ok("SET", "b", "1", "PX", 100)
        eventually(lambda: r.call("DBSIZE") == 0, "removed by a primary")
        p.ok("SET", "c", "1")
        follow(replica, primary)
        check_equal(primary, replica)
        r.ok("SET", "d", "1", "PX", 100)
        r.ok("CONFIG", "SET", "replica-read-only", "yes")
        eventually(lambda: r.call("DBSIZE") == 1 and tracked(replica) == 0, "removed by a replica")


@pytest.mark.parametrize("load", ["disabled", "swapdb"])
def test_full_transfer_forgets(make_server, make_replica, load):
    primary = make_server(FOREVER)
    replica = make_replica("ours", primary, **{"repl-diskless-load": load})
    with primary.connect() as p, replica.connect() as r:
        p.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        r.ok("SET", "k", "1", "EX", 1000)
        r.ok("SELECT", 3)
        r.ok("SET", "k", "1", "EX", 1000)
        assert tracked(replica) == 2
        r.ok("REPLICAOF", "NO", "ONE")
        r.ok("SET", "other", "history")
        p.ok("SET", "k", "2", "PX", 50)
        follow(replica, primary)
        assert tracked(replica) == 0
        assert r.call("SELECT", 0) == b"OK"
        eventually(lambda: r.call("GET", "k") is None, "hidden")
        assert keys(replica) == {"db0": 1}  # it is the primary's


def test_names_are_forgotten(make_server, make_replica):
    """FLUSHDB, SWAPDB; a key that has no expiry any more; one to which the primary gave another."""
    primary = make_server(FOREVER)
    replica = make_replica("ours", primary, databases="100")
    with primary.connect() as p, replica.connect() as r:
        p.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        r.ok("SET", "k", "1", "EX", 1000)
        r.ok("FLUSHDB")
        assert tracked(replica) == 0
        r.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")  # all are to be there when they are counted
        for db in 0, 99:
            r.ok("SELECT", db)
            r.ok("SET", "k", "1", "EX", 1000)
            r.ok("SET", "other%d" % db, "1", "PX", 100)
        assert tracked(replica) == 4
        r.ok("SWAPDB", 0, 99)
        r.ok("DEBUG", "SET-ACTIVE-EXPIRE", "1")
        eventually(lambda: keys(replica) == {"db0": 1, "db99": 1}, "found where they are")
        assert r.call("PERSIST", "k") == 1
        eventually(lambda: tracked(replica) == 1, "no expiry")
        p.ok("SET", "k", "1", "PX", 50)
        assert p.call("WAIT", 1, 0) == 1
        assert tracked(replica) == 0
        r.ok("SELECT", 0)
        eventually(lambda: r.call("GET", "k") is None, "hidden")
        assert keys(replica)["db0"] == 1
        r.ok("FLUSHALL")
        assert tracked(replica) == 0


MEMBERS = {
    "EXPIREMEMBER": [["HSET", "h", "f", "1", "g", "2"], ["EXPIREMEMBER", "h", "f", 30, "ms"]],
    "set": [["SADD", "h", "f", "g"], ["EXPIREMEMBER", "h", "f", 30, "ms"]],
    "sorted set": [["ZADD", "h", 1, "f", 2, "g"], ["EXPIREMEMBER", "h", "f", 30, "ms"]],
    "HPEXPIRE": [["HSET", "h", "f", "1", "g", "2"], ["HPEXPIRE", "h", 30, "FIELDS", 1, "f"]],
    "COPY": [["HSET", "x", "f", "1", "g", "2"], ["EXPIREMEMBER", "x", "f", 30, "ms"],
             ["COPY", "x", "h"]],
    "RENAME": [["HSET", "x", "f", "1", "g", "2"], ["EXPIREMEMBER", "x", "f", 30, "ms"],
               ["RENAME", "x", "h"]],
}


def test_members(make_server, make_replica):
    """Members with deadlines go without a reader; the primary's stay with the primary's keys."""
    primary = make_server(FOREVER)
    replica = make_replica("ours", primary)
    with primary.connect() as p, replica.connect() as r:
        p.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        for kind, commands in MEMBERS.items():
            p.ok("FLUSHALL")
            p.call("HSET", "theirs", "f", "1", "g", "1")
            p.call("EXPIREMEMBER", "theirs", "f", 1, "ms")
            assert p.call("WAIT", 1, 0) == 1
            before = int(replica.info("stats")["expired_subkeys"])
            r.pipeline(commands)  # in one turn, or the member might be gone before it is copied
            gone = 2 if kind == "COPY" else 1
            eventually(lambda n=before + gone: int(replica.info("stats")["expired_subkeys"]) == n, kind)
            eventually(lambda: tracked(replica) == 0, kind)
            assert keys(replica)["db0"] == 3 if kind == "COPY" else 2
