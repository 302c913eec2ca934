"""The chain of recorder and checker finds what a faulty server does, from its replies alone."""

import pytest

from lib.faulty import FaultyProxy
from lib.histories import counter_plans, record, register_plans
from lib.linearizability import NotLinearizable, check_increments, check_keys, register


@pytest.fixture
def faulty(server):
    proxies = []

    def make(fault):
        proxies.append(FaultyProxy(server.address(), fault))
        return proxies[-1].address

    yield make
    for proxy in proxies:
        proxy.close()


@pytest.mark.any_threads
def test_lost_updates_are_found(faulty):
    plans = counter_plans(1, ops=100, keys=1, only_increments=True)
    with pytest.raises(NotLinearizable):
        check_increments([op for _, op in record(faulty("lost updates"), plans)])


@pytest.mark.any_threads
def test_stale_reads_are_found(faulty):
    with pytest.raises(NotLinearizable):
        check_keys(record(faulty("stale reads"), register_plans(1, ops=100)), register)


@pytest.mark.any_threads
def test_the_proxy_without_a_fault_passes(faulty):
    check_keys(record(faulty("none"), register_plans(1, ops=100)), register)
