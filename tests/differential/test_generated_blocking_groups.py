"""Generated programs of several clients, some of whom wait for entries through consumer groups, to
our server and to the oracle: who gets what, and who is told that a group is gone."""

import pytest

from differential.test_generated_blocking import CLIENTS, Side, run_step, unblock
from lib.bounds import eventually
from lib.grammar_stream_group import WaitingGroupGrammar
from lib.resp import Timeout
from lib.seeds import generator, seeds

STEPS = 250


def meaning(raw):
    """The oracle has texts of its own for waiters whose group is gone: since 7.2 they are told what
    their command tells when it finds none."""
    gone = (b"-NOGROUP ", b"-UNBLOCKED the stream key no longer exists")
    return b"gone" if raw.startswith(gone) else raw


class GroupSide(Side):
    def state(self):
        """With all that the entries' delivery leaves, but for times."""
        shown = []
        for key in WaitingGroupGrammar.KEYS:
            shown.append(self.control.call_raw("XRANGE", key, "-", "+"))
            for group in "gh":
                shown.append(self.control.call_raw("XPENDING", key, group))
                rows = self.control.call("XPENDING", key, group, "-", "+", "1000")
                shown.append([row[:2] + row[3:] for row in rows] if isinstance(rows, list) else rows)
        return shown


def check(server, oracle, proto, seed):
    grammar = WaitingGroupGrammar(generator(seed, "blocking-groups", proto))
    ours, theirs = GroupSide(server, proto), GroupSide(oracle, proto)
    program, waiting = [], set()

    def story():
        return "seed %s, program:\n%s" % (seed, "\n".join(map(repr, program)))

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
                assert meaning(got) == meaning(due), "%s\n%s" % (what, story())
        eventually(lambda: ours.blocked() == waiting, "the same ones wait")
        assert ours.state() == theirs.state(), story()
        unblock(grammar, ours, theirs, waiting, program)
    except Timeout as trouble:
        raise AssertionError("no reply, " + story()) from trouble
    finally:
        ours.close()
        theirs.close()


@pytest.mark.parametrize("proto", [2, 3], ids=["resp2", "resp3"])
@pytest.mark.parametrize("seed", seeds(4))
def test_same_replies(server, oracle, proto, seed):
    check(server, oracle, proto, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(60, base=1000))
def test_same_replies_many_seeds(server, oracle, seed):
    for proto in (2, 3):
        check(server, oracle, proto, seed)
