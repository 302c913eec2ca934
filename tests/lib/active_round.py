"""One round of active replicas: nodes in a topology, clients on all of them, and a random program of cuts, stops and ends,
all from one seed. Afterwards every node has the same, and what active_ledger.py asks.

A round that fails prints SEED and TOPOLOGY, which `make test-active-rounds SEED=17 TOPOLOGY=ring` runs again: the same nodes
and the same program; what happens between the two is up to the machine. EVENTS=0,3,4 runs only those of its events.
"""

import os
import shutil
import time

from lib.active import AT_ONCE, call, cut, digest, told
from lib.active_clients import Noise, Producer, Worker, Writer
from lib.active_ledger import DATABASE, Ledger, contents
from lib.bounds import BoundPassed, eventually
from lib.content import content, drop_dying
from lib.links import Links
from lib.replication import replication
from lib.resp import Error
from lib.seeds import generator
from lib.server import Server

HOUR_MS = 3600000


def both_ways(*edges):
    return [(a, b) for edge in edges for a, b in (edge, edge[::-1])]


# (number of nodes, who pulls from whom)
TOPOLOGIES = {
    "pair": (2, both_ways((0, 1))),
    "mesh3": (3, both_ways((0, 1), (0, 2), (1, 2))),
    "mesh4": (4, both_ways((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))),
    "ring": (4, both_ways((0, 1), (1, 2), (2, 3), (3, 0))),
    "circle": (4, [(0, 1), (1, 2), (2, 3), (3, 0)]),
    "star": (4, both_ways((0, 1), (0, 2), (0, 3))),
    "chain": (4, both_ways((0, 1), (1, 2), (2, 3))),
}
# How often each kind of event comes.
EVENTS = {"cut": 3, "one-way": 2, "hold": 3, "mend": 4, "stop": 2, "kill": 2, "end": 1, "file": 2, "close": 2, "burst": 1}


class Plan:
    """What the seed decides."""

    def __init__(self, seed, topology, skews):
        self.seed, self.topology = seed, topology
        count, self.pulls = TOPOLOGIES[topology]
        random = generator(seed, topology, "plan")
        self.random = random
        self.short_logs = random.random() < 0.3
        self.ends = random.random() < 0.6
        self.flushes = random.random() < 0.12
        self.waits = random.choice(["BLPOP", "BZPOPMIN", "XREADGROUP", None])
        self.pace_s = random.choice([0.002, 0.005, 0.02])
        self.noise = random.random() < 0.6
        self.again = random.random() < 0.3  # all from their files at the end
        self.timeout_s = random.choice([None, None, "2"])
        self.nodes = [{"threads": random.choice([1, 4]), "kept": random.choice(["aof", "aof", "rdb"]),
                       "sync": random.choice(["everysec", "always", "no"]), "preamble": random.choice(["yes", "no"]),
                       "skew_ms": random.choice([0, 0, HOUR_MS, -HOUR_MS])} for _ in range(count)]
        if not skews:
            for node in self.nodes:
                node["skew_ms"] = 0
        self.events = [self.event() for _ in range(random.randrange(5, 13))]
        wanted = os.environ.get("EVENTS")
        if wanted:
            self.events = [self.events[int(i)] for i in wanted.split(",")]
        if wanted == "":
            self.events = []

    def event(self):
        """(seconds before it, its name, node, second node, for how long)"""
        random = self.random
        kinds = {k: w for k, w in EVENTS.items() if self.ends or k not in ("kill", "end")}
        if self.flushes:
            kinds["flush"] = 2
        kind = random.choices(list(kinds), list(kinds.values()))[0]
        reader, writer = random.choice(self.pulls)
        lasts = random.choice([0.05, 0.3, 1.0]) if random.random() < 0.9 else 4.0
        return random.choice([0.0, 0.1, 0.3, 0.6]), kind, reader, writer, round(lasts, 2), \
            random.choice(["down", "up", "both"])

    def __str__(self):
        return "\n".join(
            ["SEED=%d TOPOLOGY=%s  logs %s, pops %s, noise %s, pace %s, flushes %s" % (
                self.seed, self.topology, "short" if self.short_logs else "long", self.waits, self.noise, self.pace_s,
                self.flushes)] +
            ["node %d: %s" % (i, about) for i, about in enumerate(self.nodes)] +
            ["event %d: after %g s %s, node %d (from %d), %g s, %s" % (i, *event) for i, event in enumerate(self.events)])


class Round:
    """start() makes servers, run() is the program, check() what must be so afterwards."""

    def __init__(self, plan, make_server):
        self.plan, self.make_server = plan, make_server
        self.links, self.ledger = Links(), Ledger()
        self.nodes, self.clients, self.workers, self.log = [], [], [], []
        self.saved = {}       # when the file of a node was written
        self.ends = []        # (node, when) of those that ended: its window and its logs went
        self.parted = False   # may two sides have given one element
        self.lost = set()     # nodes that lost what they had been told

    # -- nodes

    def options(self, about):
        options = {"repl-backlog-size": "16kb" if self.plan.short_logs else "256mb", "shutdown-timeout": "1",
                   "auto-aof-rewrite-percentage": "0", "save": "", **AT_ONCE}
        if about["kept"] == "aof":
            options.update({"appendonly": "yes", "appendfsync": about["sync"], "aof-use-rdb-preamble": about["preamble"]})
        if self.plan.timeout_s:
            options["repl-timeout"] = self.plan.timeout_s
        return options

    def start(self):
        for number, about in enumerate(self.plan.nodes):
            config = "active-replica yes\nmulti-master yes\n"
            for reader, writer in self.plan.pulls:
                if reader == number:
                    config += "replicaof %s %s\n" % self.place(reader, writer)
            node = self.make_server(self.options(about), config=config, start=False, kind=self.kind(number),
                                    files=["active-node", "appendonlydir", "dump.rdb"])
            node.threads = about["threads"]
            if about["skew_ms"]:
                node.environment = {"KEYDB_ACTIVE_SKEW_MS": str(about["skew_ms"])}
            self.nodes.append(node)
        for number, node in enumerate(self.nodes):
            node.start()
            self.saved[number] = 0
        self.linked()

    def place(self, reader, writer):
        """Where the reader finds the writer."""
        return "127.0.0.1", self.links.add((reader, writer), lambda: self.nodes[writer].address())

    def kind(self, _):
        return Server

    def mend(self):
        self.links.mend()

    def part(self):
        """No link is left."""
        for pair in self.links:
            self.links[pair].cut()

    def linked(self):
        eventually(lambda: all(self.is_linked(i) for i in range(len(self.nodes))), "all links are up", 90, 0.05)

    def is_linked(self, number):
        about = replication(self.nodes[number])
        masters = sum(reader == number for reader, _ in self.plan.pulls)
        return int(about["connected_masters"]) == masters and about["master_global_link_status"] == "up" and \
            int(about["connected_slaves"]) >= sum(writer == number for _, writer in self.plan.pulls)

    # -- clients

    def start_clients(self):
        plan = self.plan
        if plan.waits == "XREADGROUP":
            with self.nodes[0].connect() as c:
                c.ok("SELECT", DATABASE)
                c.ok("XGROUP", "CREATE", "queue", "g", "0", "MKSTREAM")
            self.equal("the group")
        for number, node in enumerate(self.nodes):
            def random(*salt):
                return generator(plan.seed, plan.topology, number, *salt)
            self.clients.append(Writer(number, node, random("writer"), self.ledger, plan.pace_s))
            if plan.noise:
                self.clients.append(Noise(node, random("noise")))
            if plan.waits:
                self.clients.append(Producer(number, node, random("producer"), self.ledger, plan.waits))
                self.workers += [Worker(number, node, random("worker", i), plan.waits) for i in range(2)]
        for client in self.clients + self.workers:
            client.start()

    def end_clients(self, clients):
        for client in clients:
            client.stop()
        for client in clients:
            client.join()
        troubles = [repr(client.trouble) for client in clients if client.trouble]
        assert not troubles, troubles

    # -- events

    def run(self):
        if self.plan.waits:
            self.agree()
        self.start_clients()
        for event in self.plan.events:
            time.sleep(event[0])
            self.happen(*event[1:])
        time.sleep(0.2)

    def happen(self, kind, reader, writer, lasts, side):
        self.log.append("%s %d %d at %d" % (kind, reader, writer, self.ledger.now()))
        getattr(self, "do_" + kind.replace("-", "_"))(reader, writer, lasts, side)

    def do_cut(self, reader, writer, lasts, side):
        self.parted = True
        for pair in ((reader, writer), (writer, reader)):
            if pair in self.links:
                self.links[pair].cut()

    def do_one_way(self, reader, writer, lasts, side):
        self.parted = True
        self.links[reader, writer].cut()

    def do_hold(self, reader, writer, lasts, side):
        self.parted = True
        self.links[reader, writer].hold(up=side != "down", down=side != "up")
        time.sleep(lasts)

    def do_mend(self, reader, writer, lasts, side):
        self.mend()
        time.sleep(lasts / 2)

    def do_stop(self, reader, writer, lasts, side):
        self.parted = True
        with self.nodes[reader].standing_still():
            time.sleep(lasts)

    def forget(self, number):
        """What has come since its file."""
        if self.plan.nodes[number]["kept"] == "rdb":
            self.ledger.lost_since(number, self.saved[number])
            self.lost.add(number)

    def do_kill(self, reader, writer, lasts, side):
        self.parted = True
        node = self.nodes[reader]
        node.kill_all()
        self.ends.append((reader, self.ledger.now()))
        self.forget(reader)
        for name in os.listdir(node.directory):
            if name.startswith("temp-") and not name.endswith(".keys"):  # of children that were killed
                os.unlink(node.file(name))
        time.sleep(lasts)
        node.start()

    def do_end(self, reader, writer, lasts, side):
        self.parted = True
        node = self.nodes[reader]
        if self.plan.nodes[reader]["kept"] == "rdb" and lasts < 1:
            self.do_file(reader, writer, lasts, side)
        node.stop()
        self.ends.append((reader, self.ledger.now()))
        self.forget(reader)
        time.sleep(lasts)
        node.start()

    def do_file(self, reader, writer, lasts, side):
        began = self.ledger.now()
        reply = call(self.nodes[reader], *(["SAVE"] if self.plan.nodes[reader]["kept"] == "rdb" else ["BGREWRITEAOF"]))
        if reply == b"OK":
            self.saved[reader] = began

    def do_close(self, reader, writer, lasts, side):
        self.parted = True
        cut(self.nodes[writer])

    def do_burst(self, reader, writer, lasts, side):
        """More than short logs keep."""
        with self.nodes[reader].connect() as c:
            c.pipeline([["SET", "burst:%d:%d" % (reader, i), "x" * 100] for i in range(1000)])

    def do_flush(self, reader, writer, lasts, side):
        began = self.ledger.now()
        reply = call(self.nodes[reader], "FLUSHALL", *([] if side == "both" else ["ASYNC"]))
        if reply == b"OK":
            self.ledger.flush(reader, began, self.ledger.now(), True)

    # -- the end

    def equal(self, what):
        try:
            eventually(lambda: len({digest(n) for n in self.nodes}) == 1, "equal content", 60, 0.1)
        except BoundPassed as passed:
            facts = [{k: v for k, v in replication(n).items() if k.startswith("active")} for n in self.nodes]
            raise AssertionError("%s: %s\n%s\n%s" % (what, passed, "\n".join(self.differences()), facts)) from None

    def differences(self):
        """The first keys that are not the same everywhere, with digest, type and deadline on each node."""
        found = []
        for node in self.nodes:
            with node.connect() as c:
                found.append(content(c))
        places = sorted(set().union(*found))
        return ["%s: %s" % (place, [f.get(place) for f in found]) for place in places
                if any(f.get(place) != found[0].get(place) for f in found)][:5]

    def check(self):
        self.end_clients(self.clients)
        self.mend()
        self.linked()
        if self.plan.waits:
            self.drain()
        self.end_clients(self.workers)
        self.equal("all links are up")
        eventually(self.is_quiet, "no conflict is left", 90)
        with self.nodes[0].connect() as c:
            drop_dying(c)
        self.equal("afterwards")
        assert not self.differences(), "\n".join(self.differences())
        with self.nodes[-1].connect() as c:
            found = contents(c)
        exact = not (self.plan.short_logs or self.ends or self.plan.flushes)
        # With short logs keys are decided whole again and again, and by states too, which nobody has written.
        strict = not self.plan.short_logs or "STRICT" in os.environ
        wrong = self.ledger.check(found, exact, strict) + self.pops()
        assert not wrong, "%d are wrong: %s" % (len(wrong), "\n".join(wrong[:12] + self.log))
        if self.plan.again:
            self.from_files()

    def is_quiet(self):
        """Nothing is told any more: no conflict goes on for ever."""
        before = told(self.nodes)
        time.sleep(0.4)
        return told(self.nodes) == before and all(conflicts == "0" for _, conflicts in before)

    def drain(self):
        """All that is in the queue is given, and what was given to clients that had gone is put back and given again."""
        def is_empty():
            if len({digest(n) for n in self.nodes}) > 1:
                return False  # something is under way
            with self.nodes[0].connect() as c:
                c.ok("SELECT", DATABASE)
                if self.plan.waits != "XREADGROUP":
                    return not c.call("EXISTS", "queue")
                groups = c.call("XINFO", "GROUPS", "queue")
                if isinstance(groups, Error) or not groups:
                    return True  # FLUSHALL
                last = dict(zip(groups[0][::2], groups[0][1::2]))[b"last-delivered-id"]
                if c.call("XRANGE", "queue", b"(" + last, "+", "COUNT", 1):
                    return False
                # An entry may have gone with a stream that was decided whole (short logs), and was put back since.
                passed = [p[0] for p in c.call("XPENDING", "queue", "g", "-", "+", 10000, "(undelivered)")]
                return not any(c.call("XRANGE", "queue", i, i) for i in passed)

        def stays_empty():
            before = sum(len(w.got) for w in self.workers)
            time.sleep(1.5)
            return is_empty() and before == sum(len(w.got) for w in self.workers)
        eventually(stays_empty, "the queue is empty", 90, 0.05)

    def agree(self):
        """Nobody gives anything alone any more."""
        def look():
            return [(about["active_members"], about["active_members_agree"]) for about in map(replication, self.nodes)]
        try:
            eventually(lambda: look() == [(str(len(self.nodes)), "1")] * len(self.nodes), "they agree", 30, 0.05)
        except BoundPassed as passed:
            raise AssertionError("%s: %s" % (passed, look())) from None

    def pops(self):
        """What is wrong with who was given what."""
        if not self.plan.waits or self.plan.flushes or self.plan.short_logs:
            return []  # with short logs the queue is decided whole, and pushes that the other side does not know go with it
        given = {}
        for worker in self.workers:
            for element, number in worker.got:
                given.setdefault(element, []).append(number)
        pushed = [w for w in self.ledger.writes if w.kind == "queue"]
        missing = ["%s at %d" % (w.element, w.begun) for w in pushed
                   if w.certain and w.element not in given and not self.may_be_lost(w)]
        wrong = []
        if len(missing) > 2 * sum(w.gone for w in self.workers):
            wrong = ["given to nobody: %s%s" % (missing, self.where(missing[0].split()[0]))]
        for element, numbers in sorted(given.items()):
            if len(numbers) > (len(self.nodes) if self.parted else 1) and not self.lost:
                wrong.append("%s was given to %s" % (element, numbers))
        return wrong

    def may_be_lost(self, push):
        """As README.md says: where two nodes ended, each side's memory of the other's pushes may have gone, and the queue was
        decided whole; or who gave an element away and whose client was to have it ended both before that was settled."""
        return len({node for node, _ in self.ends}) > 1 and push.begun < self.ends[-1][1]

    def where(self, element):
        """What is known of an entry of the stream."""
        if self.plan.waits != "XREADGROUP":
            return ""
        with self.nodes[0].connect() as c:
            c.ok("SELECT", DATABASE)
            ids = [i for i, fields in c.call("XRANGE", "queue", "-", "+") if fields[1] == element.encode()]
            return ", %s is %s, pending: %s" % (element, ids, ids and c.call("XPENDING", "queue", "g", ids[0], ids[0], 5))

    def from_files(self):
        """Each begins alone, from what it has on its disk."""
        for number, node in enumerate(self.nodes):
            if self.plan.nodes[number]["kept"] == "rdb":
                with node.connect() as c:
                    c.ok("SAVE")
        self.part()
        before = [digest(node) for node in self.nodes]
        for node in self.nodes:
            node.kill_all()
            node.start()
        assert [digest(node) for node in self.nodes] == before, "from their files"
        self.mend()
        self.linked()
        self.equal("after all were killed")

    def close(self):
        for client in self.clients + self.workers:
            client.stop()
        for node in self.nodes:
            if node.alive() and node.stands_still:
                node.go_on()
        self.links.close()


def run_round(seed, topology, make_server, skews):
    plan = Plan(seed, topology, skews)
    run_plan(plan, Round(plan, make_server))


def run_plan(plan, this):
    """Fails with all that is needed to see why. KEEP_LOGS=folder: what the nodes said is there then."""
    print(plan, flush=True)
    begun = time.monotonic()
    try:
        this.start()
        this.run()
        this.check()
    except BaseException as trouble:
        keep_logs("%s-%d" % (plan.topology, plan.seed), this.nodes)
        raise AssertionError("SEED=%d TOPOLOGY=%s: %s: %.4000s" % (
            plan.seed, plan.topology, type(trouble).__name__, trouble)) from trouble
    finally:
        this.close()
    print("passed: %s; %d pops; %.1f s" % (this.ledger.counts(), sum(len(w.got) for w in this.workers),
                                           time.monotonic() - begun))


def keep_logs(name, nodes):
    folder = os.environ.get("KEEP_LOGS")
    if folder:
        os.makedirs(folder, exist_ok=True)
        for number, node in enumerate(nodes):
            with open(os.path.join(folder, "%s-%d.log" % (name, number)), "w", encoding="utf-8") as file:
                file.write(node.output())
            for kept in ("dump.rdb", "appendonlydir"):
                if os.path.exists(node.file(kept)):
                    shutil.copytree(node.directory, os.path.join(folder, "%s-%d.dir" % (name, number)), dirs_exist_ok=True,
                                    ignore=lambda _, names: [n for n in names if n.endswith("sock")])
                    break


__all__ = ["TOPOLOGIES", "Plan", "Round", "run_plan", "run_round"]
