"""The order of messages under several threads.  Publishers number their messages; subscribers of
all threads write down what they get.  Demanded: from each publisher every message once and in its
order; of each channel one order for all its subscribers; and what a subscriber of two channels gets
agrees with both."""

import threading

import pytest

from lib.pubsub import frame, frames, is_message, subscribe
from lib.resp import encode
from lib.seeds import generator, seeds

PUBLISHERS = 6
MESSAGES = 300
CHANNELS = ["even", "odd", "both"]


def publish(client, name, random, failures):
    try:
        words = [("PUBLISH", random.choice(CHANNELS), "%d:%d" % (name, i))
                 for i in range(MESSAGES)]
        sent = []
        while words:
            size = random.choice([1, 1, 2, 7, 40])
            now, words = words[:size], words[size:]
            for count, word in zip(client.pipeline(now), now):
                sent.append((word[1], word[2], count))
        client.sent = sent
    except Exception as trouble:
        failures.append(trouble)


def listen(client, failures):
    """Everything until the end mark: (channel, payload), patterns' frames apart."""
    try:
        client.got, client.matched = [], []
        while True:
            tree = frame(client)
            assert is_message(tree), tree
            if tree[0] == b"pmessage":
                client.matched.append((tree[2], tree[3]))
                continue
            if tree[1] == b"end":
                return
            client.got.append((tree[1], tree[2]))
    except Exception as trouble:
        failures.append(trouble)


def check_publishers(got, channels):
    """Each publisher's messages, once each, in its order, none of another channel."""
    last = {}
    for channel, payload in got:
        assert channel.decode() in channels
        name, number = map(int, payload.split(b":"))
        assert last.get(name, -1) < number, "%s after %s of publisher %d" % (
            number, last.get(name), name)
        last[name] = number


@pytest.mark.parametrize("seed", seeds(2))
def test_histories(connect, threads, seed):
    random = generator(seed, "pubsub order")
    failures = []
    listeners = []
    for i in range(3 * threads + 2):
        listener = connect(2 + i % 2)
        listener.channels = random.sample(CHANNELS, 1 + i % 3)
        subscribe(listener, "SUBSCRIBE", "end", *listener.channels)
        if i % 2:
            subscribe(listener, "PSUBSCRIBE", "*[nh]")  # even, both
        listeners.append(listener)
    publishers = [connect() for _ in range(PUBLISHERS)]
    runners = [threading.Thread(target=listen, args=(c, failures)) for c in listeners]
    writers = [threading.Thread(target=publish, args=(c, n, generator(seed, n), failures))
               for n, c in enumerate(publishers)]
    for runner in runners + writers:
        runner.start()
    for writer in writers:
        writer.join()
    assert connect().call("PUBLISH", "end", "x") == len(listeners)
    for runner in runners:
        runner.join()
    assert not failures, failures

    sent = {channel: sorted(m.encode() for p in publishers for c, m, _ in p.sent if c == channel)
            for channel in CHANNELS}
    orders = {}
    for listener in listeners:
        check_publishers(listener.got, listener.channels)
        for channel in listener.channels:
            own = [m for c, m in listener.got if c == channel.encode()]
            assert sorted(own) == sent[channel], "missing or twice"
            assert orders.setdefault(channel, own) == own, "two orders of one channel"
    # Messages of all channels go in one order: who listens to several sees it.
    whole = next(c.got for c in listeners if len(c.channels) == 3)
    for listener in listeners:
        names = [c.encode() for c in listener.channels]
        assert listener.got == [m for m in whole if m[0] in names]
        if listener.matched:
            assert listener.matched == [m for m in whole if m[0] in (b"even", b"both")]
    # The counts: nobody came or went.
    for channel in CHANNELS:
        plain = sum(channel in c.channels for c in listeners)
        pattern = (len(listeners) // 2) * (channel != "odd")
        assert {n for p in publishers for c, _, n in p.sent if c == channel} == {plain + pattern}


def test_counts_are_those_who_get_it(connect, threads):
    """While subscribers come and go: the replies to PUBLISH add up to what is received."""
    listeners = [connect(2 + i % 2) for i in range(2 * threads + 2)]
    totals, failures = [], []

    def come_and_go(client, random):
        try:
            client.received = 0
            for turn in range(60):
                kind, name = random.choice([("", "c"), ("P", "c*"), ("P", "?")])
                subscribe(client, kind + "SUBSCRIBE", name)
                subscribe(client, kind + "UNSUBSCRIBE", name)
            client.received = sum(is_message(tree) for tree in client.pushes)
        except Exception as trouble:
            failures.append(trouble)

    def count(client, stop):
        try:
            while not stop.is_set():
                totals.append(sum(client.pipeline([("PUBLISH", "c", "x")] * 5)))
        except Exception as trouble:
            failures.append(trouble)

    stop = threading.Event()
    publishers = [threading.Thread(target=count, args=(connect(), stop)) for _ in range(threads)]
    runners = [threading.Thread(target=come_and_go, args=(c, generator(i, "counts")))
               for i, c in enumerate(listeners)]
    for thread in publishers + runners:
        thread.start()
    for runner in runners:
        runner.join()
    stop.set()
    for publisher in publishers:
        publisher.join()
    assert not failures, failures
    assert sum(totals) == sum(c.received for c in listeners)


def test_a_flood_makes_publishers_wait(make_server, threads):
    """Three publishers, one busy thread of subscribers: nothing is lost, and what waits is
    bounded."""
    server = make_server(config="client-output-buffer-limit pubsub 0 0 0\n")
    clients = [server.connect(timeout_s=60) for _ in range(20 * threads)]
    publishers = [server.connect(timeout_s=60) for _ in range(3)]
    failures = []
    count = 4000
    size = 3 * count * len(encode("message", "flood", "0:000000"))

    def publish_all(client, name):
        try:
            replies = client.pipeline([("PUBLISH", "flood", "%d:%06d" % (name, i))
                                       for i in range(count)])
            assert set(replies) == {len(clients)}
        except Exception as trouble:
            failures.append(trouble)

    def taken(client):
        """The bytes of all messages: a million of them, to take apart here, would take longer than the rest."""
        flood = bytearray()
        while len(flood) < size:
            flood += client.receive(size - len(flood))
        return bytes(flood)

    try:
        for client in clients:
            subscribe(client, "SUBSCRIBE", "flood")
        runners = [threading.Thread(target=publish_all, args=(p, n))
                   for n, p in enumerate(publishers)]
        for runner in runners:
            runner.start()
        for runner in runners:
            runner.join()
        assert not failures, failures
        first, *others = map(taken, clients)
        clients[0].decoder.feed(first)
        assert len({message[2] for message in frames(clients[0], 3 * count)}) == 3 * count
        assert all(flood == first for flood in others)
    finally:
        for client in clients + publishers:
            client.close()
