"""LCS beside the oracle: lengths around the words that it fills at once, one alphabet after the other, and strings whose
cells are more than one hold fills."""

import pytest

from lib.seeds import generator, seeds

LENGTHS = (0, 1, 2, 63, 64, 65, 127, 128, 129, 300)
ALPHABETS = ("a", "ab", "abcd", "abcdefghijklmnopqrstuvwxyz", "\x00\x7f\x80\xff")
FORMS = ((), ("LEN",), ("IDX",), ("IDX", "MINMATCHLEN", "3", "WITHMATCHLEN"))


def text(random, alphabet, length):
    return "".join(random.choice(alphabet) for _ in range(length)).encode("latin-1")


def compare(client, other, a, b):
    for each in (client, other):
        each.call_raw("MSET", "a", a, "b", b)
    for form in FORMS:
        assert client.call_raw("LCS", "a", "b", *form) == other.call_raw("LCS", "a", "b", *form), (a, b, form)


@pytest.mark.any_threads
@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_lengths_around_words(client, oracle, alphabet, seed):
    random = generator(seed, alphabet)
    with oracle.connect() as other:
        for length in LENGTHS:
            compare(client, other, text(random, alphabet, length), text(random, alphabet, random.choice(LENGTHS)))


@pytest.mark.any_threads
@pytest.mark.parametrize("lengths", [(3000, 2500), (2500, 3000), (0, 3000), (300000, 13)])
def test_more_than_one_hold_fills(client, oracle, lengths):
    random = generator(0, lengths)
    with oracle.connect() as other:
        compare(client, other, *(text(random, "abcdefgh", length) for length in lengths))
