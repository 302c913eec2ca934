"""8 clients over all server threads; their histories must be explained by an order."""

import pytest

from lib.histories import counter_plans, record, register_plans
from lib.linearizability import check_increments, check_keys, counter, register
from lib.seeds import seeds


@pytest.mark.parametrize("seed", seeds(3))
@pytest.mark.parametrize("batch", [1, 4])
def test_registers(server, seed, batch):
    history = record(server.address(), register_plans(seed, batch=batch, ops=250, keys=3 * batch))
    assert len(history) >= 8 * 250
    check_keys(history, register)


@pytest.mark.parametrize("seed", seeds(3))
def test_counters(server, seed):
    history = record(server.address(), counter_plans(seed))
    check_keys(history, counter)


@pytest.mark.parametrize("seed", seeds(2))
def test_increments_in_deep_pipelines(server, client, seed):
    plans = counter_plans(seed, ops=4000, keys=1, batch=100, only_increments=True)
    history = record(server.address(), plans)
    check_increments([op for _, op in history])
    total = sum(op.name == "INCR" for _, op in history)
    assert client.call("GET", "c0") == b"%d" % total


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(40, base=100))
def test_many_rounds(server, seed):
    check_keys(record(server.address(), register_plans(seed, ops=500)), register)
    check_keys(record(server.address(), counter_plans(seed, ops=500)), counter)
