"""Publish and subscribe: who gets what, in which form, and what a subscriber may do.  Sequences of
commands beside the oracle: differential/test_generated_pubsub.py; order: test_pubsub_order.py."""

import socket
import threading
import time

import pytest
import redis

from lib.bounds import BoundPassed, descriptors, eventually, scaled
from lib.pubsub import frame, frames, is_message, subscribe, until_token
from lib.resp import Closed, Error, Push, encode

pytestmark = pytest.mark.one_thread("messages do not cross threads")

ONLY = (b"ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET "
        b"are allowed in this context")

proto_of = pytest.mark.parametrize("proto", [2, 3], ids=["resp2", "resp3"])


# -- forms

@proto_of
def test_confirmations_count_channels_and_patterns_together(connect, proto):
    client = connect(proto)
    assert subscribe(client, "SUBSCRIBE", "a", "b", "a") == [
        [b"subscribe", b"a", 1], [b"subscribe", b"b", 2], [b"subscribe", b"a", 2]]
    assert subscribe(client, "PSUBSCRIBE", "x*") == [[b"psubscribe", b"x*", 3]]
    assert subscribe(client, "SSUBSCRIBE", "s") == [[b"ssubscribe", b"s", 1]]
    assert subscribe(client, "UNSUBSCRIBE", "nope", "a") == [
        [b"unsubscribe", b"nope", 3], [b"unsubscribe", b"a", 2]]
    client.send("UNSUBSCRIBE")
    assert frame(client) == [b"unsubscribe", b"b", 1]
    client.send("UNSUBSCRIBE")
    assert frame(client) == [b"unsubscribe", None, 1]
    client.send("PUNSUBSCRIBE")
    assert frame(client) == [b"punsubscribe", b"x*", 0]
    client.send("SUNSUBSCRIBE")
    assert frame(client) == [b"sunsubscribe", b"s", 0]
    client.send("SUNSUBSCRIBE")
    assert frame(client) == [b"sunsubscribe", None, 0]


@proto_of
def test_messages(connect, proto):
    listener, publisher = connect(proto), connect()
    subscribe(listener, "SUBSCRIBE", "news", "")
    subscribe(listener, "PSUBSCRIBE", "n*s", "n?ws", "x*")
    subscribe(listener, "SSUBSCRIBE", "news")
    assert publisher.call("PUBLISH", "news", "one") == 3
    got = frames(listener, 3)
    assert got[0] == [b"message", b"news", b"one"]
    assert sorted(got[1:]) == [[b"pmessage", b"n*s", b"news", b"one"],
                               [b"pmessage", b"n?ws", b"news", b"one"]]
    assert all(isinstance(g, Push) for g in got) == (proto == 3)
    assert publisher.call("SPUBLISH", "news", "two") == 1
    assert frame(listener) == [b"smessage", b"news", b"two"]
    assert publisher.call("PUBLISH", "", b"\x00\r\n\xff") == 1
    assert frame(listener) == [b"message", b"", b"\x00\r\n\xff"]
    assert publisher.call("PUBLISH", "nobody", "x") == 0
    assert publisher.call("SPUBLISH", "nobody", "x") == 0
    assert until_token(listener, b"end") == []


def test_sizes_around_every_bound(connect):
    """Frames are whole, whatever the message's size, also for a publisher that listens."""
    listeners = [connect(2), connect(3)]
    both, publisher = connect(3), connect()
    for client in listeners + [both]:
        subscribe(client, "SUBSCRIBE", "c")
    sizes = [n + d for n in (0, 1, 64, 1000, 4096, 16 * 1024, 32 * 1024, 64 * 1024, 1 << 20)
             for d in (-33, -17, -3, -2, -1, 0, 1, 2, 3) if n + d >= 0]
    for at, size in enumerate(sizes):
        message = bytes(at % 251 for _ in range(1)) * size
        if at % 2:
            assert publisher.call("PUBLISH", "c", message) == 3
        else:
            both.send("PUBLISH", "c", message)
            assert frame(both) == 3
        for client in listeners + [both]:
            assert frame(client) == [b"message", b"c", message]


def test_resp2_may_do_little_else(connect):
    client = connect()
    subscribe(client, "SUBSCRIBE", "c")
    assert client.call("GET", "k") == ONLY % b"get"
    assert client.call("CLIENT", "INFO") == ONLY % b"client|info"
    assert client.call("PUBLISH", "c", "x") == ONLY % b"publish"
    assert client.call("HELLO", "3") == ONLY % b"hello"
    assert client.call("PING") == [b"pong", b""]
    assert client.call("PING", "hi") == [b"pong", b"hi"]
    assert client.call("GET") == b"ERR wrong number of arguments for 'get' command"
    # In one go: what comes behind SUBSCRIBE is understood in the new state, and back.
    client.send_raw(encode("UNSUBSCRIBE") + encode("GET", "k") + encode("SUBSCRIBE", "d") +
                    encode("GET", "k") + encode("PING"))
    assert frames(client, 5) == [[b"unsubscribe", b"c", 0], None, [b"subscribe", b"d", 1],
                                 ONLY % b"get", [b"pong", b""]]
    subscribe(client, "UNSUBSCRIBE", "d")
    assert client.call("PING") == b"PONG"
    for kind in ("PSUBSCRIBE", "SSUBSCRIBE"):
        subscribe(client, kind, "z")
        assert client.call("GET", "k") == ONLY % b"get"
        assert client.call("RESET") == b"RESET"
        assert client.call("GET", "k") is None


def test_resp3_goes_on(connect):
    client = connect(3)
    subscribe(client, "SUBSCRIBE", "c")
    client.ok("SET", "k", "v")
    assert client.call("GET", "k") == b"v"
    assert client.call("PING") == b"PONG"
    client.send("PUBLISH", "c", "own")
    assert frames(client, 2) == [1, [b"message", b"c", b"own"]]
    # HELLO 2 while subscribed is the old mode at once.
    client.send("HELLO", "2")
    frame(client)
    client.decoder.proto = 2
    assert client.call("GET", "k") == ONLY % b"get"


def test_own_messages_come_right_behind_the_reply(connect):
    client = connect(3)
    subscribe(client, "SUBSCRIBE", "c")
    client.send_raw(b"".join(encode("ECHO", str(i)) + encode("PUBLISH", "c", str(i))
                             for i in range(300)))
    for i in range(300):
        assert frames(client, 3) == [b"%d" % i, 1, [b"message", b"c", b"%d" % i]]


@proto_of
def test_transactions(connect, proto):
    """They may subscribe; what they publish to themselves comes behind EXEC's reply."""
    client = connect(proto)
    client.send_raw(b"".join(encode(*words) for words in [
        ["MULTI"], ["SUBSCRIBE", "c"], ["PUBLISH", "c", "1"], ["PSUBSCRIBE", "c*"],
        ["PUBLISH", "c", "2"], ["UNSUBSCRIBE", "c"], ["SSUBSCRIBE", "c"], ["EXEC"],
        ["GET", "k"], ["PUNSUBSCRIBE"], ["GET", "k"]]))
    assert frames(client, 7) == [b"OK"] + [b"QUEUED"] * 6
    raw = [frame(client)]
    assert raw[0] == [
        [b"subscribe", b"c", 1], 1, [b"psubscribe", b"c*", 2], 2, [b"unsubscribe", b"c", 1],
        Error(b"ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")]
    assert frames(client, 3) == [[b"message", b"c", b"1"], [b"message", b"c", b"2"],
                                 [b"pmessage", b"c*", b"c", b"2"]]
    assert frame(client) == (ONLY % b"get" if proto == 2 else None)
    assert frames(client, 2) == [[b"punsubscribe", b"c*", 0], None]
    # Each step of a transaction that others see as one: its messages are together.
    other = connect(3)
    subscribe(other, "SUBSCRIBE", "c")
    client.send_raw(encode("MULTI") + encode("PUBLISH", "c", "a") * 3 + encode("EXEC"))
    assert frames(client, 5)[-1] == [1, 1, 1]
    assert frames(other, 3) == [[b"message", b"c", b"a"]] * 3


def test_a_pipeline_of_everything(connect):
    """Messages stand where their subscriptions have them, in one batch too."""
    client = connect(3)
    client.send_raw(b"".join([
        encode("SUBSCRIBE", "c"), encode("PUBLISH", "c", "1"), encode("PUBLISH", "c", "2"),
        encode("UNSUBSCRIBE", "c"), encode("PUBLISH", "c", "3"), encode("PSUBSCRIBE", "*"),
        encode("PUBLISH", "c", "4"), encode("PUNSUBSCRIBE"), encode("PUBLISH", "c", "5"),
        encode("PING")]))
    assert frames(client, 11) == [
        [b"subscribe", b"c", 1], 1, [b"message", b"c", b"1"], 1, [b"message", b"c", b"2"],
        [b"unsubscribe", b"c", 0], 0, [b"psubscribe", b"*", 1], 1,
        [b"pmessage", b"*", b"c", b"4"], [b"punsubscribe", b"*", 0]]
    assert frames(client, 2) == [0, b"PONG"]


@proto_of
def test_reply_off_holds_back_neither_confirmations_nor_messages(connect, proto):
    client, publisher = connect(proto), connect()
    client.send("CLIENT", "REPLY", "OFF")
    assert subscribe(client, "SUBSCRIBE", "c") == [[b"subscribe", b"c", 1]]
    publisher.call("PUBLISH", "c", "m")
    assert frame(client) == [b"message", b"c", b"m"]
    client.send("PING")
    client.send("SUBSCRIBE")
    client.send("UNSUBSCRIBE", "c")
    assert frame(client) == [b"unsubscribe", b"c", 0]
    client.ok("CLIENT", "REPLY", "ON")
    client.send("CLIENT", "REPLY", "SKIP")
    assert subscribe(client, "SUBSCRIBE", "c") == [[b"subscribe", b"c", 1]]


# -- ends

@pytest.mark.parametrize("end", ["reset", "quit", "close", "rst", "kill"])
def test_the_end_of_a_subscriber(connect, end):
    client, other = connect(3), connect()
    subscribe(client, "SUBSCRIBE", "a", "b")
    subscribe(client, "PSUBSCRIBE", "p*")
    subscribe(client, "SSUBSCRIBE", "s")
    ident = client.call("CLIENT", "ID")
    if end == "reset":
        client.send("RESET")
        assert frame(client) == b"RESET"
        client.decoder.proto = 2
    elif end == "quit":
        client.ok("QUIT")
    elif end == "kill":
        assert other.call("CLIENT", "KILL", "TYPE", "pubsub") == 1
        assert client.is_closed()
    elif end == "close":
        client.close()
    else:
        client.reset_hard()
    if end == "reset":
        assert b" sub=0 psub=0 ssub=0 " in other.call("CLIENT", "LIST", "ID", ident)
    eventually(lambda: other.call("PUBSUB", "CHANNELS") == [], "no channel")
    eventually(lambda: other.call("PUBSUB", "NUMPAT") == 0, "no pattern")
    eventually(lambda: other.call("PUBSUB", "SHARDCHANNELS") == [], "no shard channel")
    assert other.call("PUBLISH", "a", "x") == 0
    if end == "reset":
        assert client.call("PING") == b"PONG"
        assert client.nothing_comes()


def test_unsubscribe_means_silence(connect, threads):
    """Nothing comes behind the confirmation, while others publish all the time."""
    listener = connect(3)
    stop = threading.Event()

    def publish(client):
        while not stop.is_set():
            client.pipeline([("PUBLISH", "c", "x")] * 20)

    publishers = [connect() for _ in range(threads)]
    runners = [threading.Thread(target=publish, args=(p,)) for p in publishers]
    for runner in runners:
        runner.start()
    try:
        for turn in range(100):
            subscribe(listener, "SUBSCRIBE", "c")
            if turn % 3:
                while not is_message(frame(listener)):
                    pass
            subscribe(listener, "UNSUBSCRIBE", "c")
            assert [f for f in until_token(listener, b"%d" % turn) if is_message(f)] == []
    finally:
        stop.set()
        for runner in runners:
            runner.join()
    assert listener.nothing_comes()


def test_seen_subscriptions_hear_the_next_message(connect, threads):
    """Once the confirmation has been read, a message that anybody publishes then arrives."""
    listeners = [connect(2 + i % 2) for i in range(2 * threads)]
    publishers = [connect() for _ in range(threads)]
    for turn in range(200):
        channel = "c%d" % (turn % 7)
        listener = listeners[turn % len(listeners)]
        subscribe(listener, "SUBSCRIBE", channel)
        assert publishers[turn % threads].call("PUBLISH", channel, turn) == 1
        assert frame(listener) == [b"message", channel.encode(), b"%d" % turn]
        subscribe(listener, "UNSUBSCRIBE", channel)
        assert publishers[(turn + 1) % threads].call("PUBLISH", channel, turn) == 0


# -- what others see

def test_counts(connect, server):
    a, b, other = connect(), connect(3), connect()
    subscribe(a, "SUBSCRIBE", "one", "two")
    subscribe(b, "SUBSCRIBE", "two")
    for client in (a, b):
        subscribe(client, "PSUBSCRIBE", "p*")
    subscribe(b, "PSUBSCRIBE", "q*")
    subscribe(b, "SSUBSCRIBE", "s1", "s2")
    assert sorted(other.call("PUBSUB", "CHANNELS")) == [b"one", b"two"]
    assert other.call("PUBSUB", "CHANNELS", "t*") == [b"two"]
    assert sorted(other.call("PUBSUB", "SHARDCHANNELS")) == [b"s1", b"s2"]
    assert other.call("PUBSUB", "NUMSUB", "two", "none", "two") == [b"two", 2, b"none", 0,
                                                                    b"two", 2]
    assert other.call("PUBSUB", "SHARDNUMSUB", "s1", "two") == [b"s1", 1, b"two", 0]
    assert other.call("PUBSUB", "NUMPAT") == 2
    info = server.info()
    assert (info["pubsub_channels"], info["pubsub_patterns"], info["pubsubshard_channels"]) == \
        ("2", "2", "2")
    lines = other.call("CLIENT", "LIST", "TYPE", "pubsub").splitlines()
    assert len(lines) == 2 and all(b" flags=P " in line for line in lines)
    assert sorted(line.split(b" sub=")[1].split(b" multi")[0] for line in lines) == [
        b"1 psub=2 ssub=2", b"2 psub=1 ssub=0"]
    normal = other.call("CLIENT", "LIST", "TYPE", "normal").splitlines()
    assert all(b" flags=P" not in line for line in normal) and len(normal) >= 1


def test_subscribers_are_not_idle(make_server):
    server = make_server({"timeout": "1"})
    listener, idle = server.connect(), server.connect()
    with listener, idle:
        subscribe(listener, "SUBSCRIBE", "c")
        assert idle.is_closed()

        def published():
            """Unless it was idle for so long itself."""
            try:
                with server.connect() as publisher:
                    return publisher.call("PUBLISH", "c", "m") == 1
            except (Closed, OSError):
                return False
        eventually(published, "the listener is there")
        assert frame(listener) == [b"message", b"c", b"m"]


def test_many_channels_of_one_client(connect):
    client, other = connect(), connect()
    names = ["channel:%d" % i for i in range(3000)]
    subscribe(client, "SUBSCRIBE", *names)
    assert len(other.call("PUBSUB", "CHANNELS")) == 3000
    assert len(other.call("PUBSUB", "CHANNELS", "channel:1*")) == 1111
    assert other.pipeline([("PUBLISH", n, n) for n in names[::7]]) == [1] * len(names[::7])
    for name in names[::7]:
        assert frame(client) == [b"message", name.encode(), name.encode()]
    client.send("UNSUBSCRIBE")
    gone = frames(client, 3000)
    assert sorted(g[1] for g in gone) == sorted(n.encode() for n in names)
    assert [g[2] for g in gone] == list(range(2999, -1, -1))
    assert other.call("PUBSUB", "CHANNELS") == []


# -- many, and slow ones

def crowd(server, count):
    """Many subscribers of one channel, and one publish: each gets it once."""
    clients = [server.connect(2 + i % 2, timeout_s=60) for i in range(count)]
    try:
        for client in clients:
            client.send("SUBSCRIBE", "crowd")
        for client in clients:
            assert frame(client) == [b"subscribe", b"crowd", 1]
        with server.connect(timeout_s=60) as publisher:
            for turn in range(3):
                assert publisher.call("PUBLISH", "crowd", "%d" % turn) == count
            publisher.call("PUBLISH", "crowd", b"z" * 40_000)
        for client in clients:
            assert frames(client, 3) == [[b"message", b"crowd", b"%d" % n] for n in range(3)]
            assert frame(client) == [b"message", b"crowd", b"z" * 40_000]
    finally:
        for client in clients:
            client.close()
    with server.connect() as other:
        eventually(lambda: other.call("PUBSUB", "NUMSUB", "crowd") == [b"crowd", 0], "all gone")


def test_a_crowd(server):
    crowd(server, 500)


@pytest.mark.slow
def test_ten_thousand(make_server):
    if descriptors() < 10_400:
        pytest.skip("not enough descriptors for 10,000 clients")
    crowd(make_server({"maxclients": "10100"}), 10_000)


def test_a_slow_subscriber_is_cut_and_harms_nobody(make_server, threads):
    server = make_server(config="client-output-buffer-limit pubsub 1mb 0 0\n")
    with server.connect() as slow, server.connect() as fast, server.connect() as publisher:
        slow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow_id = slow.call("CLIENT", "ID")
        subscribe(slow, "SUBSCRIBE", "c")
        subscribe(fast, "SUBSCRIBE", "c")
        message, sent = b"m" * 10_000, 0
        deadline = time.monotonic() + scaled(60)
        while publisher.call("PUBSUB", "NUMSUB", "c") == [b"c", 2]:
            assert publisher.call("PUBLISH", "c", message) in (1, 2)
            sent += 1
            assert frame(fast) == [b"message", b"c", message]
            if time.monotonic() > deadline:
                raise BoundPassed("the slow one stays")
        assert sent > 100  # a megabyte at least was kept for it
        ident = b"id=%d " % slow_id
        eventually(lambda: ident not in publisher.call("CLIENT", "LIST"), "the slow one is gone")
        eventually(lambda: server.info()["client_output_buffer_limit_disconnections"] == "1", "it is counted")
        assert publisher.call("PUBLISH", "c", "end") == 1
        assert frame(fast) == [b"message", b"c", b"end"]


def test_slow_subscribers_share_a_large_message(make_server, threads):
    """Memory for one large message that 40 clients do not read is that of a few copies."""
    server = make_server(config="client-output-buffer-limit pubsub 0 0 0\n")
    clients = [server.connect(timeout_s=60) for _ in range(40)]
    try:
        for client in clients:
            subscribe(client, "SUBSCRIBE", "c")
        message = b"x" * (16 << 20)  # several times what sockets' buffers hold
        with server.connect() as publisher:
            before = int(server.info()["used_memory"])
            assert publisher.call("PUBLISH", "c", message) == 40
            held = int(server.info()["used_memory"]) - before
            assert held < 4 * len(message)
        for client in clients:
            assert frame(client) == [b"message", b"c", message]
    finally:
        for client in clients:
            client.close()


# -- keyspace events

def event_listener(connect, client, classes, pattern="__key*__:*"):
    client.ok("CONFIG", "SET", "notify-keyspace-events", classes)
    listener = connect()
    subscribe(listener, "PSUBSCRIBE", pattern)
    return listener


def test_events_in_their_forms(connect, client):
    listener = event_listener(connect, client, "KEA")
    client.ok("SELECT", "3")
    client.ok("SET", "k", "v")
    client.call("DEL", "k")
    assert [f[2:] for f in frames(listener, 4)] == [
        [b"__keyspace@3__:k", b"set"], [b"__keyevent@3__:set", b"k"],
        [b"__keyspace@3__:k", b"del"], [b"__keyevent@3__:del", b"k"]]
    client.ok("CONFIG", "SET", "notify-keyspace-events", "Kg")
    client.ok("SET", "k", "v")
    client.call("DEL", "k")
    assert frame(listener)[2:] == [b"__keyspace@3__:k", b"del"]
    client.ok("CONFIG", "SET", "notify-keyspace-events", "")
    client.ok("SET", "k", "v")
    assert until_token(listener, b"none") == []


def test_events_without_patterns(connect, client):
    """Subscribers of the very channel, nobody with a pattern; long keys and odd ones."""
    client.ok("CONFIG", "SET", "notify-keyspace-events", "KEA")
    listener, keys = connect(3), [b"k", b"", b"\x00\r\n", b"long" * 20_000]
    for key in keys:
        subscribe(listener, "SUBSCRIBE", b"__keyspace@0__:" + key)
    subscribe(listener, "SUBSCRIBE", "__keyevent@0__:del")
    for key in keys:
        client.ok("SET", key, "v")
        client.ok("SET", "other", "v")
        client.call("DEL", key)
        assert [f[1:] for f in frames(listener, 3)] == [
            [b"__keyspace@0__:" + key, b"set"], [b"__keyspace@0__:" + key, b"del"],
            [b"__keyevent@0__:del", key]]


def test_expired_events(connect, client):
    """By the sweep, and by a reader that finds the time past."""
    listener = event_listener(connect, client, "Ex")
    for turn in range(20):
        client.ok("SET", "sweep:%d" % turn, "v", "PX", "1")
    assert sorted(frame(listener)[3] for _ in range(20)) == sorted(
        b"sweep:%d" % turn for turn in range(20))
    client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    client.ok("SET", "k", "v", "PX", "1")
    eventually(lambda: client.call("GET", "k") is None, "k has expired")
    assert frame(listener)[2:] == [b"__keyevent@0__:expired", b"k"]


def test_misses(connect, client):
    listener = event_listener(connect, client, "KEm")
    assert client.call("GET", "nothing") is None
    assert [f[2:] for f in frames(listener, 2)] == [
        [b"__keyspace@0__:nothing", b"keymiss"], [b"__keyevent@0__:keymiss", b"nothing"]]


def test_events_come_in_the_order_of_writes(connect, client, threads):
    """Writers of all threads append to one list; the events of its length are in its order."""
    listener = event_listener(connect, client, "KA", "__keyspace@0__:*")
    writers = [connect() for _ in range(2 * threads)]
    for number, writer in enumerate(writers):
        writer.send_raw(b"".join(
            encode("INCR", "n") + encode("SET", "w:%d" % number, str(i)) + encode("DEL", "n")
            for i in range(200)))
    for writer in writers:
        for _ in range(600):
            writer.read()
    got = [frame(listener)[2:] for _ in range(client.call("DBSIZE"))]
    client.call("PUBLISH", "__keyspace@0__:end", "end")
    while got[-1][1] != b"end":
        got.append(frame(listener)[2:])
    for number in range(len(writers)):
        assert sum(name == b"__keyspace@0__:w:%d" % number for name, _ in got) == 200
    # n comes and goes: after its deletion the next event is an increment, never a deletion.
    own = [event for name, event in got if name == b"__keyspace@0__:n"]
    assert own.count(b"incrby") == 200 * len(writers)
    assert not any(a == b == b"del" for a, b in zip(own, own[1:]))


def test_a_server_that_ends_with_subscribers(make_server, threads):
    server = make_server()
    clients = [server.connect(2 + i % 2) for i in range(50)]
    for client in clients:
        subscribe(client, "SUBSCRIBE", "a", "b")
        subscribe(client, "PSUBSCRIBE", "*", "a*")
    clients[1].send_raw(encode("PUBLISH", "a", "m") * 1000)
    server.stop()
    for client in clients:
        client.close()


# -- libraries

def test_redis_py(server):
    host, port = server.address()
    pool = redis.Redis(host=host, port=port)
    got = []
    listener = pool.pubsub(ignore_subscribe_messages=True)
    listener.subscribe("plain", handled=lambda m: got.append(m["data"]))
    listener.psubscribe("pat*")
    eventually(lambda: pool.pubsub_numsub("plain", "handled") == [(b"plain", 1), (b"handled", 1)],
               "subscribed")
    assert pool.pubsub_numpat() == 1
    assert pool.publish("plain", "one") == 1
    assert pool.publish("handled", "two") == 1
    assert pool.publish("pattern", "three") == 1
    seen = []

    def collect():
        message = listener.get_message(timeout=0.1)
        if message:
            seen.append((message["type"], message["channel"], message["data"]))
        return len(seen) == 2 and got == [b"two"]

    eventually(collect, "all messages")
    assert seen == [("message", b"plain", b"one"), ("pmessage", b"pattern", b"three")]
    listener.unsubscribe()
    listener.punsubscribe()
    eventually(lambda: listener.get_message(timeout=0.1) is None and
               pool.publish("plain", "x") == 0, "unsubscribed")
    listener.close()
    pool.close()
