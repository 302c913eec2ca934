"""Active replicas over a network of their own, in namespaces (lib/namespaces.py): cables that are pulled, packets that get lost
in one direction, delays, and nodes whose address changes. Needs root."""

import pytest

from lib.active import OPTIONS, call, check_equal, check_quiet, has_seams, is_up
from lib.active_round import Plan, Round, run_plan
from lib.bounds import eventually
from lib.namespaces import PORT, Network, NoNetwork
from lib.replication import replication
from lib.rounds import rounds
from lib.seeds import seeds
from lib.server import is_redis, server_path

pytestmark = pytest.mark.long


@pytest.fixture
def network():
    """network(3): its namespaces go at the end, whatever happens."""
    made = []

    def make(count):
        if is_redis(server_path()):
            pytest.skip("Redis has no active replicas")
        try:
            made.append(Network(count).__enter__())
        except NoNetwork as reason:
            pytest.skip("no network namespaces: %s" % reason)
        return made[0]
    yield make
    for one in made:
        one.__exit__()


class NetworkRound(Round):
    """The events of a round, by the network itself."""

    def __init__(self, plan, make_server, network):
        super().__init__(plan, make_server)
        self.network = network

    def place(self, number, writer):
        return self.network.address(writer), PORT

    def kind(self, number):
        return self.network.server(number)

    def do_cut(self, reader, writer, lasts, side):
        self.parted = True
        self.network.unplug(reader)

    def do_one_way(self, reader, writer, lasts, side):
        self.parted = True
        self.network.drop(writer, reader)

    def do_hold(self, reader, writer, lasts, side):
        if side != "up":
            self.do_one_way(reader, writer, lasts, side)
        if side != "down":
            self.do_one_way(writer, reader, lasts, side)

    def mend(self):
        self.network.mend()

    def part(self):
        for number in range(len(self.nodes)):
            self.network.unplug(number)


@pytest.mark.rounds
@pytest.mark.any_threads
@pytest.mark.parametrize("seed", seeds(rounds(1, 50)))
@pytest.mark.parametrize("topology", ["pair", "mesh3", "chain"])
def test_round(make_server, network, topology, seed):
    plan = Plan(seed, topology, has_seams())
    plan.timeout_s = "2"  # what is silent is given up
    made = network(len(plan.nodes))
    run_plan(plan, NetworkRound(plan, make_server, made))


def pair(make_server, made, names=("", "")):
    """Two that pull from one another, by address or by name."""
    nodes = []
    for number in range(2):
        other = names[1 - number] or made.address(1 - number)
        nodes.append(make_server(dict(OPTIONS, **{"repl-timeout": "2"}), kind=made.server(number), files=["active-node"],
                                 config="active-replica yes\nmulti-master yes\nreplicaof %s %s\n" % (other, PORT)))
    eventually(lambda: all(is_up(n, 1) and replication(n)["master_link_status"] == "up" for n in nodes), "links", 60)
    return nodes


def count_up(nodes):
    for node in nodes:
        assert call(node, "INCR", "n") > 0


def check_count(nodes, count, what):
    eventually(lambda: all(call(n, "GET", "n") == b"%d" % count for n in nodes), what, 60)
    check_equal(nodes, what)


def test_a_name_whose_address_changes(make_server, network):
    """The link is made anew to the address that the name has then."""
    made = network(2)
    made.name(0, "b.test", made.address(1))
    a, b = pair(make_server, made, ("", "b.test"))
    count_up([a, b])
    check_count([a, b], 2, "before")
    made.move(1, "10.77.0.201")
    count_up([a, b])
    made.name(0, "b.test", made.address(1))
    check_count([a, b], 4, "by the name")
    count_up([a, b])
    check_count([a, b], 6, "goes on")
    check_quiet([a, b])


def test_an_address_that_changes(make_server, network):
    """Whoever is told of the new one goes on where it was."""
    made = network(2)
    a, b = pair(make_server, made)
    count_up([a, b])
    check_count([a, b], 2, "before")
    old = made.address(1)
    made.move(1, "10.77.0.201")
    count_up([a, b])
    with a.connect() as c:
        c.ok("REPLICAOF", made.address(1), PORT)
        c.ok("REPLICAOF", "REMOVE", old, PORT)
    check_count([a, b], 4, "at the new one")
    assert replication(a)["active_origins"] == "2" and "gets everything" not in a.output() + b.output()
    check_quiet([a, b])


def test_late_and_lost(make_server, network):
    """50 ms each way, and one packet of twenty lost."""
    made = network(2)
    try:
        for number in range(2):
            made.disturb(number, "delay", "50ms", "20ms", "loss", "5%")
    except NoNetwork as reason:
        pytest.skip(str(reason))
    nodes = pair(make_server, made)
    for _ in range(200):
        count_up(nodes)
    check_count(nodes, 400, "late and lost")
    check_quiet(nodes)
