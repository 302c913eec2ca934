"""Active replicas in all topologies, each round with nodes, clients and a program of cuts, stops and ends from one seed
(lib/active_round.py). Not in the gate: `make test-active-rounds`, and the part `active` of `make test-all`."""

import pytest

from lib.active import has_seams
from lib.active_clients import Worker
from lib.active_round import TOPOLOGIES, run_round
from lib.resp import Closed
from lib.rounds import USUAL, rounds
from lib.seeds import seeds
from lib.server import is_redis, server_path


@pytest.mark.long
@pytest.mark.rounds
@pytest.mark.any_threads  # each node has 1 or 4, as its round says
@pytest.mark.parametrize("seed", seeds(rounds(1, USUAL)))
@pytest.mark.parametrize("topology", sorted(TOPOLOGIES))
def test_round(make_server, topology, seed):
    if is_redis(server_path()):
        pytest.skip("Redis has no active replicas")
    run_round(seed, topology, make_server, has_seams())


@pytest.mark.any_threads
def test_a_worker_whose_node_ends_while_it_acknowledges():
    """What came in one reply was given, all of it."""
    class Connection:
        def call(self, name, *_):
            if name == "XREADGROUP":
                return [[b"queue", [[b"1-1", [b"e", b"n0-q1"]], [b"1-2", [b"e", b"n0-q2"]]]]]
            raise Closed(name)

    worker = Worker(3, None, None, "XREADGROUP")
    with pytest.raises(Closed):
        worker.step(Connection())
    assert worker.got == [("n0-q1", 3), ("n0-q2", 3)]
