"""Generated sequences of publish and subscribe on four connections, to our server and to the
oracle.  Each connection's stream of messages and confirmations must be the same, and its other
replies.  Two differences are known: since 7.2 what a client publishes to itself comes behind the
reply, so replies and messages are compared apart; and the order of several patterns that one message
matches, or of names that are unsubscribed all at once, is nobody's."""

import pytest

from lib.pubsub import frame, is_confirmation, is_message
from lib.resp import Error
from lib.seeds import generator, seeds

pytestmark = pytest.mark.one_thread("messages do not cross threads")

CLIENTS = 4
LENGTH = 250
NAMES = ["a", "b", "ab", "", "news.art", "news.music", "A", "\x00\xff", "*", "x" * 300]
PATTERNS = ["*", "a*", "?", "[ab]", "[^a]", "news.*", "n[e", "a\\", "", "*.*", "\\*", "ab", "[a-"]


def command(random, serial):
    def some(words, least=1):
        return random.choices(words, k=random.choice([least, 1, 1, 2, 4]))

    kind = random.choice("UUUPPPSSSuuppssMMMMMMMMMQQQQGGWR3")
    return {
        "U": lambda: ["SUBSCRIBE"] + some(NAMES),
        "P": lambda: ["PSUBSCRIBE"] + some(PATTERNS),
        "S": lambda: ["SSUBSCRIBE"] + some(NAMES),
        "u": lambda: ["UNSUBSCRIBE"] + some(NAMES, 0),
        "p": lambda: ["PUNSUBSCRIBE"] + some(PATTERNS, 0),
        "s": lambda: ["SUNSUBSCRIBE"] + some(NAMES, 0),
        "M": lambda: [random.choice(["PUBLISH", "PUBLISH", "PUBLISH", "SPUBLISH"]),
                      random.choice(NAMES), "%d" % serial],
        "Q": lambda: random.choice([
            ["PUBSUB", "NUMSUB"] + some(NAMES, 0), ["PUBSUB", "NUMPAT"],
            ["PUBSUB", "SHARDNUMSUB"] + some(NAMES, 0), ["PUBSUB", "CHANNELS"],
            ["PUBSUB", "CHANNELS", random.choice(PATTERNS)], ["PUBSUB", "SHARDCHANNELS"],
            ["PUBSUB", "SHARDCHANNELS", random.choice(PATTERNS)]]),
        "G": lambda: random.choice([["GET", "k"], ["PING"], ["PING", "x"], ["ECHO", "x"],
                                    ["SET", "k", "v"]]),
        "W": lambda: random.choice([
            ["SUBSCRIBE"], ["PUBLISH", "a"], ["SPUBLISH"], ["PUBSUB"], ["PUBSUB", "NOPE"],
            ["PUBSUB", "CHANNELS", "a", "b"], ["PUBSUB", "NUMPAT", "x"], ["PING", "a", "b"]]),
        "R": lambda: ["RESET"],
        "3": lambda: ["HELLO", random.choice("23")],
    }[kind]()


def program(random):
    return [(random.randrange(CLIENTS), command(random, serial)) for serial in range(LENGTH)]


class Side:
    """The same program on one of the servers."""

    def __init__(self, server, proto):
        self.clients = [server.connect(proto) for _ in range(CLIENTS)]
        self.frames = [[] for _ in range(CLIENTS)]

    def close(self):
        for client in self.clients:
            client.close()

    def step(self, number, words, token):
        """Run a command; everything that comes before the answer to a PING is kept."""
        client = self.clients[number]
        before = client.decoder.proto
        client.send(*words)
        if words[0] == "HELLO":
            client.decoder.proto = 3  # takes frames of RESP2 as well
        client.send("PING", token)
        found = []
        while True:
            tree = frame(client)
            if tree == token or tree == [b"pong", token]:
                break
            found.append(tree)
            if words[0] == "RESET" and tree == b"RESET":
                client.decoder.proto = 2
        if words[0] == "HELLO":
            refused = any(isinstance(tree, Error) for tree in found)
            client.decoder.proto = before if refused else int(words[1])
            found = [tree if is_message(tree) or is_confirmation(tree) or isinstance(tree, Error)
                     else b"hello" for tree in found]
        if words[0] == "PUBSUB" and "CHANNELS" in "".join(words[1:2]):
            found = [sorted(t) if isinstance(t, list) and not is_message(t) else t for t in found]
        self.frames[number] += found

    def end(self):
        """What is still on its way: behind a last message to each, nothing is."""
        with_end = []
        for number, client in enumerate(self.clients):
            client.send("RESET")
            found = self.frames[number]
            while True:
                tree = frame(client)
                if tree == b"RESET":
                    break
                found.append(tree)
            with_end.append(found)
        return with_end


def streams(found):
    """(messages and confirmations, other replies); frames whose order is nobody's are sorted."""
    told = [tuple(t) for t in found if is_message(t) or is_confirmation(t)]
    others = [t for t in found if not (is_message(t) or is_confirmation(t))]
    groups = []
    for t in told:
        # One message has one payload; names in a run of confirmations of one kind.
        key = (t[-1],) if is_message(list(t)) else (t[0],)
        if groups and groups[-1][0] == key:
            groups[-1][1].append(t)
        else:
            groups.append((key, [t]))
    return [(key, sorted((t if is_message(list(t)) else t[:2] for t in group), key=repr),
             sorted((t[2] for t in group if is_confirmation(list(t))))) for key, group in groups], \
        others


def check(server, oracle, proto, seed):
    steps = program(generator(seed, "pubsub", proto))
    results = []
    for target in (server, oracle):
        side = Side(target, proto)
        try:
            for at, (number, words) in enumerate(steps):
                side.step(number, words, b"token-%d" % at)
            results.append([streams(found) for found in side.end()])
        finally:
            side.close()
    for number, (ours, theirs) in enumerate(zip(*results)):
        shown = "\n".join("%d: %r" % step for step in steps)
        assert ours[1] == theirs[1], "seed %s, replies of %d\n%s" % (seed, number, shown)
        assert ours[0] == theirs[0], "seed %s, messages of %d\n%s" % (seed, number, shown)


@pytest.mark.parametrize("proto", [2, 3], ids=["resp2", "resp3"])
@pytest.mark.parametrize("seed", seeds(20))
def test_same_streams(server, oracle, proto, seed):
    check(server, oracle, proto, seed)


@pytest.mark.slow
def test_same_streams_many_seeds(server, oracle):
    for seed in seeds(100, base=1000):
        for proto in (2, 3):
            check(server, oracle, proto, seed)
