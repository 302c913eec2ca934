"""Rows 23-29: what it costs to be an active node, beside a plain primary of ours with as many replicas."""

import statistics
import time

from callgrind import an_operation
from load import pairs, result, series
from report import Measure, ratio_measure
from rows_instructions import CLIENTS, KEYS
from rows_load import test_arguments
from rows_state import Probe, quiet_worst_us, settled_memory

BOUND_S = 900.0
ACTIVE = {"active-replica": ["yes"], "multi-master": ["yes"]}
AT_ONCE = {"repl-diskless-sync-delay": ["0"], "client-output-buffer-limit": ["replica 0 0 0"],
           "enable-debug-command": ["local"]}
VALUE_BYTES = 64
# Of row 26: so that entries of keys of 16 take all places within the allocator's classes, which are 16 bytes apart up to
# 128 and then 32.  (Of 200 two more would just miss one, and cost 32.)
MEMORY_VALUES = range(8, 185, 8)
SWEPT_S = 4.0  # after which a write has left the window of nodes at rest, and what was kept for readers the logs


def wait_for(condition, what, pause_s=0.02):
    deadline_s = time.monotonic() + BOUND_S
    while not condition():
        if time.monotonic() > deadline_s:
            raise RuntimeError("not within %.0f s: %s" % (BOUND_S, what))
        time.sleep(pause_s)


def link(server, other):
    server.call("REPLICAOF", "127.0.0.1", other.port)


def is_linked(server):
    return server.info("replication").get("master_link_status") == "up"


def options_of(active, backlog):
    return dict(AT_ONCE, **(ACTIVE if active else {}), **{"repl-backlog-size": [backlog]})


def join(bench, first, others, active, options, cores=None):
    """So many servers that have the first one's data set: its peers, or its replicas."""
    rest = [bench.server(bench.ours, cores=cores or bench.generator.cores, options=options) for _ in range(others)]
    for other in rest:
        link(other, first)
        if active:
            link(first, other)
    for server in rest + ([first] if active and rest else []):
        wait_for(lambda s=server: is_linked(s), "link")
    return rest


def group(bench, others, active, backlog="256mb", cores=None):
    """A server that is written to, and so many others that have its data set."""
    options = options_of(active, backlog)
    first = bench.server(bench.ours, cores=cores, options=options)
    return [first] + join(bench, first, others, active, options, cores)


def counted(server):
    return server.call("DBSIZE")


def in_step(first, rest):
    """Whether all that the first has was sent and is there. A mark that is written last is there last."""
    mark = "mark:%d" % time.monotonic_ns()
    first.call("SET", mark, "1")
    for other in rest:
        wait_for(lambda o=other: o.call("GET", mark) is not None, "mark", 0.005)
    first.call("DEL", mark)


def row_23(bench):
    """A window counts until the others have everything, so that what is sent later is not left out."""
    measures = []
    arguments = test_arguments(bench, "set", 32)
    for others, goal in ((1, 1.5), (2, 1.8)):
        groups = {name: group(bench, others, name == "active") for name in ("active", "plain")}
        contestants = {name: servers[0] for name, servers in groups.items()}
        rest = {servers[0]: servers[1:] for servers in groups.values()}
        sent = {}

        def settle(_, server, rest=rest):
            in_step(server, rest[server])

        def net_bytes(server):
            return int(server.info("stats")["total_net_repl_output_bytes"])

        for server in contestants.values():
            bench.preload(server, bench.keys)
            in_step(server, rest[server])
        windows = pairs(bench, contestants, arguments, before=settle)
        for name, server in contestants.items():
            in_step(server, rest[server])
            before, operations = net_bytes(server), bench.keys
            bench.preload(server, operations)
            in_step(server, rest[server])
            sent[name] = (net_bytes(server) - before) / operations / others
        label = "%d peer%s or replica%s" % (others, "s" * (others > 1), "s" * (others > 1))
        measures.append(ratio_measure(23, "CPU of a SET, pipeline 32, " + label, series(windows["active"], "cpu_us"),
                                      series(windows["plain"], "cpu_us"), goal))
        raw = sent["plain"]
        measures.append(Measure(24, "bytes a SET of %d and a link, " % VALUE_BYTES + label, sent["active"], raw,
                                sent["active"] / raw, 1.3, unit="B", digits=1))
        bench.end_all()
    return measures


def seen_after_us(first, other, count):
    """Times from a SET here until a GET there has it."""
    found = []
    with first.client() as writes, other.client() as reads:
        for i in range(count):
            value = b"%d" % i
            start_s = time.perf_counter()
            writes.call("SET", "seen", value)
            while reads.call("GET", "seen") != value:
                pass
            found.append((time.perf_counter() - start_s) * 1e6)
    return found


def row_25(bench):
    measures = []
    found = {}
    for name in ("active", "plain"):
        servers = group(bench, 1, name == "active", cores="0,1")
        seen_after_us(*servers, 200)
        found[name] = seen_after_us(*servers, 20000 if bench.keys > 100000 else 2000)
        bench.end_all()
    for share in (50, 99):
        ours, plain = (statistics.quantiles(found[name], n=100)[share - 1] for name in ("active", "plain"))
        measures.append(Measure(25, "from SET here to GET there, p%d" % share, ours, plain, ours / plain, None,
                                unit="us", digits=0, note="asked by a script"))
    return measures


def filled(bench, servers, letter, count):
    """(bytes, keys) of the first server, at rest, with so many keys more of each size."""
    for size in MEMORY_VALUES:
        bench.generator.run(servers[0], "-n", count, "-r", count, "--sequential", "-P", 50, "-c", 10, "-d", size,
                            "set", "%s%03d__rand_int__" % (letter, size), "__data__")
    in_step(servers[0], servers[1:])
    time.sleep(SWEPT_S)
    return settled_memory(servers[0]), counted(servers[0])


def row_26(bench):
    """Written while both are linked, with the logs full before and the window empty after, so that nothing but what a key
    costs for good is counted.  Of values of several sizes, for those of one size cost what the allocator's next class does."""
    used = {}
    count = bench.memory_keys // len(MEMORY_VALUES)
    for name in ("active", "plain"):
        servers = group(bench, 1, name == "active", "1mb")
        first_used, first_keys = filled(bench, servers, "a", count // 8)
        used_bytes, keys = filled(bench, servers, "b", count)
        used[name] = (used_bytes - first_used) / (keys - first_keys)
        bench.end_all()
    return [Measure(26, "bytes a key more as an active node", used["active"] - used["plain"], used["plain"],
                    used["active"] - used["plain"], 16, unit="B (absolute)", digits=1,
                    note="the column `oracle` is a whole key of a plain primary")]


def check_equal(servers):
    if len({server.call("DEBUG", "DIGEST") for server in servers}) != 1:
        raise RuntimeError("the nodes differ")


def is_agreed(servers):
    for server in servers:
        in_step(server, [other for other in servers if other is not server])
    return all(server.info("replication")["active_conflicts"] == "0" for server in servers)


def agree(servers):
    """Each has what the others had, and has told what is to stand of each key: what was told last has come, too."""
    wait_for(lambda: is_agreed(servers) and is_agreed(servers), "agreement")


def resident_mb(server):
    with open("/proc/%d/status" % server.pid, encoding="ascii") as file:
        facts = dict(line.split(":", 1) for line in file)
    return {name: int(facts[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")}


def cut_for(bench, seconds, rate, backlog):
    """Both sides written to while nothing joins them: seconds from the new link until they are equal."""
    servers = group(bench, 1, True, backlog, cores="0,1")
    keys = bench.keys // 10
    for server in servers:
        bench.generator.run(server, "-t", "set", "-n", keys, "-r", keys, "--sequential", "-P", 50, "-c", 10, "-d", 64)
    in_step(servers[0], servers[1:])
    in_step(servers[1], servers[:1])
    for server in servers:
        server.call("REPLICAOF", "NO", "ONE")
    loads = [bench.generator.start(server, "-t", "set", "-r", keys, "-d", 64, "-c", 10, "--rate", rate, "--seed", n,
                                   "--duration", seconds) for n, server in enumerate(servers)]
    written = sum(result(load)["requests"] for load in loads)
    with Probe(bench, servers[0], keys) as probe:
        start_s = time.monotonic()
        link(servers[0], servers[1])
        link(servers[1], servers[0])
        wait_for(lambda: all(is_linked(s) for s in servers), "links")
        linked_s = time.monotonic() - start_s
        agree(servers)
        agreed_s = time.monotonic() - start_s
    check_equal(servers)
    whole = sum(int(s.info("stats")["sync_full"]) for s in servers)
    bench.end_all()
    return agreed_s, "%d writes; links up after %.1f s; slowest reply to a probe %.1f ms; %s" % (
        written, linked_s, probe.worst_us / 1e3, "%d data sets sent" % whole if whole > 1 else "by the logs")


def row_27(bench):
    seconds = 60 if bench.keys > 100000 else 5
    measures = []
    for backlog in ("256mb", "1mb"):
        took, note = cut_for(bench, seconds, 10000, backlog)
        measures.append(Measure(27, "agree after %d s apart, 10,000 writes a second each, window of %s" % (
            seconds, backlog), took, None, None, None, unit="s (absolute)", note=note))
    return measures


def row_28(bench):
    """Two filled nodes that never met; half of the keys are on both."""
    options = options_of(True, "256mb")
    servers = [bench.server(bench.ours, cores="0,1", options=options) for _ in range(2)]
    keys = bench.keys * 10
    fill = ["-n", keys, "-r", keys, "--sequential", "-P", 50, "-c", 10, "-d", 64]
    bench.generator.run(servers[0], "-t", "set", *fill)
    bench.generator.run(servers[1], "-n", keys // 2, *fill[2:], "set", "other:__rand_int__", "__data__")
    bench.generator.run(servers[1], "-t", "set", "-n", keys // 2, *fill[2:])
    before = [resident_mb(server)["VmRSS"] for server in servers]
    quiet = quiet_worst_us(bench, servers[0], keys)
    with Probe(bench, servers[0], keys) as probe:
        start_s = time.monotonic()
        link(servers[0], servers[1])
        link(servers[1], servers[0])
        expected = keys + keys // 2
        wait_for(lambda: all(is_linked(s) and counted(s) == expected for s in servers), "all keys on both", 0.1)
        took = time.monotonic() - start_s
        agree(servers)
        agreed_s = time.monotonic() - start_s
    check_equal(servers)
    peak = [resident_mb(server)["VmHWM"] for server in servers]
    bench.end_all()
    return [Measure(28, "first contact of two nodes with %.3g M keys each" % (keys / 1e6), took, None, None, None,
                    unit="s (absolute)",
                    note="no key in conflict after %.1f s; resident before %.0f and %.0f MB, at most %.0f and %.0f; slowest "
                         "reply to a probe %.1f ms (%.1f before)" % (agreed_s, *before, *peak, probe.worst_us / 1e3,
                                                                    quiet / 1e3))]


def instructions(bench, active, others):
    """User instructions a SET, with the logs full, so that for each write another one leaves them."""
    options = options_of(active, "1mb")

    def use(server, requests):
        rest = join(bench, server, others, active, options)
        arguments = ["-t", "set", "-r", KEYS, "-d", VALUE_BYTES]
        bench.generator.run(server, "-n", 2 * KEYS, "--sequential", "-P", 50, "-c", 1, *arguments)
        in_step(server, rest)
        bench.generator.run(server, "-n", requests, "-c", CLIENTS, "-P", 32, "--seed", 1, *arguments)
        in_step(server, rest)
        for other in rest:
            bench.end(other)

    return sum(an_operation(bench, bench.ours, use, 32, options).values())


def row_29(bench):
    measures = []
    for others in (0, 1, 2):
        ours, plain = (instructions(bench, active, others) for active in (True, False))
        measures.append(Measure(29, "user instructions a SET, pipeline 32, %d peer%s or replica%s" % (
            others, "s" * (others != 1), "s" * (others != 1)), ours, plain, ours / plain, None,
            unit="instructions", digits=0))
    return measures
