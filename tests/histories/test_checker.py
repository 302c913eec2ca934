"""The checker itself: histories made by hand that are, and that are not, explained by an order."""

import itertools

import pytest

from lib.linearizability import (FOREVER, UNKNOWN, NotLinearizable, Op, check_increments,
                                 check_keys, counter, register, search)
from lib.seeds import generator, seeds


def ops(*rows):
    """(call, ret, name, args, result) each."""
    return [Op(n, call, ret, name, list(args), result)
            for n, (call, ret, name, args, result) in enumerate(rows)]


GOOD = {
    "nothing": [],
    "one after the other": [(0, 1, "SET", [b"a"], b"OK"), (2, 3, "GET", [], b"a")],
    "an overlapping read sees the new": [(0, 9, "SET", [b"a"], b"OK"), (1, 2, "GET", [], b"a")],
    "an overlapping read sees the old": [(0, 9, "SET", [b"a"], b"OK"), (1, 2, "GET", [], None)],
    "two overlapping writes, either last": [
        (0, 5, "SET", [b"a"], b"OK"), (1, 6, "SET", [b"b"], b"OK"), (7, 8, "GET", [], b"a")],
    "two overlapping writes, the other last": [
        (0, 5, "SET", [b"a"], b"OK"), (1, 6, "SET", [b"b"], b"OK"), (7, 8, "GET", [], b"b")],
    "reads that switch once": [
        (0, 20, "SET", [b"a"], b"OK"), (1, 2, "GET", [], None), (3, 4, "GET", [], b"a"),
        (5, 6, "GET", [], b"a")],
    "one SETNX wins": [
        (0, 9, "SETNX", [b"a"], 1), (1, 8, "SETNX", [b"b"], 0), (10, 11, "GET", [], b"a")],
    "GETDEL takes it once": [
        (0, 1, "SET", [b"a"], b"OK"), (2, 9, "GETDEL", [], b"a"), (3, 8, "GETDEL", [], None)],
    "GETSET chain": [
        (0, 9, "GETSET", [b"a"], None), (0, 9, "GETSET", [b"b"], b"a"),
        (0, 9, "GETSET", [b"c"], b"b"), (10, 11, "GET", [], b"c")],
    "an unknown write happened": [
        (0, FOREVER, "SET", [b"a"], UNKNOWN), (5, 6, "GET", [], b"a")],
    "an unknown write did not happen": [
        (0, FOREVER, "SET", [b"a"], UNKNOWN), (5, 6, "GET", [], None)],
    "an unknown write happened late": [
        (0, FOREVER, "SET", [b"a"], UNKNOWN), (5, 6, "GET", [], None), (7, 8, "GET", [], b"a")],
    "DEL counts": [(0, 1, "SET", [b"a"], b"OK"), (2, 3, "DEL", [], 1), (4, 5, "DEL", [], 0)],
}

BAD = {
    "a value from nowhere": [(0, 1, "GET", [], b"x")],
    "a lost write": [(0, 1, "SET", [b"a"], b"OK"), (2, 3, "GET", [], None)],
    "a stale read": [
        (0, 1, "SET", [b"a"], b"OK"), (2, 3, "SET", [b"b"], b"OK"), (4, 5, "GET", [], b"a")],
    "a read from the future": [(0, 1, "GET", [], b"a"), (2, 3, "SET", [b"a"], b"OK")],
    "new, then old": [
        (0, 20, "SET", [b"a"], b"OK"), (1, 2, "GET", [], b"a"), (3, 4, "GET", [], None)],
    "two winners of SETNX": [(0, 9, "SETNX", [b"a"], 1), (1, 8, "SETNX", [b"b"], 1)],
    "GETDEL took it twice": [
        (0, 1, "SET", [b"a"], b"OK"), (2, 9, "GETDEL", [], b"a"), (3, 8, "GETDEL", [], b"a")],
    "GETSET saw the same value twice": [
        (0, 1, "SET", [b"a"], b"OK"), (2, 9, "GETSET", [b"b"], b"a"),
        (3, 8, "GETSET", [b"c"], b"a")],
    "two readers disagree on the order": [
        (0, 50, "SET", [b"a"], b"OK"), (0, 50, "SET", [b"b"], b"OK"),
        (1, 2, "GET", [], b"a"), (3, 4, "GET", [], b"b"), (5, 6, "GET", [], b"a")],
    "an unknown write before its call": [
        (5, 6, "GET", [], b"a"), (7, FOREVER, "SET", [b"a"], UNKNOWN)],
    "deleted, yet read": [
        (0, 1, "SET", [b"a"], b"OK"), (2, 3, "DEL", [], 1), (4, 5, "GET", [], b"a")],
}


@pytest.mark.parametrize("name", sorted(GOOD))
def test_good_registers(name):
    search(ops(*GOOD[name]), register)


@pytest.mark.parametrize("name", sorted(BAD))
def test_bad_registers(name):
    with pytest.raises(NotLinearizable):
        search(ops(*BAD[name]), register)


def test_counters():
    search(ops((0, 9, "INCR", [], 2), (1, 8, "INCR", [], 1), (10, 11, "DECRBY", [5], -3),
               (12, 13, "GET", [], b"-3"), (14, 15, "GETDEL", [], b"-3"),
               (16, 17, "GET", [], None)), counter)
    for bad in ([(0, 1, "INCR", [], 1), (2, 3, "INCR", [], 1)],
                [(0, 9, "INCR", [], 1), (1, 8, "INCR", [], 1)],
                [(0, 1, "INCR", [], 2), (2, 3, "INCR", [], 1)],
                [(0, 1, "INCR", [], 1), (2, 3, "GET", [], b"0")],
                [(0, 9, "INCR", [], 1), (1, 2, "GET", [], b"1"), (3, 4, "GET", [], None)]):
        with pytest.raises(NotLinearizable):
            search(ops(*bad), counter)


GOOD_COUNTS = [
    [(0, 1, "INCR", [], 1), (2, 3, "INCR", [], 2)],
    [(0, 9, "INCR", [], 2), (1, 8, "INCR", [], 1), (3, 4, "GET", [], None)],
    [(0, 9, "INCR", [], 1), (1, 2, "GET", [], b"1"), (3, 4, "GET", [], b"1")],
    [(0, FOREVER, "INCR", [], UNKNOWN), (1, 2, "INCR", [], 2)],
]
BAD_COUNTS = [
    [(0, 1, "INCR", [], 1), (2, 3, "INCR", [], 1)],
    [(0, 1, "INCR", [], 2), (2, 3, "INCR", [], 1)],
    [(0, 9, "INCR", [], 3), (1, 8, "INCR", [], 1)],
    [(0, 1, "INCR", [], 1), (2, 3, "GET", [], None)],
    [(0, 9, "INCR", [], 1), (1, 2, "GET", [], b"1"), (3, 4, "GET", [], None)],
    [(0, 1, "GET", [], b"1"), (2, 3, "INCR", [], 1)],
]


@pytest.mark.parametrize("rows", GOOD_COUNTS)
def test_good_increments(rows):
    check_increments(ops(*rows))


@pytest.mark.parametrize("rows", BAD_COUNTS)
def test_bad_increments(rows):
    with pytest.raises(NotLinearizable):
        check_increments(ops(*rows))


def test_keys_are_independent():
    history = [("a", Op(0, 0, 1, "SET", [b"x"], b"OK")), ("b", Op(0, 2, 3, "GET", [], None))]
    check_keys(history, register)
    with pytest.raises(NotLinearizable, match="key 'a'"):
        check_keys(history + [("a", Op(0, 4, 5, "GET", [], None))], register)


def by_definition(history, model):
    """Try every order: the meaning of the word, for short histories."""
    for order in itertools.permutations(history):
        if any(b.ret < a.call for n, a in enumerate(order) for b in order[n + 1:]):
            continue
        state = None
        for op in order:
            allowed, state = model(state, op)
            if not allowed:
                break
        else:
            return True
    return False


@pytest.mark.parametrize("seed", seeds(4))
def test_against_the_definition(seed):
    """Random short histories, half of them damaged: search and definition agree."""
    random, verdicts = generator(seed, "definition"), []
    for _ in range(150):
        history = []
        for n in range(6):
            call = random.randint(0, 12)
            name = random.choice(["GET", "SET", "GETSET", "SETNX", "GETDEL", "DEL"])
            args = [random.choice([b"a", b"b"])] if name in ("SET", "GETSET", "SETNX") else []
            result = {"SET": b"OK", "SETNX": random.randint(0, 1), "DEL": random.randint(0, 1)}.get(
                name, random.choice([None, b"a", b"b"]))
            history.append(Op(n, call, call + random.randint(1, 8), name, args, result))
        try:
            search(history, register)
            verdict = True
        except NotLinearizable:
            verdict = False
        assert verdict == by_definition(history, register), "seed %d: %r" % (seed, history)
        verdicts.append(verdict)
    assert True in verdicts and False in verdicts


@pytest.mark.parametrize("seed", seeds(3))
def test_one_wrong_reply_in_a_long_history_is_found(seed):
    """A simulated run of 8 clients is accepted; with one reply changed it is refused."""
    random = generator(seed, "long")
    history, state, clock, free = [], None, 0, [0] * 8
    for serial in range(800):
        client = random.randrange(8)
        clock += random.randint(1, 10)
        call = max(free[client], clock - random.randint(0, 20))
        clock = max(clock, call + 1)
        name = random.choice(["GET", "GET", "SET", "GETSET", "SETNX", "GETDEL"])
        args = [b"%d" % serial] if name in ("SET", "GETSET", "SETNX") else []
        op = Op(client, call, call + 1, name, args, UNKNOWN)
        _, after = register(state, op)
        op.result = {"SET": b"OK", "SETNX": int(state is None)}.get(name, state)
        op.ret = clock + random.randint(1, 20)
        state, free[client] = after, op.ret + 1
        history.append(op)
    search(history, register)
    reads = [op for op in history if op.name == "GET" and op.result is not None]
    victim = random.choice(reads[10:])
    victim.result = random.choice([op for op in history if op.name == "SET"
                                   and op.ret < victim.call - 400]).args[0]
    with pytest.raises(NotLinearizable):
        search(history, register)
