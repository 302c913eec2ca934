"""The comparison itself: what differs is found, cut down and told; what may differ passes."""

import pytest

from lib.differences import Difference
from lib.differential import Pair, Reply, first_mismatch, rule_for
from lib.faulty import FaultyProxy
from lib.grammar import GENERIC, STRINGS, Grammar, split_outside, templates
from lib.resp import Connection, Decoder
from lib.seeds import generator

pytestmark = pytest.mark.any_threads


def reply(raw, proto=2):
    decoder = Decoder(proto)
    decoder.feed(raw)
    return Reply(*decoder.next())


@pytest.mark.parametrize("words,ours,theirs,same", [
    (b"GET k", b"$1\r\nx\r\n", b"$1\r\nx\r\n", True),
    (b"GET k", b"$1\r\nx\r\n", b"$1\r\ny\r\n", False),
    (b"GET k", b"+x\r\n", b"$1\r\nx\r\n", False),
    (b"TTL k", b":100\r\n", b":98\r\n", True),
    (b"TTL k", b":100\r\n", b":50\r\n", False),
    (b"TTL k", b":-1\r\n", b":1\r\n", False),
    (b"TTL k", b"-ERR x\r\n", b"-ERR y\r\n", False),
    (b"KEYS *", b"*2\r\n+a\r\n+b\r\n", b"*2\r\n+b\r\n+a\r\n", True),
    (b"KEYS *", b"*2\r\n+a\r\n+b\r\n", b"*2\r\n+b\r\n+c\r\n", False),
    (b"RANDOMKEY", b"$1\r\na\r\n", b"$1\r\nb\r\n", True),
    (b"RANDOMKEY", b"$1\r\na\r\n", b"$-1\r\n", False),
    (b"TIME x", b"-ERR a\r\n", b"-ERR b\r\n", False),
    (b"CLIENT ID", b":1\r\n", b":7\r\n", True),
    (b"CLIENT ID", b":1\r\n", b"$1\r\n7\r\n", False),
    (b"COMMAND", b"*0\r\n", b"*1\r\n:1\r\n", True),
    (b"COMMAND GETKEYS GET k", b"*0\r\n", b"*1\r\n:1\r\n", False),
])
def test_rules(words, ours, theirs, same):
    program = [words.split()]
    found = first_mismatch(program, [reply(ours)], [reply(theirs)], [])
    assert (found is None) == same, rule_for(program[0])[0]


@pytest.mark.parametrize("words,ours,theirs", [
    (b"TTL k", b":100\r\n", b":80\r\n"),
    (b"PEXPIRETIME k", b":4000000020000\r\n", b":4000000000000\r\n"),
    (b"XPENDING s g", b"*1\r\n*4\r\n+1-1\r\n+c\r\n:0\r\n:1\r\n", b"*1\r\n*4\r\n+1-1\r\n+c\r\n:20000\r\n:1\r\n"),
])
def test_times_may_differ_by_what_the_run_took(words, ours, theirs):
    """On a machine that stands still for twenty seconds between the two servers."""
    program = [words.split() + [b"-", b"+", b"9"] * words.startswith(b"X")]
    a, b = reply(ours), reply(theirs)
    assert first_mismatch(program, [a], [b], [])
    a.took_s = b.took_s = 16
    assert not first_mismatch(program, [a], [b], [])


def test_intended_differences_cover_only_what_they_name():
    known = [Difference("GET", "for this test", ours=lambda r: r.raw == b"+a\r\n")]
    a, b, c = reply(b"+a\r\n"), reply(b"+b\r\n"), reply(b"+c\r\n")
    assert first_mismatch([[b"get", b"k"]], [a], [b], known) is None
    assert first_mismatch([[b"get", b"k"]], [c], [b], known) is not None
    assert first_mismatch([[b"STRLEN", b"k"]], [a], [b], known) is not None


class Behind:
    """A server as the comparison sees it, with a proxy before it."""

    def __init__(self, proxy):
        self.proxy = proxy

    def connect(self):
        return Connection(self.proxy.address)


def test_a_wrong_server_is_found_and_the_program_cut_down(oracle):
    """The proxy miscounts; two commands are enough to show it."""
    proxy = FaultyProxy(oracle.address(), "off by one")
    try:
        program = Grammar(generator(1), templates(STRINGS)).program(200)
        program += [[b"SET", b"k", b"1"]] + [[b"GET", b"k"]] * 20 + [[b"STRLEN", b"k"]]
        with pytest.raises(AssertionError, match="KEYDB_TEST_SEED=77") as failure:
            Pair(Behind(proxy), oracle, 2, []).check(program, 77)
        told = str(failure.value).split("the last of\n")[1].split("\nours:")[0].split("\n")
        assert len(told) == 2 and "strlen" in told[-1].lower()
    finally:
        proxy.close()


def test_the_grammar_uses_every_template_and_every_word():
    for text in (STRINGS, GENERIC):
        program = Grammar(generator(1), templates(text)).program(4000)
        used = {words[0].upper() for words in program}
        assert {t.split()[0].encode() for t in templates(text)} <= used
        assert not any(w in (b"relative", b"milliseconds", b"offset", b"pair") for words in program
                       for w in words)
    assert split_outside("A {B|C}|D") == ["A {B|C}", "D"]


def test_the_same_seed_gives_the_same_program():
    one, two = (Grammar(generator(5, "x"), templates(GENERIC)).program(50) for _ in range(2))
    assert one == two
