"""Client-side caching: CLIENT TRACKING and its invalidations.  Sequences beside the oracle:
differential/test_generated_tracking.py; staleness: histories/test_tracking.py."""

import pytest

from lib.bounds import eventually
from lib.pubsub import frame as frame_of
from lib.resp import Error, Push

pytestmark = pytest.mark.one_thread("invalidations do not cross threads")

CLIENTS = 8  # more than threads: some share one


def invalidations(client):
    """What has come until a PING is answered, pushes only.  A thread looks for changes before it
    answers, so all that was changed before the call is there."""
    found = []
    client.send("PING")
    while True:
        frame = frame_of(client)
        if not isinstance(frame, Push):
            assert frame == b"PONG"
            return found
        found.append(list(frame))


def gone(*keys):
    return [[b"invalidate", [k.encode() if isinstance(k, str) else k]] for k in keys]


EVERYTHING = [[b"invalidate", None]]


def info(client, section="everything"):
    text = client.call("INFO", section)
    return dict(line.split(":", 1) for line in bytes(text).decode().splitlines() if ":" in line)


@pytest.fixture
def trackers(connect):
    clients = [connect(3) for _ in range(CLIENTS)]
    for client in clients:
        client.ok("CLIENT", "TRACKING", "ON")
    return clients


def test_a_key_that_was_read_is_invalidated_once(trackers, client):
    for tracker in trackers:
        assert tracker.call("GET", "k") is None
    client.ok("SET", "k", "1")
    for tracker in trackers:
        assert invalidations(tracker) == gone("k")
    client.ok("SET", "k", "2")
    for tracker in trackers:
        assert invalidations(tracker) == []


@pytest.mark.parametrize("change", [
    ["SET", "k", "2"], ["DEL", "k"], ["EXPIRE", "k", "100"], ["RENAME", "k", "l"],
    ["APPEND", "k", "x"], ["COPY", "other", "k", "REPLACE"], ["MSET", "a", "1", "k", "2"],
    ["RENAME", "other", "k"], ["GETDEL", "k"], ["SETRANGE", "k", "1", "x"]], ids=" ".join)
def test_changes(trackers, client, change):
    client.ok("MSET", "k", "1", "other", "2")
    for tracker in trackers:
        tracker.call("MGET", "k", "nothing")
    client.call(*change)
    for tracker in trackers:
        assert invalidations(tracker) == gone("k")


def test_what_does_not_change_tells_nothing(trackers, client):
    tracker = trackers[0]
    tracker.call("GET", "k")
    assert client.call("DEL", "k") == 0
    client.ok("SET", "unread", "1")
    assert invalidations(tracker) == []


def test_own_changes_come_behind_the_reply(trackers):
    tracker = trackers[0]
    tracker.call("GET", "k")
    tracker.send_raw(b"GET k\r\nSET k 1\r\nGET k\r\n")
    assert [frame_of(tracker) for _ in range(4)] == [
        None, b"OK", [b"invalidate", [b"k"]], b"1"]
    assert invalidations(tracker) == []


def test_transactions_tell_behind_exec(trackers, client):
    tracker = trackers[0]
    tracker.call("GET", "k")
    tracker.send_raw(b"MULTI\r\nSET k 1\r\nGET k\r\nSET k 2\r\nGET j\r\nEXEC\r\n")
    frames = [frame_of(tracker) for _ in range(8)]
    assert frames[5] == [b"OK", b"1", b"OK", None]
    assert [list(f) for f in frames[6:]] == gone("k", "k")
    client.ok("MSET", "j", "1", "k", "1")
    assert invalidations(tracker) == gone("j")


def test_databases_are_one(trackers, client):
    trackers[0].call("GET", "k")
    client.ok("SELECT", "1")
    client.ok("SET", "k", "1")
    assert invalidations(trackers[0]) == gone("k")


@pytest.mark.parametrize("command", [["FLUSHALL"], ["FLUSHDB"], ["FLUSHALL", "ASYNC"],
                                     ["SWAPDB", "0", "1"]], ids=" ".join)
def test_flushes(trackers, connect, client, command):
    broadcast = connect(3)
    broadcast.ok("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "z")
    for number in range(4):
        client.ok("SELECT", number)
        client.ok("SET", "k", "1")
    client.ok("SELECT", "0")
    trackers[0].call("GET", "k")
    client.ok(*command)
    for tracker in trackers + [broadcast]:
        assert invalidations(tracker) == EVERYTHING
    client.ok("SET", "k", "2")
    assert invalidations(trackers[0]) == []


def test_a_flush_of_nothing_tells_and_the_own_one_comes_behind_the_reply(trackers):
    trackers[0].send("FLUSHALL")
    assert [frame_of(trackers[0]), frame_of(trackers[0])] == [b"OK", [b"invalidate", None]]


def test_expiry(trackers, client):
    """Whether a reader or the sweep finds it."""
    tracker = trackers[0]
    # In one turn, or on a slow machine the key might be gone before it is read.
    assert tracker.pipeline([["SET", "k", "1", "PX", "40"], ["GET", "k"]]) == [b"OK", b"1"]
    got = []
    eventually(lambda: got.extend(invalidations(tracker)) or got, "the invalidation")
    assert got == gone("k")
    assert client.call("GET", "k") is None


@pytest.mark.parametrize("mode", [[], ["BCAST"]], ids=["default", "bcast"])
def test_noloop(trackers, client, mode):
    one, other = trackers[:2]
    for tracker in (one, other):
        tracker.ok("CLIENT", "TRACKING", "OFF")
        tracker.ok("CLIENT", "TRACKING", "ON", "NOLOOP", *mode)
        tracker.call("GET", "k")
    one.ok("SET", "k", "1")
    assert invalidations(one) == []
    assert invalidations(other) == gone("k")
    for tracker in (one, other):
        tracker.call("GET", "k")
    client.ok("SET", "k", "2")
    assert invalidations(one) == invalidations(other) == gone("k")


def test_optin_and_optout(trackers, client):
    tracker = trackers[0]
    for mode, word, tracked in (("OPTIN", "YES", ["a"]), ("OPTOUT", "NO", ["b", "c"])):
        tracker.ok("CLIENT", "TRACKING", "OFF")
        tracker.ok("CLIENT", "TRACKING", "ON", mode)
        tracker.ok("CLIENT", "CACHING", word)
        flags = tracker.call("CLIENT", "TRACKINGINFO").get(b"flags")
        assert sorted(flags) == sorted([b"on", mode.lower().encode(),
                                        b"caching-" + word.lower().encode()])
        for key in "abc":
            tracker.call("GET", key)
        client.ok("MSET", "a", "1", "b", "1", "c", "1")
        assert invalidations(tracker) == gone(*tracked)


def test_caching_lasts_for_a_transaction_and_no_error(trackers, client):
    tracker = trackers[0]
    tracker.ok("CLIENT", "TRACKING", "ON", "OPTIN")
    tracker.send_raw(b"CLIENT CACHING YES\r\nMULTI\r\nGET a\r\nGET b\r\nEXEC\r\nGET c\r\n"
                     b"CLIENT CACHING YES\r\nNOPE\r\nGET d\r\nCLIENT CACHING YES\r\nGET\r\nGET e\r\n")
    assert len([frame_of(tracker) for _ in range(12)]) == 12
    client.ok("MSET", "a", "1", "b", "1", "c", "1", "d", "1", "e", "1")
    assert invalidations(tracker) == gone("a", "b")


def test_broadcast_tells_the_keys_of_a_prefix_together(connect, client):
    listeners = [connect(3) for _ in range(CLIENTS)]
    for listener in listeners:
        listener.ok("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "foo", "PREFIX", "bar:")
    client.ok("MSET", "foo2", "1", "foo1", "1", "bar:", "1", "baz", "1", "foo2", "3", "fo", "1")
    for listener in listeners:
        assert sorted(invalidations(listener)) == [
            [b"invalidate", [b"bar:"]], [b"invalidate", [b"foo1", b"foo2"]]]
    figures = info(client)
    assert figures["tracking_clients"] == str(CLIENTS)
    assert figures["tracking_total_prefixes"] == "2"
    for listener in listeners:
        listener.ok("CLIENT", "TRACKING", "OFF")
    assert info(client)["tracking_total_prefixes"] == "0"
    client.ok("SET", "foo", "1")
    assert all(invalidations(listener) == [] for listener in listeners)


def test_errors(connect):
    client = connect(3)
    overlap = b"ERR Prefix '%s' overlaps with %s prefix '%s'. Prefixes for a single client must " \
              b"not overlap."
    for words, error in (
            (["BCAST", "PREFIX", "a", "PREFIX", "ab"], overlap % (b"a", b"another provided", b"ab")),
            (["PREFIX", "a"], b"ERR PREFIX option requires BCAST mode to be enabled"),
            (["REDIRECT", "123456"], b"ERR The client ID you want redirect to does not exist"),
            (["OPTIN", "OPTOUT"], b"ERR You can't specify both OPTIN mode and OPTOUT mode"),
            (["BCAST", "OPTIN"], b"ERR OPTIN and OPTOUT are not compatible with BCAST"),
            (["BCAST", "PREFIX"], b"ERR syntax error"), (["NOPE"], b"ERR syntax error")):
        assert client.call("CLIENT", "TRACKING", "ON", *words) == Error(error)
        assert client.call("CLIENT", "GETREDIR") == -1
    only = b"ERR CLIENT CACHING can be called only when the client is in tracking mode with " \
           b"OPTIN or OPTOUT mode enabled"
    assert client.call("CLIENT", "CACHING", "YES") == Error(only)
    client.ok("CLIENT", "TRACKING", "ON")
    for word, mode in ((b"YES", b"OPTIN"), (b"NO", b"OPTOUT")):
        assert client.call("CLIENT", "CACHING", word) == Error(
            b"ERR CLIENT CACHING %s is only valid when tracking is enabled in %s mode." %
            (word, mode))
    client.ok("CLIENT", "TRACKING", "OFF")
    client.ok("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "b")
    assert client.call("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "") == Error(
        overlap % (b"", b"an existing", b"b"))
    assert b"switch BCAST mode" in client.call("CLIENT", "TRACKING", "ON")


# -- REDIRECT

@pytest.mark.parametrize("proto", [2, 3], ids=["resp2", "resp3"])
def test_redirect(connect, client, proto):
    for _ in range(CLIENTS):  # some pairs share a thread, some do not
        reader, listener = connect(2), connect(proto)
        number = listener.call("CLIENT", "ID")
        if proto == 2:
            listener.send("SUBSCRIBE", "__redis__:invalidate")
            frame_of(listener)
        reader.ok("CLIENT", "TRACKING", "ON", "REDIRECT", number)
        assert reader.call("CLIENT", "GETREDIR") == number
        reader.call("GET", "k")
        client.ok("SET", "k", "1")
        head = [b"message", b"__redis__:invalidate"] if proto == 2 else [b"invalidate"]
        assert list(frame_of(listener)) == head + [[b"k"]]
        client.ok("FLUSHALL")
        assert list(frame_of(listener)) == head + [None]
        assert reader.call("PING") == b"PONG"


def test_a_broken_redirection_is_told(connect, client):
    for _ in range(CLIENTS):
        reader, listener = connect(3), connect(3)
        number = listener.call("CLIENT", "ID")
        reader.ok("CLIENT", "TRACKING", "ON", "REDIRECT", number)
        reader.call("GET", "k")
        listener.close()
        eventually(lambda: b"id=%d " % number not in client.call("CLIENT", "LIST"), "the client has gone")
        client.ok("SET", "k", "1")
        assert invalidations(reader) == [[b"tracking-redir-broken", number]]
        assert b"broken_redirect" in reader.call("CLIENT", "TRACKINGINFO").get(b"flags")
        line = reader.call("CLIENT", "INFO")
        assert b"flags=tR " in line and b"redir=%d " % number in line


def test_resp2_without_redirect_is_told_nothing(connect, client):
    reader = connect(2)
    reader.ok("CLIENT", "TRACKING", "ON")
    reader.call("GET", "k")
    client.ok("SET", "k", "1")
    assert reader.call("GET", "k") == b"1"
    assert reader.call("CLIENT", "TRACKINGINFO") == [
        b"flags", [b"on"], b"redirect", 0, b"prefixes", []]


# -- life

def test_off_reset_and_leaving(trackers, connect, client):
    for tracker in trackers:
        tracker.call("MGET", "a", "b")
    # A thread counts what its clients have read when it has sent them their replies.
    eventually(lambda: info(client)["tracking_total_items"] == str(2 * CLIENTS), "the figure")
    assert info(client)["tracking_clients"] == str(CLIENTS)
    trackers[0].ok("CLIENT", "TRACKING", "OFF")
    trackers[1].call("RESET")
    trackers[1].hello(3)
    for leaving in trackers[2:5]:
        leaving.close()
    eventually(lambda: info(client)["tracking_clients"] == str(CLIENTS - 5), "the figure")
    client.ok("SET", "a", "1")
    for tracker in trackers[:2]:
        assert invalidations(tracker) == []
    for tracker in trackers[5:]:
        assert invalidations(tracker) == gone("a")
        tracker.close()
    eventually(lambda: info(client)["tracking_clients"] == "0", "the figure")
    trackers[0].close()
    trackers[1].close()
    eventually(lambda: info(client)["tracking_total_keys"] == "0", "the figure")
    eventually(lambda: info(client)["tracking_total_items"] == "0", "the figure")


def test_the_table_is_bounded(make_server):
    server = make_server({"tracking-table-max-keys": "10"})
    with server.connect(3) as tracker, server.connect() as client:
        tracker.ok("CLIENT", "TRACKING", "ON")
        for i in range(100):
            tracker.send("GET", "k%d" % i)
        told, replies = [], 0
        while replies < 100:
            frame = frame_of(tracker)
            if isinstance(frame, Push):
                told += frame[1]
            else:
                replies += 1
        told += [key for push in invalidations(tracker) for key in push[1]]
        assert len(told) == len(set(told)) == 90
        assert info(client)["tracking_total_keys"] == "10"
        client.ok("CONFIG", "SET", "tracking-table-max-keys", "3")
        eventually(lambda: info(client)["tracking_total_keys"] == "3", "the figure")
        assert len(invalidations(tracker)) == 7


def test_large_keys_and_many_of_them(trackers, client):
    tracker = trackers[0]
    keys = [bytes([65 + i % 26]) * size for i, size in enumerate(
        (0, 1, 7, 8, 9, 65000, 65536, 70000, 200000, 3))]
    tracker.call("MGET", *keys)
    many = ["m%d" % i for i in range(5000)]
    tracker.call("MGET", *many)
    client.call("MSET", *[word for key in keys + many for word in (key, "1")])
    assert invalidations(tracker) == gone(*(keys + many))


@pytest.mark.parametrize("call", [
    ("EVAL", "{}"), ("EVAL_RO", "{}"), ("EVAL", "#!lua flags=no-writes\n{}"), ("FCALL", None), ("FCALL_RO", None)])
def test_a_script_reads_what_its_commands_read(trackers, client, ours_only, call):
    """Not the keys that it was given, as since 7.2; and those that it was not."""
    script = "redis.call('get', 'read') redis.pcall('lrange', 'wrong', 0, 1) return redis.call('mget', KEYS[1], 'gone')"
    client.call("FUNCTION", "LOAD", "REPLACE", "#!lua name=reads\nredis.register_function{function_name='reads', "
                "flags={'no-writes'}, callback=function(KEYS) %s end}" % script)
    for key in ("read", "wrong", "first", "second"):
        client.ok("SET", key, "old")
    reader = trackers[0]
    name = call[1].format(script) if call[1] else "reads"
    assert reader.call(call[0], name, 2, "first", "second") == [b"old", None]
    for key in ("second", "read", "wrong", "first", "gone"):
        client.ok("SET", key, "new")
    assert invalidations(reader) == gone("read") + gone("wrong") + gone("first") + gone("gone")
    client.ok("FUNCTION", "FLUSH")
