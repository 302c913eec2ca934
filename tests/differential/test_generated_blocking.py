"""Generated programs of several clients, some of whom wait, to our server and to the oracle: who is
served by whom, in which order, with what."""

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

    def state(self):
        return [self.control.call_raw(*words) for key in KEYS
                for words in (["LRANGE", key, "0", "-1"], ["ZRANGE", key, "0", "-1", "WITHSCORES"],
                              ["GET", key])]


def replied_or_waits(side, index):
    def look():
        return "replied" if wait_for(side.clients[index].sock, 0)[0] else \
            "waits" if index in side.blocked() else None

    return eventually(look, "the client has a reply or waits") == "replied"


def run_step(ours, theirs, client, commands, waiting):
    """Runs a step on both; gives [(what, their reply, our reply)] and who waits now."""
    for side in (theirs, ours):
        side.send(client, commands)
    seen = []
    if replied_or_waits(theirs, client):
        for command in commands:
            seen.append((command, theirs.reply(client), ours.reply(client)))
    now = theirs.blocked()
    for index in sorted(waiting - now):
        seen.append(("client %d" % index, theirs.reply(index), ours.reply(index)))
    if client in now:
        eventually(lambda: client in ours.blocked(), "our client waits as theirs does")
    return seen, now


def check(server, oracle, proto, seed):
    grammar = BlockingGrammar(generator(seed, "blocking", proto), CLIENTS)
    ours, theirs = Side(server, proto), Side(oracle, proto)
    program, waiting = [], set()
    try:
        for _ in range(STEPS):
            idle = [i for i in range(CLIENTS) if i not in waiting]
            if len(idle) == 1 and grammar.random.random() < 0.2:
                waiting = unblock(grammar, ours, theirs, waiting, program)
                continue
            client, commands = grammar.step(idle)
            program.append((client, commands))
            seen, waiting = run_step(ours, theirs, client, commands, waiting)
            for what, due, got in seen:
                assert got == due, "%s\nseed %s, program:\n%s" % (
                    what, seed, "\n".join(map(repr, program)))
        eventually(lambda: ours.blocked() == waiting, "the same ones wait")
        assert ours.state() == theirs.state()
        unblock(grammar, ours, theirs, waiting, program)
    except Timeout as trouble:
        raise AssertionError("no reply, seed %s, program:\n%s"
                             % (seed, "\n".join(map(repr, program)))) from trouble
    finally:
        ours.close()
        theirs.close()


def unblock(grammar, ours, theirs, waiting, program):
    """Ends the waiting of all; nobody has been told anything before."""
    program.append("unblock")
    for index in waiting:
        reason = grammar.random.choice(["TIMEOUT", "ERROR"])
        for side in (ours, theirs):
            assert side.control.call("CLIENT", "UNBLOCK", str(side.ids[index]), reason) == 1
        assert ours.reply(index) == theirs.reply(index)
    eventually(lambda: not ours.blocked(), "nobody waits")
    return set()


@pytest.mark.parametrize("proto", [2, 3], ids=["resp2", "resp3"])
@pytest.mark.parametrize("seed", seeds(4))
def test_same_replies(server, oracle, proto, seed):
    check(server, oracle, proto, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(60, base=1000))
def test_same_replies_many_seeds(server, oracle, seed):
    for proto in (2, 3):
        check(server, oracle, proto, seed)
