"""Transactions of 8 clients over all server threads are each one step: totals stay, increments that
were made under WATCH are all there.  A server whose lock is broken on purpose is caught."""

import pytest

from lib.bank import Broken, count_optimistically, move_money
from lib.broken import broken_server, until_caught
from lib.seeds import seeds

pytestmark = pytest.mark.one_thread("one thread is the simplest history")


@pytest.mark.parametrize("seed", seeds(2))
def test_money_is_neither_lost_nor_made(server, seed):
    move_money(server.address(), seed)


@pytest.mark.parametrize("seed", seeds(1))
def test_money_one_transaction_at_a_time(server, seed):
    move_money(server.address(), seed, rounds=150, batch=1)


@pytest.mark.parametrize("seed", seeds(2))
def test_optimistic_increments_lose_nothing(server, seed):
    count_optimistically(server.address(), seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(20, base=100))
def test_many_rounds(server, seed):
    move_money(server.address(), seed, rounds=200)
    count_optimistically(server.address(), seed, rounds=200)


def bank_round(address, seed):
    move_money(address, seed, rounds=30, batch=100)


@pytest.mark.any_threads
def test_the_broken_lock_is_caught():
    until_caught(broken_server(), bank_round, Broken)
