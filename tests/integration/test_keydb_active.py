"""A KeyDB node with `active-replica yes` as our primary, played by the test (lib/keydb.py): its envelopes, whatever they
have within them, and what it does not tell."""

import json
import re
import time

import pytest

from integration.test_rdb import sample
from lib.active import AT_ONCE
from lib.bounds import eventually, scaled
from lib.keydb import Author, Node, client_of, now_ms, pair
from lib.replica import MODERN
from lib.replication import everything, replication
from lib.resp import Error, encode

pytestmark = [pytest.mark.any_threads, pytest.mark.usefixtures("ours_only")]

OURS = MODERN + ("capa", "keydb-rreplay")


@pytest.fixture
def make_keydb(make_oracle):
    """A played node, with an empty data set unless somebody writes to it."""
    nodes = []

    def make():
        nodes.append(Node(make_oracle({"save": "", "appendonly": "no"})))
        return nodes[-1]
    yield make
    for node in nodes:
        node.close()


def in_step(server, node):
    about = replication(server)
    return about["master_link_status"] == "up" and int(about["master_repl_offset"]) == node.offset()


def settle(server, node):
    eventually(lambda: in_step(server, node), "in step")


def heard(server):
    """Bytes that came by the link."""
    return int(server.info("stats")["total_net_repl_input_bytes"])


def get(server, *words):
    with server.connect() as c:
        return c.call(*words)


@pytest.fixture
def followed(make_keydb, make_server):
    """A node and a server of ours that follows it."""
    node = make_keydb()
    server = make_server({"replicaof": ["127.0.0.1", str(node.port)], **AT_ONCE})
    settle(server, node)
    return node, server


# ---- what it tells

def test_its_data_set_and_its_writes(make_keydb, make_server):
    node = make_keydb()
    node.run("SET", "before", "1")
    node.run("HSET", "h", "f", "v", db=3)
    server = make_server({"replicaof": ["127.0.0.1", str(node.port)]})
    settle(server, node)
    node.run("INCR", "before")
    node.run("RPUSH", "l", "a", "b", db=3)
    node.run("SET", "large", "x" * 200000, db=15)
    node.ping()
    node.run("SADD", "s", "m")
    settle(server, node)
    assert everything(server) == everything(node.server)
    assert node.asked[0][:2] == [b"PSYNC", b"?"]
    assert "is an active replica of KeyDB" in server.output()


def test_the_file_that_it_writes(make_keydb, make_server):
    """With the fields that only it has: mvcc-tstamp, repl-masters, expiries of members."""
    node = make_keydb()
    data, wanted = sample("keydb-6.3.4-active.rdb"), json.loads(sample("keydb-6.3.4-active.json"))["keys"]
    node.data_set = lambda: data
    server = make_server({"replicaof": ["127.0.0.1", str(node.port)]})
    settle(server, node)
    found = set()
    with server.connect() as c:
        for db in range(16):
            c.ok("SELECT", db)
            found |= {"%d:%s" % (db, key.decode("latin-1")) for key in c.call("KEYS", "*")}
    assert found == set(wanted)
    node.say(["APPEND", "from-the-stream", "1"])
    settle(server, node)
    assert get(server, "GET", "from-the-stream") == b"1"


def test_it_is_told_what_we_have(followed):
    node, server = followed
    node.say(["REPLCONF", "GETACK", "*"])
    eventually(lambda: [r.acked for r in node.replicas] == [node.offset()], "what we have", 0.9)
    assert b"READONLY" in get(server, "SET", "k", "v")


def test_what_it_passes_on(followed):
    """A write of another node, and of one behind that: the one within all envelopes is run, in its database."""
    node, server = followed
    near, far = Author(), Author()
    node.say(near.envelope(["SET", "near", "1"], 2), 2)
    node.say(near.envelope(far.envelope(["SET", "far", "1"], 5), 5), 5)
    nested = ["INCR", "deep"]
    for _ in range(63):
        nested = Author().envelope(nested, 7)
    node.say(nested, 7)
    settle(server, node)
    assert {place: found[0] for place, found in everything(server).items()}.keys() == \
        {(2, b"near"), (5, b"far"), (7, b"deep")}


def test_what_came_before_is_not_run_again(followed):
    """By whatever way it comes: a node is sent a write by its author and by others, who passed it on."""
    node, server = followed
    far, near = Author(), Author()
    first, second = far.envelope(["INCR", "n"]), far.envelope(["INCR", "n"])
    for message in (first, second, near.envelope(first), first, near.envelope(near.envelope(second))):
        node.say(message)
    number = node.number()
    for _ in range(2):
        node.say(["INCR", "own"], number=number)
    settle(server, node)
    assert (get(server, "GET", "n"), get(server, "GET", "own")) == (b"2", b"1")


def test_another_data_set_is_another_beginning(followed):
    """A node may have less of a third one's writes than the one that was followed before."""
    node, server = followed
    far = Author()
    old, new = far.number(), far.number()
    node.say(far.envelope(["INCR", "n"], number=new))
    settle(server, node)
    node.history = node.history[::-1]
    node.cut()
    eventually(lambda: len(node.asked) == 2, "another link")
    settle(server, node)
    assert get(server, "EXISTS", "n") == 0
    node.say(far.envelope(["INCR", "n"], number=old))
    settle(server, node)
    assert get(server, "GET", "n") == b"1"


# ---- transactions

def test_transactions_of_several_nodes_at_once(followed):
    node, server = followed
    far = Author()

    begun = heard(server)

    def passed(*command, db=0):
        node.say(far.envelope(command, db), db)
    passed("MULTI")
    passed("INCR", "far")
    node.run("INCR", "own")
    node.say(["MULTI"])
    node.run("INCR", "own")
    passed("RPUSH", "far:list", "a", db=4)
    node.say(["EXEC"])
    node.run("SET", "between", "1")
    eventually(lambda: heard(server) - begun >= len(node.stream), "all has come")
    assert everything(server) == {} and int(replication(server)["master_repl_offset"]) == node.begin
    passed("INCR", "far")
    passed("EXEC")
    settle(server, node)
    assert get(server, "MGET", "far", "own", "between") == [b"2", b"2", b"1"]
    with server.connect() as c:
        c.ok("SELECT", 4)
        assert c.call("LRANGE", "far:list", 0, -1) == [b"a"]


def test_a_link_that_breaks_amid_a_transaction(followed):
    node, server = followed
    far = Author()
    node.run("INCR", "n")
    settle(server, node)
    before = node.offset()
    node.say(far.envelope(["MULTI"]))
    node.run("INCR", "n")
    node.say(far.envelope(["INCR", "n"]))
    node.cut()
    eventually(lambda: len(node.asked) == 2, "the link is made again")
    assert node.asked[1] == [b"PSYNC", node.history, b"%d" % (before + 1)]
    node.say(far.envelope(["EXEC"]))
    settle(server, node)
    assert get(server, "GET", "n") == b"3"


def test_an_end_without_a_beginning(followed):
    """It was sent the data set amid a transaction of another node: then what of it had been queued is missing here."""
    node, server = followed
    far = Author()
    node.run("SET", "k", "v")
    node.say(far.envelope(["SET", "late", "1"]))
    node.own.ok("SET", "late", "1")
    node.own.ok("SET", "early", "1")
    node.say(far.envelope(["EXEC"]))
    eventually(lambda: len(node.asked) == 2, "everything is fetched anew")
    assert node.asked[1][:2] == [b"PSYNC", b"?"]
    settle(server, node)
    assert everything(server) == everything(node.server)


@pytest.mark.long
def test_a_transaction_that_never_ends(followed):
    """Its node has died, and is another one when it comes back; if it is not, everything is fetched anew."""
    node, server = followed
    far = Author()
    node.say(far.envelope(["MULTI"]))
    node.say(far.envelope(["INCR", "n"]))
    node.run("SET", "k", "v")
    deadline = time.monotonic() + scaled(60)
    while not in_step(server, node):
        assert time.monotonic() < deadline
        node.ping()
        time.sleep(1)
    assert "has not ended" in server.output() and len(node.asked) == 1
    assert get(server, "GET", "k") == b"v"
    node.say(far.envelope(["EXEC"]))
    eventually(lambda: len(node.asked) == 2, "everything is fetched anew")
    settle(server, node)
    assert everything(server) == everything(node.server)


# ---- what cannot be followed exactly

@pytest.mark.parametrize("words,why", [
    ([b"RREPLAY", b"no-uuid", encode("SET", "k", "v"), b"0", b"1"], "without a UUID"),
    ([b"RREPLAY", b"01234567-89ab-cdef-0123-456789abcdef", b"SET k v\r\n", b"0", b"1"], "without a command"),
    ([b"RREPLAY", b"01234567-89ab-cdef-0123-456789abcdef", encode("SET", "k", "v")[:-3], b"0", b"1"], "without a whole"),
    ([b"RREPLAY", b"01234567-89ab-cdef-0123-456789abcdef", encode("PING") * 2, b"0", b"1"], "more than a command"),
    ([b"RREPLAY", b"01234567-89ab-cdef-0123-456789abcdef", encode("PING"), b"16", b"1"], "see 'databases'"),
    ([b"RREPLAY", b"01234567-89ab-cdef-0123-456789abcdef", encode("PING"), b"0", b"x"], "mvcc"),
    ([b"RREPLAY", b"01234567-89ab-cdef-0123-456789abcdef"], "so many words"),
    ([b"KEYDB.MVCCRESTORE", b"k", b"1", b"-1", b"x"], "merges another one's"),
], ids=lambda x: x if isinstance(x, str) else "")
def test_what_is_not_understood_has_everything_fetched_anew(followed, words, why):
    node, server = followed
    node.run("SET", "k", "1")
    with node.lock:
        node.own.ok("SET", "k", "2")
        message = encode(*words) if words[0] == b"RREPLAY" else node.envelope(words)
        node.stream += message
        for replica in node.replicas:
            replica.todo.put(message)
    eventually(lambda: len(node.asked) == 2, "another link")
    assert node.asked[1][:2] == [b"PSYNC", b"?"]
    settle(server, node)
    assert get(server, "GET", "k") == b"2" and re.search("followed any further: .*" + why, server.output())


def test_too_many_envelopes(followed):
    node, server = followed
    nested = ["INCR", "deep"]
    for _ in range(65):
        nested = Author().envelope(nested)
    node.say(nested)
    eventually(lambda: "too many envelopes" in server.output(), "the reason")


# ---- time

def test_what_expires_goes_by_its_clock(followed):
    """It does not tell. A minute behind our clock: what is due here is not yet due there."""
    node, server = followed
    late_ms = now_ms() - 60000
    node.clock_ms = lambda: late_ms
    for key in ("kept", "list", "gone"):
        node.say(["RPUSH", key, "a"])
        node.say(["PEXPIREAT", key, late_ms + 1000])
    node.say(["PERSIST", "kept"])
    settle(server, node)
    assert get(server, "LRANGE", "kept", 0, -1) == [b"a"]
    assert get(server, "EXISTS", "list", "gone") == 0  # by our clock they are due: hidden
    assert get(server, "DBSIZE") == 3
    late_ms += 2000
    node.say(["RPUSH", "list", "b"])  # there it was away by then
    settle(server, node)
    assert get(server, "LRANGE", "list", 0, -1) == [b"b"] and get(server, "PTTL", "list") == -1
    eventually(lambda: get(server, "DBSIZE") == 2, "what was due there is swept here")


def test_members_that_expire(followed):
    node, server = followed
    at_ms = now_ms()
    node.clock_ms = lambda: at_ms  # it stands, so that the time is not over before it is told
    node.say(["SADD", "s", "a", "b"])
    node.say(["PEXPIREMEMBERAT", "s", "a", at_ms + 300])
    settle(server, node)
    node.clock_ms = now_ms

    def swept():
        node.ping()  # so late it is there
        return int(server.info("stats")["expired_subkeys"]) == 1
    eventually(swept, "the member goes")
    assert get(server, "SMEMBERS", "s") == [b"b"]


def test_a_transaction_happens_at_one_time(followed):
    """When it began there, its key was there."""
    node, server = followed
    at_ms = now_ms()
    node.clock_ms = lambda: at_ms
    node.say(["RPUSH", "l", "a"])
    node.say(["PEXPIREAT", "l", at_ms + 100])
    node.say(["MULTI"])
    at_ms += 1000
    node.say(["PERSIST", "l"])
    node.say(["RPUSH", "l", "b"])
    node.say(["EXEC"])
    settle(server, node)
    assert get(server, "LRANGE", "l", 0, -1) == [b"a", b"b"]


# ---- our own replicas, files, another role

def test_our_replicas_follow_and_others_are_refused(followed, make_server, play):
    node, server = followed
    behind = make_server({"replicaof": ["127.0.0.1", str(server.port)]})
    far = Author()
    node.run("SET", "k", "v")
    node.say(far.envelope(["MULTI"]))
    node.run("INCR", "n")
    node.say(far.envelope(["INCR", "n"]))
    node.say(far.envelope(["EXEC"]))
    settle(server, node)
    eventually(lambda: replication(behind)["master_repl_offset"] == replication(server)["master_repl_offset"] and
               replication(behind)["master_link_status"] == "up", "the replica of ours")
    assert everything(behind) == everything(server) != {}
    other = play(server, MODERN)
    other.c.send("PSYNC", "?", "-1")
    assert other.line().startswith(b"-NOMASTERLINK Can't SYNC while an active replica of KeyDB")
    ours = play(server, OURS)
    ours.full()


def test_a_restart_goes_on_where_the_files_end(make_keydb, make_server):
    node = make_keydb()
    server = make_server({"replicaof": ["127.0.0.1", str(node.port)], "appendonly": "yes"},
                         files=["appendonlydir"])
    settle(server, node)
    for _ in range(10):
        node.run("INCR", "n")
    settle(server, node)
    server.stop()
    node.run("INCR", "n")
    server.start()
    settle(server, node)
    assert get(server, "GET", "n") == b"11" and node.asked[-1][1] == node.history


def test_an_active_node_does_not_pull_from_it(make_keydb, make_server):
    node = make_keydb()
    server = make_server({"active-replica": "yes", "replicaof": ["127.0.0.1", str(node.port)]}, files=["active-node"])
    eventually(lambda: "can be followed with 'active-replica no'" in server.output(), "the reason")
    assert node.asked == []


def test_cut_over_to_an_active_pair(followed, make_server):
    node, first = followed
    for i in range(100):
        node.run("INCR", "n%d" % (i % 7), db=i % 3)
    settle(first, node)
    with first.connect() as c:
        c.ok("REPLICAOF", "NO", "ONE")
        c.ok("CONFIG", "SET", "active-replica", "yes")
    first.expected_files.add("active-node")
    node.close()
    second = make_server({"active-replica": "yes", "replicaof": ["127.0.0.1", str(first.port)]}, files=["active-node"])
    with first.connect() as c:
        c.ok("REPLICAOF", "127.0.0.1", second.port)
        assert c.call("SET", "ours", "1") == b"OK"
        assert c.call("WAIT", 1, 20000) == 1
    assert get(second, "INCR", "ours") == 2
    assert get(second, "WAIT", 1, 20000) == 1
    eventually(lambda: get(first, "GET", "ours") == b"2", "it comes")  # it was another client's WAIT
    eventually(lambda: everything(first) == everything(second), "equal content")
    found = {place: v for place, v in everything(first).items() if place[1] != b"ours"}
    assert found == everything(node.server)


def test_a_pair_passes_on_and_we_follow_one_of_them(make_keydb, make_server):
    """Clients write to both; each write comes to us once, by the one that we follow."""
    first, second = make_keydb(), make_keydb()
    pair(first, second)
    server = make_server({"replicaof": ["127.0.0.1", str(first.port)]})
    settle(server, first)
    with client_of(first) as a, client_of(second) as b:
        for i in range(200):
            assert isinstance(a.call("INCR", "n"), int) and isinstance(b.call("INCR", "n"), int)
            assert not isinstance(b.call("RPUSH", "l%d" % (i % 5), i), Error)
    eventually(lambda: everything(server) == everything(first.server) == everything(second.server), "equal content")
    assert get(server, "GET", "n") == b"400"
