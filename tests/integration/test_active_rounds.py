"""Active replicas in all topologies, each round with nodes, clients and a program of cuts, stops and ends from one seed
(lib/active_round.py). Not in the gate: `make test-active-rounds`, and the part `active` of `make test-all`."""

import pytest

from lib.active import has_seams
from lib.active_round import TOPOLOGIES, run_round
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
