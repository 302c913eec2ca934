"""Generated sequences of reads, writes and CLIENT TRACKING on four connections (RESP3), to our
server and to the oracle.  After each command every connection sends a PING: what each of them is
told by one command must be the same.  Not here, for they differ: SWAPDB (ours tells, the oracle's
clients are left with old values), CLIENT TRACKING inside a
transaction (the oracle still tells what was changed before it there), expiry (when it is noticed), and redirections between threads
(told a moment later: with one thread only)."""

import pytest

from lib.pubsub import frame
from lib.resp import Push
from lib.seeds import generator, seeds

pytestmark = pytest.mark.one_thread("invalidations do not cross threads")

CLIENTS = 4
LENGTH = 400
KEYS = ["a", "b", "ab", "abc", "", "user:1", "user:2", "x" * 100]
PREFIXES = ["a", "ab", "b", "", "user:", "x"]


def tracking(random, redirects):
    words = ["CLIENT", "TRACKING", random.choice(["ON", "ON", "ON", "OFF"])]
    for option, share in (("BCAST", 0.35), ("NOLOOP", 0.25), ("OPTIN", 0.15), ("OPTOUT", 0.15)):
        if random.random() < share:
            words.append(option)
    if "BCAST" in words or random.random() < 0.1:
        for prefix in random.choices(PREFIXES, k=random.choice([0, 0, 1, 1, 2])):
            words += ["PREFIX", prefix]
    if redirects and random.random() < 0.3:
        words += ["REDIRECT", "@%d" % random.randrange(CLIENTS)]
    return words


def command(random, serial, redirects):
    def key():
        return random.choice(KEYS)

    kind = random.choice("GGGGGGMMLLSSSSSDDPPHHEERRNNFTTTTTTCCCIW")
    return {
        "G": lambda: ["GET", key()],
        "M": lambda: ["MGET"] + [key() for _ in range(3)],
        "L": lambda: random.choice([["EXISTS", key(), key()], ["TYPE", key()], ["HLEN", key()],
                                    ["HGET", key(), "f"], ["STRLEN", key()], ["LLEN", key()],
                                    ["GETRANGE", key(), "0", "1"], ["SINTER", key(), key()]]),
        "S": lambda: ["SET", key(), "%d" % serial],
        "D": lambda: ["DEL", key(), key()],
        "P": lambda: ["MSET", key(), "1", key(), "2"],
        "H": lambda: random.choice([["HSET", key(), "f", "1"], ["LPUSH", key(), "1"],
                                    ["LPOP", key()], ["HDEL", key(), "f"], ["APPEND", key(), "x"],
                                    ["INCR", key()], ["GETDEL", key()], ["PERSIST", key()],
                                    ["EXPIRE", key(), "1000"], ["SETNX", key(), "1"]]),
        "E": lambda: ["MULTI"],
        "R": lambda: ["EXEC"],
        "N": lambda: ["RENAME", key(), key()],
        "F": lambda: random.choice([["FLUSHALL"], ["FLUSHDB"], ["SELECT", random.choice("01")],
                                    ["RESET"], ["PING"], ["DISCARD"]]),
        "T": lambda: tracking(random, redirects),
        "C": lambda: ["CLIENT", "CACHING", random.choice(["YES", "NO", "YES", "NO", "X"])],
        "I": lambda: random.choice([["CLIENT", "TRACKINGINFO"], ["CLIENT", "GETREDIR"]]),
        "W": lambda: random.choice([["GET"], ["NOPE"], ["CLIENT", "TRACKING"],
                                    ["CLIENT", "TRACKING", "ON", "NOPE"], ["SET", "a"]]),
    }[kind]()


class Side:
    """The same program on one of the servers."""

    def __init__(self, server):
        self.clients = [server.connect(3) for _ in range(CLIENTS)]
        self.ids = [client.call("CLIENT", "ID") for client in self.clients]

    def close(self):
        for client in self.clients:
            client.close()

    def _plain(self, tree):
        """Ids are the server's own."""
        if isinstance(tree, list):
            return [self._plain(part) for part in tree]
        if isinstance(tree, tuple):
            return tuple(self._plain(part) for part in tree)
        if isinstance(tree, int) and not isinstance(tree, bool) and tree in self.ids:
            return "client %d" % self.ids.index(tree)
        return tree

    def _until(self, client, token):
        told = []
        while True:
            tree = frame(client)
            if tree == token:
                return told
            assert isinstance(tree, Push), tree
            told.append(list(tree))

    def step(self, number, words, at):
        """(reply, what each client is told)"""
        client = self.clients[number]
        words = [str(self.ids[int(w[1:])]) if w[:1] == "@" else w for w in words]
        is_id = words[:2] in (["CLIENT", "GETREDIR"], ["CLIENT", "TRACKINGINFO"])
        client.send(*words)
        told, reply, before = [], frame(client), []
        while isinstance(reply, Push):
            before.append(list(reply))
            reply = frame(client)
        if reply == b"RESET":
            client.hello(3)
        for n in [number] + [n for n in range(CLIENTS) if n != number]:
            # Only now: who sends both at once is told of broadcasts behind the second reply, or
            # between them, as its packets come.
            token = b"token-%d-%d" % (at, n)
            self.clients[n].send("ECHO", token)
            pushes = (before if n == number else []) + self._until(self.clients[n], token)
            told.append((n, sorted(pushes, key=repr)))
        return self._plain(reply) if is_id else reply, told

    def figures(self):
        for client in self.clients:
            client.call("RESET")
            client.decoder.proto = 2
        text = bytes(self.clients[0].call("INFO", "everything")).decode()
        return [line for line in text.splitlines()
                if line.startswith("tracking_total") or line.startswith("tracking_clients")]


def program(random, redirects):
    """Commands; transactions come without a break, for an ECHO would be queued."""
    steps = []
    for serial in range(LENGTH):
        words = command(random, serial, redirects)
        steps.append((random.randrange(CLIENTS), words))
    return steps


def transactions(steps, random, redirects):
    """Puts whole transactions where a MULTI stands, and drops the other words of them.  None with
    redirections: the oracle puts what a connection is told for others in the middle of its EXEC's
    reply."""
    for number, words in steps:
        if words == ["MULTI"] and not redirects:
            inside = [command(random, 7, redirects) for _ in range(random.randrange(5))]
            yield number, [["MULTI"]] + [w for w in inside if w[0] not in (
                "MULTI", "EXEC", "DISCARD", "RESET") and w[:2] != ["CLIENT", "TRACKING"]] + [
                    ["EXEC"]]
        elif words not in (["MULTI"], ["EXEC"], ["DISCARD"]):
            yield number, [words]


def run(side, steps):
    results = []
    for at, (number, group) in enumerate(steps):
        if len(group) == 1:
            results.append((number, group, side.step(number, group[0], at)))
            continue
        replies = []
        for words in group[:-1]:
            client = side.clients[number]
            words = [str(side.ids[int(w[1:])]) if w[:1] == "@" else w for w in words]
            client.send(*words)
            reply = frame(client)
            while isinstance(reply, Push):
                reply = frame(client)
            replies.append(reply)
        last, told = side.step(number, ["EXEC"], at)
        results.append((number, group, (replies + [side._plain(last)], told)))
    return results


@pytest.mark.parametrize("seed", seeds(25))
def test_same_invalidations(server, oracle, threads, seed):
    redirects = threads == 1
    random = generator(seed, "tracking", redirects)
    steps = list(transactions(program(random, redirects), random, redirects))
    results = []
    for target in (server, oracle):
        side = Side(target)
        try:
            results.append(run(side, steps))
            figures = side.figures()
        finally:
            side.close()
        assert figures[0] == "tracking_clients:0"
        results[-1].append(figures if threads == 1 else None)
    for at, (ours, theirs) in enumerate(zip(*results)):
        before = "\n".join("%d: %r" % (n, group) for n, group in steps[max(0, at - 60):at + 1])
        assert ours == theirs, "seed %s, step %d\n%s" % (seed, at, before)
