"""Rows 17-19: loading, saving, and what a log of all writes costs."""

import os
import time

from load import Meanwhile, pairs, result, series
from report import Measure, ratio_measure
from rows_load import VALUE_BYTES

PIECE_KEYS = 50000


# ---- 17: loading

def start_s(server):
    """Seconds from the start of the process until it serves."""
    begin_s = time.monotonic()
    server.start()
    return time.monotonic() - begin_s


def load_rdb_s(bench, path):
    server = bench.server(path)
    bench.preload(server, bench.saved_keys)
    server.call("SAVE")
    server.end_keeping_files()
    return loaded(bench, server)


def loaded(bench, server):
    """The better of two starts with the files that are there."""
    times = []
    for _ in range(2):
        times.append(start_s(server))
        keys = server.call("DBSIZE")
        if keys != bench.saved_keys:
            raise RuntimeError("%d keys instead of %d" % (keys, bench.saved_keys))
        server.end_keeping_files()
    bench.end(server)
    return min(times)


def write_log(path, keys):
    """A log of as many SETs as there are keys, in the form of old: one file."""
    value = b"x" * VALUE_BYTES
    with open(path, "wb") as file:
        file.write(b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n")
        for begin in range(0, keys, PIECE_KEYS):
            file.write(b"".join(b"*3\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n$%d\r\n%s\r\n"
                                % (n, VALUE_BYTES, value)
                                for n in range(begin, min(begin + PIECE_KEYS, keys))))


def load_aof_s(bench, path):
    server = bench.server(path)
    server.end_keeping_files()
    server.options = {"appendonly": ["yes"], "appendfsync": ["no"],
                      "auto-aof-rewrite-percentage": ["0"]}
    write_log(os.path.join(server.directory, "appendonly.aof"), bench.saved_keys)
    return loaded(bench, server)


def row_17(bench):
    measures = []
    for what, measure in (("an RDB file", load_rdb_s), ("an AOF of SETs", load_aof_s)):
        ours, oracle = measure(bench, bench.ours), measure(bench, bench.oracle)
        measures.append(Measure(17, "loading %s of %.3g M keys" % (what, bench.saved_keys / 1e6), ours,
                                oracle, ours / oracle, 0.6, unit="s"))
    return measures


# ---- 18: saving

def saves(server):
    """Runs one BGSAVE to its end; its seconds."""
    begin_s = time.monotonic()
    server.call("BGSAVE")
    while server.info("persistence")["rdb_bgsave_in_progress"] != "0":
        time.sleep(0.02)
    took_s = time.monotonic() - begin_s
    if server.info("persistence")["rdb_last_bgsave_status"] != "ok":
        raise RuntimeError("BGSAVE has failed")
    return took_s


class Writer(Meanwhile):
    """One connection that writes one command after the other meanwhile: its slowest reply."""

    def __init__(self, server):
        super().__init__()
        self.client = server.client()
        self.value = b"y" * VALUE_BYTES
        self.number = 0
        self.worst_s = 0.0

    def step(self):
        self.number = (self.number + 7919) % 100000
        begin_s = time.monotonic()
        self.client.call("SET", "key:%012d" % self.number, self.value)
        self.worst_s = max(self.worst_s, time.monotonic() - begin_s)


def save_figures(bench, path):
    """Seconds of a BGSAVE alone; a writer's worst wait in ms while one runs; bytes copied while all
    keys are rewritten once."""
    both = "%s,%s" % (bench.generator.cores, bench.server_core)
    server = bench.server(path, 1, both)
    bench.preload(server, bench.saved_keys)
    alone_s = saves(server)
    with Writer(server) as writer:
        time.sleep(0.2)
        saves(server)
    writer.client.close()
    load = bench.generator.start(server, "-t", "set", "-n", bench.saved_keys, "-r", bench.saved_keys,
                                 "--sequential", "-P", 32, "-c", 4, "-d", VALUE_BYTES)
    under_load_s = saves(server)
    result(load)
    copied = int(server.info("persistence")["rdb_last_cow_size"])
    used = int(server.info("memory")["used_memory"])
    bench.end(server)
    return {"alone": alone_s, "wait": writer.worst_s * 1e3, "load": under_load_s, "copied": copied / 2**20,
            "used": used / 2**20}


def row_18(bench):
    ours, oracle = save_figures(bench, bench.ours), save_figures(bench, bench.oracle)
    keys = "%.3g M keys" % (bench.saved_keys / 1e6)

    def line(name, figure, unit, digits=2, note=""):
        return Measure(18, name, ours[figure], oracle[figure], ours[figure] / oracle[figure], None,
                       unit=unit, digits=digits, note=note)
    return [line("BGSAVE of " + keys, "alone", "s"),
            line("  a writer's worst wait meanwhile", "wait", "ms"),
            line("  BGSAVE while all keys are rewritten", "load", "s"),
            line("  memory copied meanwhile", "copied", "MiB", 0,
                 "of %.0f/%.0f MiB in use" % (ours["used"], oracle["used"]))]


# ---- 19: the log

POLICIES = ("no log", "no", "everysec", "always")


def with_log(policy):
    if policy == "no log":
        return {}
    return {"appendonly": ["yes"], "appendfsync": [policy], "auto-aof-rewrite-percentage": ["0"]}


def log_rows(bench, threads, cores, pipeline):
    """All policies of ours and of the oracle in turn, so that a noisy minute hits all of them."""
    contestants = {}
    for policy in POLICIES:
        contestants["ours", policy] = bench.server(bench.ours, threads, cores, (), with_log(policy))
        contestants["oracle", policy] = bench.server(bench.oracle, 1, cores, (), with_log(policy))
    arguments = ["-t", "set", "-c", 50, "-P", pipeline, "-r", bench.keys // 10, "-d", VALUE_BYTES]
    windows = pairs(bench, contestants, arguments, cores={name: cores for name in contestants}
                    if "," in cores else None)
    speed = {name: series(of, "ops_per_s") for name, of in windows.items()}
    measures = []
    for policy in POLICIES:
        ours = speed["ours", policy]
        measures.append(ratio_measure(
            19, "SET, AOF %s, pipeline %d, %d thread%s" % (policy, pipeline, threads, "s"[threads == 1:]),
            ours, speed["oracle", policy], 2.0 if policy == "always" else None, "above", "1/s", 0))
        if policy == "everysec":
            plain = speed["ours", "no log"]
            measures.append(Measure(19, "  to our own without a log", ours.median, plain.median,
                                    ours.median / plain.median, 0.95, "above", "1/s", 0))
    bench.end_all()
    return measures


def row_19(bench):
    both = "%s,%s" % (bench.generator.cores, bench.server_core)
    measures = []
    for threads, cores in ((1, bench.server_core), (2, both)):
        for pipeline in (1, 32):
            measures += log_rows(bench, threads, cores, pipeline)
    return measures
