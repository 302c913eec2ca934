"""Generated programs of several clients, some of whom wait for entries through consumer groups, to
our server and to the oracle: who gets what, and who is told that a group is gone."""

import re

import pytest

from differential.test_generated_blocking import Round, Side
from lib.grammar_stream_group import WaitingGroupGrammar
from lib.seeds import generator, seeds

STEPS = 250


def meaning(raw):
    """The oracle has texts of its own for waiters whose group is gone: since 7.2 they are told what
    their command tells when it finds none."""
    gone = (b"-NOGROUP ", b"-UNBLOCKED the stream key no longer exists")
    return b"gone" if raw.startswith(gone) else raw


def is_of_before(side, index, _, due, got):
    """When any group of a stream was destroyed, the waiters of others were given the entries behind what they had
    had, though those might be deleted: none, then. Here who waits for another group waits on."""
    nothing = re.fullmatch(rb"(\*1\r\n\*2|%1)\r\n\$\d+\r\n\w+\r\n\*0\r\n", due)
    return nothing is not None and got is None and index in side.blocked()


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
    Round(grammar, lambda: (GroupSide(server, proto), GroupSide(oracle, proto)), is_of_before, meaning).run(STEPS)


@pytest.mark.parametrize("proto", [2, 3], ids=["resp2", "resp3"])
@pytest.mark.parametrize("seed", seeds(4))
def test_same_replies(server, oracle, proto, seed):
    check(server, oracle, proto, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(60, base=1000))
def test_same_replies_many_seeds(server, oracle, seed):
    for proto in (2, 3):
        check(server, oracle, proto, seed)
