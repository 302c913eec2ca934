"""The append-only file of a replica over a full sync: whatever moment a process is killed at, the next
start finds the old data set or the new one, whole, and a primary that is there is followed."""

import os

import pytest

from lib.bounds import eventually
from lib.primary import HandMadePrimary
from lib.replication import check_equal, everything, replication

NOW = {"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "1"}
WAYS = ["disabled", "swapdb"]
KEYS = 2000
LIBRARY = "#!lua name=old\nredis.register_function{function_name='old', flags={'no-writes'}, " \
    "callback=function() return 'old' end}"


@pytest.fixture
def hand_made():
    made = HandMadePrimary()
    yield made
    made.close()


@pytest.fixture
def primary(make_server):
    server = make_server(NOW)
    with server.connect() as c:
        c.ok("DEBUG", "POPULATE", KEYS, "new")
        c.ok("SET", "both", "new")
        c.ok("SET", "counter", 10)
    return server


@pytest.fixture
def replica(make_server):
    """make(options): a server with an old data set in its append-only file."""
    def make(**options):
        words = {"appendonly": "yes"}
        words.update({name.replace("_", "-"): value for name, value in options.items()})
        server = make_server(words, files=["appendonlydir"])
        with server.connect() as c:
            c.call("FUNCTION", "LOAD", LIBRARY)
            c.ok("SET", "old", "1")
            c.ok("SET", "both", "old")
            c.ok("SELECT", 3)
            c.call("RPUSH", "list", "a", "b")
        return server
    return make


def about_log(server):
    return server.info("persistence")


def is_rewritten(server):
    about = about_log(server)
    return about["aof_rewrite_in_progress"] == "0" and about["aof_rewrite_scheduled"] == "0"


def is_up(server):
    return replication(server).get("master_link_status") == "up"


def follow(server, port):
    with server.connect() as c:
        c.ok("REPLICAOF", "127.0.0.1", port)


def kill(server):
    server.kill_all()
    for name in os.listdir(server.directory):
        if name.startswith("temp-"):  # what a process that was killed leaves
            os.unlink(server.file(name))


def check_start_is_old(server, old):
    """It was killed: what a start without a primary finds."""
    server.options["rdb-key-save-delay"] = "0"
    server.options["key-load-delay"] = "0"
    server.start()
    assert everything(server) == old
    with server.connect() as c:
        assert c.call("FCALL", "old", 0) == b"old"


def check_follows(server, primary, old):
    """And it goes on, with what comes after: the new data set is in its files at last."""
    follow(server, primary.port)
    check_equal(primary, server)
    eventually(lambda: is_rewritten(server), "rewritten", 30)
    new = everything(server)
    assert new != old and len(new) >= KEYS
    kill(server)
    server.start()
    assert everything(server) == new


@pytest.mark.parametrize("way", WAYS)
def test_killed_while_rewriting(make_server, primary, replica, way):
    """The full sync is over and the stream goes on, but there is no base of it yet."""
    server = replica(repl_diskless_load=way, rdb_key_save_delay="20000")
    old = everything(server)
    follow(server, primary.port)
    eventually(lambda: is_up(server), "link", 30)
    with primary.connect() as p, server.connect() as r:
        p.call("INCR", "counter")
        p.call("RPUSH", "later", "x")
        eventually(lambda: r.call("GET", "counter") == b"11", "the stream", 30)
    assert about_log(server)["aof_rewrite_in_progress"] == "1"
    kill(server)
    check_start_is_old(server, old)
    check_follows(server, primary, old)


@pytest.mark.parametrize("way", WAYS)
def test_ended_while_rewriting(make_server, primary, replica, way):
    """With an orderly end the base is written first."""
    server = replica(repl_diskless_load=way, rdb_key_save_delay="20000")
    old = everything(server)
    follow(server, primary.port)
    eventually(lambda: is_up(server), "link", 30)
    with primary.connect() as p, server.connect() as r:
        p.call("INCR", "counter")
        eventually(lambda: r.call("GET", "counter") == b"11", "the stream", 30)
    assert about_log(server)["aof_rewrite_in_progress"] == "1"
    new = everything(server)
    server.stop()
    server.options["rdb-key-save-delay"] = "0"
    server.start()
    assert everything(server) == new
    check_follows(server, primary, old)


@pytest.mark.parametrize("way", WAYS)
def test_killed_while_loading(make_server, primary, replica, way):
    server = replica(repl_diskless_load=way, key_load_delay="5000")
    old = everything(server)
    follow(server, primary.port)
    eventually(lambda: about_log(server)["loading"] == "1", "loading", 30)
    kill(server)
    check_start_is_old(server, old)
    check_follows(server, primary, old)


@pytest.mark.parametrize("way", WAYS)
def test_killed_at_once(make_server, primary, replica, way):
    """With a rewrite of the old data set on its way when the new one comes, and at any moment."""
    server = replica(repl_diskless_load=way)
    old = everything(server)
    for n in range(4):
        with server.connect() as c:
            c.call("BGREWRITEAOF")
        follow(server, primary.port)
        if n % 2:
            eventually(lambda: is_up(server), "link", 30)
        kill(server)
        server.start()
        found = everything(server)
        if found != old:
            assert len(found) == KEYS + 2
            break
    check_follows(server, primary, old)


def broken_sync(hand_made, server):
    """A data set that breaks off: what was there is gone then."""
    follow(server, hand_made.port)
    transfer = hand_made.transfer()
    transfer.say()
    transfer.send(b"$20\r\nREDIS0010\xfe\x00\x00\x01k\x01v\x63\x63\x63\x63")
    with server.connect() as c:
        eventually(lambda: c.call("DBSIZE") == 0, "gone", 30)
    hand_made.transfer()
    eventually(lambda: "cannot be loaded" in server.output(), "told", 30)


def test_killed_after_a_broken_sync(make_server, hand_made, replica):
    server = replica()
    old = everything(server)
    broken_sync(hand_made, server)
    with server.connect() as c:
        c.call("BGREWRITEAOF")
    kill(server)
    check_start_is_old(server, old)


def test_promoted_after_a_broken_sync(make_server, hand_made, replica):
    """From then on what there is counts, and is in the files."""
    server = replica()
    broken_sync(hand_made, server)
    with server.connect() as c:
        c.ok("REPLICAOF", "NO", "ONE")
        c.ok("SET", "mine", "1")
        eventually(lambda: int(about_log(server)["aof_rewrites"]) > 0 and is_rewritten(server),
                   "rewritten", 30)
        c.ok("SET", "more", "1")
    found = everything(server)
    kill(server)
    server.start()
    assert everything(server) == found and len(found) == 2


def test_turned_on_while_loading(make_server, primary):
    """There is no base before the whole data set is there."""
    server = make_server({"key-load-delay": "4000"}, files=["appendonlydir"])
    follow(server, primary.port)
    eventually(lambda: about_log(server)["loading"] == "1", "loading", 30)
    with server.connect() as c:
        c.ok("CONFIG", "SET", "appendonly", "yes")
    assert about_log(server)["aof_rewrite_in_progress"] == "0"
    assert not os.path.exists(server.file("appendonlydir"))
    eventually(lambda: is_up(server), "link", 60)
    eventually(lambda: int(about_log(server)["aof_rewrites"]) > 0 and is_rewritten(server), "rewritten", 30)
    found = everything(server)
    server.options["appendonly"] = "yes"
    kill(server)
    server.start()
    assert everything(server) == found and len(found) == KEYS + 2
