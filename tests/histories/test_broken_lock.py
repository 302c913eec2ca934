"""A server whose lock is broken on purpose (make broken-lock) must be caught by the histories;
a check that has never failed proves nothing."""

from lib.broken import broken_server, until_caught
from lib.histories import counter_plans, record, register_plans
from lib.linearizability import NotLinearizable, check_increments, check_keys, register


def histories_round(address, seed):
    plans = counter_plans(seed, ops=10_000, keys=1, batch=200, only_increments=True)
    check_increments([op for _, op in record(address, plans)])
    check_keys(record(address, register_plans(seed, ops=300)), register)


def test_the_broken_lock_is_caught():
    until_caught(broken_server(), histories_round, NotLinearizable)
