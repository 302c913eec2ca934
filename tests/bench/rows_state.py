"""Rows 8 and 10-13: idleness, memory, large values, growth, long walks."""

import time

from load import Meanwhile, Series, pairs, result, series
from report import Measure, ratio_measure
from rows_load import longest_hold_us

IDLE_THREADS = 16


def row_8(bench):
    measures = []
    shares = {}
    for name, path in (("ours", bench.ours), ("oracle", bench.oracle)):
        server = bench.server(path, IDLE_THREADS)
        time.sleep(1.0)  # what a start leaves behind to do
        before_s, start_s = server.cpu_s(), time.monotonic()
        time.sleep(bench.idle_s)
        shares[name] = (server.cpu_s() - before_s) / (time.monotonic() - start_s) * 100
        bench.end(server)
    measures.append(Measure(8, "idle for %.0f s with %d threads" % (bench.idle_s, IDLE_THREADS),
                            shares["ours"], shares["oracle"], shares["ours"], 0.2,
                            unit="% of a core (absolute)", digits=3))
    return measures


def settled_memory(server):
    """used_memory when it stands still: tables are rehashed and blocks freed after the load."""
    last = -1
    for _ in range(100):
        now = int(server.info("memory")["used_memory"])
        if abs(now - last) < 4096:
            return now
        last = now
        time.sleep(0.2)
    return last


def bytes_a_key(bench, path, value_bytes, with_expiry):
    server = bench.server(path)
    before = settled_memory(server)
    command = ["set", "key:__rand_int__", "__data__"] + (["ex", 1000000] if with_expiry else [])
    bench.generator.run(server, "-n", bench.memory_keys, "-r", bench.memory_keys, "--sequential",
                        "-P", 50, "-c", 10, "-d", value_bytes, *command)
    keys = server.call("DBSIZE")
    if keys != bench.memory_keys:
        raise RuntimeError("%d keys instead of %d" % (keys, bench.memory_keys))
    used = settled_memory(server) - before
    bench.end(server)
    return used / keys


def row_10(bench):
    measures = []
    for value_bytes, with_expiry, goal in ((8, False, 0.50), (64, False, 0.68), (512, False, 0.92),
                                           (64, True, 0.55)):
        ours = bytes_a_key(bench, bench.ours, value_bytes, with_expiry)
        oracle = bytes_a_key(bench, bench.oracle, value_bytes, with_expiry)
        name = "bytes a key of 16, value of %d%s" % (value_bytes, " with expiry" if with_expiry else "")
        measures.append(Measure(10, name, ours, oracle, ours / oracle, goal, unit="B", digits=1))
    return measures


def row_11(bench):
    measures = []
    contestants = {"ours": bench.server(bench.ours), "oracle": bench.server(bench.oracle)}
    for label, size, clients, keys, goal in (("500 kB", 500000, 10, 100, 1.2),
                                             ("5 MB", 5000000, 4, 20, 1.5)):
        for server in contestants.values():
            server.call("FLUSHALL")
            bench.generator.run(server, "-t", "set", "-n", keys, "-r", keys, "--sequential", "-c", 1,
                                "-d", size)
        for test in ("set", "get"):
            arguments = ["-t", test, "-c", clients, "-r", keys, "-d", size]
            windows = pairs(bench, contestants, arguments)
            measures.append(ratio_measure(11, "%s of %s a second" % (test.upper(), label),
                                          series(windows["ours"], "ops_per_s"),
                                          series(windows["oracle"], "ops_per_s"), goal, "above",
                                          "1/s", 0, busy_note(windows)))
    return measures


def busy_note(windows):
    return "server %.0f/%.0f %%, generator %.0f/%.0f %% busy" % tuple(
        100 * series(windows[name], figure).median
        for figure in ("server_load", "generator_load") for name in ("ours", "oracle"))


class Probe(Meanwhile):
    """One connection that asks without a pause, in short runs one after the other, and remembers its
    slowest reply.  Where it may, it runs before all others on the generator's core."""

    def __init__(self, bench, server, keys):
        super().__init__()
        self.bench = bench
        self.server = server
        self.arguments = ["-t", "get", "-c", 1, "-r", keys, "--duration", 0.5]
        self.worst_ms = []

    def step(self):
        process = self.bench.generator.start(self.server, *self.arguments)
        self.bench.prefer(process.pid)
        self.worst_ms.append(result(process)["latency_ms"]["max"])

    @property
    def worst_us(self):
        return max(self.worst_ms) * 1e3


def quiet_worst_us(bench, server, keys):
    """What the probe sees when nothing else happens: the machine's own noise."""
    with Probe(bench, server, keys) as probe:
        time.sleep(1.5)
    return probe.worst_us


SLOWLOG_FROM_US = 50


def slowest_command_us(server):
    """Duration of the slowest command by the server's own clock; None when it keeps no slow log."""
    try:
        entries = server.call("SLOWLOG", "GET", 2000)
    except Exception:
        return None
    return max((entry[2] for entry in entries), default=SLOWLOG_FROM_US)


def grow(bench, path):
    """(worst reply to a probe, quiet probe, slowest command in the server, longest hold of the
    lock), all in us."""
    server = bench.server(path)
    bench.preload(server, bench.grow_from)
    quiet = quiet_worst_us(bench, server, bench.grow_from)
    try:
        server.call("CONFIG", "SET", "slowlog-max-len", 2000)
        server.call("CONFIG", "SET", "slowlog-log-slower-than", SLOWLOG_FROM_US)
        server.call("SLOWLOG", "RESET")
    except Exception:
        pass  # slowest_command_us says that there is none
    with Probe(bench, server, bench.grow_from) as probe:
        bench.generator.run(server, "-t", "set", "-n", bench.grow_to, "-r", bench.grow_to,
                            "--sequential", "-c", 1, "-P", 16, "-d", 64)
    slowest, hold = slowest_command_us(server), longest_hold_us(server)
    keys = server.call("DBSIZE")
    if keys != bench.grow_to:
        raise RuntimeError("%d keys instead of %d" % (keys, bench.grow_to))
    bench.end(server)
    return probe.worst_us, quiet, slowest, hold


def row_12(bench):
    ours, oracle = grow(bench, bench.ours), grow(bench, bench.oracle)
    growth = "growth from %.3g M to %.3g M keys: " % (bench.grow_from / 1e6, bench.grow_to / 1e6)
    note = "by SLOWLOG from %d us" % SLOWLOG_FROM_US
    if ours[3] is not None:
        note += "; longest hold of the lock %.0f us" % ours[3]
    return [
        Measure(12, growth + "slowest command in the server", ours[2], oracle[2], ours[2], 200,
                unit="us (absolute)", digits=0, note=note),
        Measure(12, "  slowest reply to a probe meanwhile", ours[0], oracle[0], None, None, unit="us",
                digits=0, note="on a quiet server %.0f/%.0f us" % (ours[1], oracle[1])),
    ]


def keys_stall(bench, path):
    """(worst replies to a probe during KEYS, quiet probe, seconds of KEYS)."""
    server = bench.server(path)
    bench.preload(server, bench.walk_keys)
    quiet = quiet_worst_us(bench, server, bench.walk_keys)
    stalls, walks = [], []
    with server.client() as client:
        for _ in range(bench.pair_count):
            with Probe(bench, server, bench.walk_keys) as probe:
                time.sleep(0.3)
                start_s = time.monotonic()
                if client.call("KEYS", "nomatch*"):
                    raise RuntimeError("KEYS nomatch* has matched")
                walks.append(time.monotonic() - start_s)
            stalls.append(probe.worst_us / 1e3)
    bench.end(server)
    return Series(stalls), quiet / 1e3, Series(walks)


def row_13(bench):
    ours, oracle = keys_stall(bench, bench.ours), keys_stall(bench, bench.oracle)
    return [
        Measure(13, "KEYS over %.3g M keys: worst stall of others" % (bench.walk_keys / 1e6),
                ours[0].median, oracle[0].median, ours[0].median, 2, unit="ms (absolute)",
                spread=ours[0].spread, note="without KEYS %.2f/%.2f ms" % (ours[1], oracle[1])),
        Measure(13, "  KEYS itself", ours[2].median, oracle[2].median, None, None, unit="s"),
    ]
