"""Generated programs of several clients, some of whom wait, to our server and to the oracle: who is
served by whom, in which order, with what. Where the oracle serves as Redis did before 7.2, both begin anew."""

import re

import pytest

from lib.bounds import eventually
from lib.grammar_blocking import KEYS, BlockingGrammar
from lib.resp import Timeout, wait_for
from lib.seeds import generator, seeds

pytestmark = pytest.mark.one_thread("who waits and who serves are on the same thread")

CLIENTS = 6
STEPS = 250


class Side:
    def __init__(self, server, proto):
        self.control = server.connect()
        eventually(lambda: server.info()["blocked_clients"] == "0", "those of before are gone")
        self.clients = [server.connect(proto) for _ in range(CLIENTS)]
        self.ids = [client.call("CLIENT", "ID") for client in self.clients]
        self.control.ok("FLUSHALL")

    def close(self):
        for client in self.clients + [self.control]:
            client.close()

    def blocked(self):
        """Indices of the clients that wait."""
        lines = self.control.call("CLIENT", "LIST", "ID", *map(str, self.ids)).splitlines()
        waiting = {int(line.split()[0][3:]) for line in lines if b" flags=b" in line}
        return {i for i, number in enumerate(self.ids) if number in waiting}

    def send(self, index, commands):
        for command in commands:
            self.clients[index].send(*command)

    def reply(self, index):
        return self.clients[index].read_reply()[0]

    def type_of(self, key):
        return self.control.call("TYPE", key)

    def state(self):
        return [self.control.call_raw(*words) for key in KEYS
                for words in (["LRANGE", key, "0", "-1"], ["ZRANGE", key, "0", "-1", "WITHSCORES"],
                              ["GET", key])]


def replied_or_waits(side, index):
    def look():
        return "replied" if wait_for(side.clients[index].sock, 0)[0] else \
            "waits" if index in side.blocked() else None

    return eventually(look, "the client has a reply or waits") == "replied"


class ServedAsBefore(Exception):
    """The oracle has served a waiter as Redis did before 7.2: from here on the two differ."""


def keys_of(words):
    """Of a command that waits, in its order."""
    if words[0] in ("BLMPOP", "BZMPOP"):
        return words[3:3 + int(words[2])]
    return words[1:2] if words[0] in ("BLMOVE", "BRPOPLPUSH") else words[1:-1]


def served_from(raw):
    """The key that a reply names, or None."""
    found = re.match(rb"\*\d\r\n\$\d+\r\n(\w+)\r\n", raw)
    return found and found.group(1).decode()


def is_of_before(side, _, words, due, got):
    """Since 7.2 the command of a waiter runs again, from its first key, when any of them is ready; before, it was
    served from that one. Both replies (None: ours is not known yet), and our side behind it."""
    keys = keys_of(words)
    if got is None or served_from(due) not in keys[1:]:
        return False
    earlier = keys[:keys.index(served_from(due))]
    if got.startswith(b"-WRONGTYPE "):
        kind = b"zset" if words[0].startswith("BZ") else b"list"
        return any(side.type_of(key) not in (b"none", kind) for key in earlier)
    return served_from(got) in earlier


def run_step(ours, theirs, client, commands, asked, of_before):
    """Runs a step on both, and gives [(what, their reply, our reply)]; asked is who waits, {index: words}, and is
    brought up to date. ServedAsBefore, when of_before(ours, who, words, their reply, ours or None) says so."""
    for side in (theirs, ours):
        side.send(client, commands)
    seen = []
    if replied_or_waits(theirs, client):
        for command in commands:
            seen.append((command, theirs.reply(client), ours.reply(client)))
    now, late = theirs.blocked(), None
    for index in sorted(set(asked) - now):
        due, got, words = theirs.reply(index), None, asked.pop(index)
        if of_before(ours, index, words, due, None):
            raise ServedAsBefore
        try:
            got = ours.reply(index)
        except Timeout as trouble:  # another one of this step may say why
            late = trouble
            continue
        if got != due and of_before(ours, index, words, due, got):
            raise ServedAsBefore
        seen.append(("client %d" % index, due, got))
    if late:
        raise late
    if client in now:
        eventually(lambda: client in ours.blocked(), "our client waits as theirs does")
        asked[client] = commands[0]
    return seen


class Round:
    """A program on both sides; after what the oracle does as before, the rest of it on new ones."""

    def __init__(self, grammar, make_side, of_before, meaning=lambda raw: raw):
        self.grammar, self.make_side, self.of_before, self.meaning = grammar, make_side, of_before, meaning
        self.program, self.ours, self.theirs, self.asked = [], None, None, {}

    def begin(self):
        self.end()
        self.ours, self.theirs = self.make_side()
        self.program, self.asked = [], {}

    def end(self):
        for side in filter(None, (self.ours, self.theirs)):
            side.close()
        self.ours = self.theirs = None

    def step(self):
        idle = [i for i in range(CLIENTS) if i not in self.asked]
        if len(idle) == 1 and self.grammar.random.random() < 0.2:
            self.unblock()
            return
        client, commands = self.grammar.step(idle)
        self.program.append((client, commands))
        for what, due, got in run_step(self.ours, self.theirs, client, commands, self.asked, self.of_before):
            assert self.meaning(got) == self.meaning(due), what

    def unblock(self):
        """Ends the waiting of all; nobody has been told anything before."""
        self.program.append("unblock")
        for index in self.asked:
            reason = self.grammar.random.choice(["TIMEOUT", "ERROR"])
            for side in (self.ours, self.theirs):
                assert side.control.call("CLIENT", "UNBLOCK", str(side.ids[index]), reason) == 1
            assert self.ours.reply(index) == self.theirs.reply(index)
        eventually(lambda: not self.ours.blocked(), "nobody waits")
        self.asked = {}

    def finish(self):
        eventually(lambda: self.ours.blocked() == set(self.asked), "the same ones wait")
        assert self.ours.state() == self.theirs.state()
        self.unblock()

    def run(self, steps):
        try:
            self.begin()
            for _ in range(steps):
                try:
                    self.step()
                except ServedAsBefore:
                    self.begin()
            self.finish()
        except (AssertionError, Timeout) as trouble:
            raise AssertionError("%s\nprogram:\n%s" % (trouble, "\n".join(map(repr, self.program)))) from trouble
        finally:
            self.end()


def check(server, oracle, proto, seed):
    grammar = BlockingGrammar(generator(seed, "blocking", proto), CLIENTS)
    Round(grammar, lambda: (Side(server, proto), Side(oracle, proto)), is_of_before).run(STEPS)


@pytest.mark.parametrize("proto", [2, 3], ids=["resp2", "resp3"])
@pytest.mark.parametrize("seed", seeds(4))
def test_same_replies(server, oracle, proto, seed):
    check(server, oracle, proto, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(60, base=1000))
def test_same_replies_many_seeds(server, oracle, seed):
    for proto in (2, 3):
        check(server, oracle, proto, seed)


@pytest.mark.parametrize("words, due, got, is_so", [
    (["BLPOP", "a", "b", "0"], b"*2\r\n$1\r\nb\r\n$1\r\n1\r\n", b"*2\r\n$1\r\na\r\n$1\r\n1\r\n", True),
    (["BLPOP", "b", "a", "0"], b"*2\r\n$1\r\nb\r\n$1\r\n1\r\n", b"*2\r\n$1\r\na\r\n$1\r\n1\r\n", False),
    (["BLPOP", "a", "b", "0"], b"*2\r\n$1\r\nb\r\n$1\r\n1\r\n", b"*2\r\n$1\r\nb\r\n$1\r\n2\r\n", False),
    (["BLPOP", "a", "b", "0"], b"*2\r\n$1\r\nb\r\n$1\r\n1\r\n", b"-WRONGTYPE x\r\n", True),
    (["BLPOP", "c", "b", "0"], b"*2\r\n$1\r\nb\r\n$1\r\n1\r\n", b"-WRONGTYPE x\r\n", False),
    (["BZMPOP", "0", "2", "a", "b", "MIN"], b"*2\r\n$1\r\nb\r\n*1\r\n", b"-WRONGTYPE x\r\n", True),
    (["BLMOVE", "a", "b", "LEFT", "LEFT", "0"], b"$1\r\n1\r\n", b"-WRONGTYPE x\r\n", False),
])
def test_what_is_of_before(words, due, got, is_so):
    """What these tests let pass is this, and no more."""
    class Sides:
        def type_of(self, key):
            return b"string" if key == "a" else b"none"

    assert is_of_before(Sides(), 0, words, due, got) == is_so
