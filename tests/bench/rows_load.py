"""Rows 1-4, 6, 7, 9 and 14: what operations cost under load."""

import re

from load import Series, pairs, series
from report import Measure, ratio_measure

VALUE_BYTES = 64


def test_arguments(bench, test, pipeline):
    return ["-t", test, "-c", 50, "-P", pipeline, "-r", bench.keys, "-d", VALUE_BYTES]


def cpu_row(bench, row, test, pipeline, goal, unix=False):
    contestants = bench.base_pair()
    windows = pairs(bench, contestants, test_arguments(bench, test, pipeline), unix=unix)
    name = "CPU an op, %s, pipeline %d%s" % (test.upper(), pipeline, ", Unix socket" if unix else "")
    ours, oracle = series(windows["ours"], "cpu_us"), series(windows["oracle"], "cpu_us")
    cost = ratio_measure(row, name, ours, oracle, goal)
    speed = ratio_measure(row, "  ops/s meanwhile", series(windows["ours"], "ops_per_s"),
                          series(windows["oracle"], "ops_per_s"), None, "above", "1/s", 0,
                          load_note(windows))
    return [cost, speed]


def load_note(windows):
    """How busy each side was: a server below 100 % waited for the generator."""
    return "server %.0f/%.0f %%, generator %.0f/%.0f %% busy" % (
        100 * series(windows["ours"], "server_load").median,
        100 * series(windows["oracle"], "server_load").median,
        100 * series(windows["ours"], "generator_load").median,
        100 * series(windows["oracle"], "generator_load").median)


def row_1(bench):
    return cpu_row(bench, 1, "get", 1, 0.75)


def row_2(bench):
    return cpu_row(bench, 2, "get", 32, 0.27)


def row_3(bench):
    return cpu_row(bench, 3, "set", 1, 0.75) + cpu_row(bench, 3, "set", 32, 0.32)


def row_4(bench):
    return cpu_row(bench, 4, "get", 1, 0.55, unix=True)


def row_6(bench):
    """Two threads of ours, or the oracle's one, share both cores with the generator as they like."""
    both = "%s,%s" % (bench.generator.cores, bench.server_core)
    contestants = {"ours": bench.server(bench.ours, 2, both),
                   "oracle": bench.server(bench.oracle, 1, both)}
    for server in contestants.values():
        bench.preload(server, bench.keys)
    measures = []
    for pipeline, goal in ((1, 1.0), (32, 3.0)):
        windows = pairs(bench, contestants, test_arguments(bench, "get", pipeline),
                        cores={"ours": both, "oracle": both})
        ours, oracle = (series(windows[name], "ops_per_s") for name in ("ours", "oracle"))
        measures.append(ratio_measure(6, "2 threads, 2 cores shared, GET, pipeline %d" % pipeline,
                                      ours, oracle, goal, "above", "1/s", 0, load_note(windows)))
        cost = series(windows["ours"], "cpu_us")
        measures.append(Measure(6, "  CPU an op meanwhile", cost.median,
                                series(windows["oracle"], "cpu_us").median, None, None, unit="us"))
    return measures


def row_7(bench):
    """Both sides are ours: four threads on one core against one thread on it."""
    contestants = {"four": bench.server(bench.ours, 4), "one": bench.server(bench.ours, 1)}
    for server in contestants.values():
        bench.preload(server, bench.keys)
    measures = []
    for pipeline in (1, 32):
        windows = pairs(bench, contestants, test_arguments(bench, "get", pipeline))
        measures.append(ratio_measure(
            7, "4 threads on one core, GET, pipeline %d" % pipeline,
            series(windows["four"], "ops_per_s"), series(windows["one"], "ops_per_s"), 0.85, "above",
            "1/s", 0, "'oracle' is our own one thread"))
    return measures


LOCK_FIELD = re.compile(r"lock", re.IGNORECASE)
NUMBER = re.compile(r"^\d+(\.\d+)?$")


def lock_fields(server):
    """Sums over the threads of every numeric field of INFO that speaks of locks, the largest where
    the field is a maximum.  Fields of a thread may stand alone (thread_0_lock_held_ns:5) or in a
    list (thread_0:lock_held_ns=5,...)."""
    try:
        fields = server.info("everything", "threads")
    except Exception:  # an oracle of before INFO with several sections
        fields = server.info("all")
    sums = {}
    for name, text in fields.items():
        items = [(name, text)]
        if "=" in text:
            items = [(name + "_" + word.split("=", 1)[0], word.split("=", 1)[1])
                     for word in text.split(",") if "=" in word]
        for item, value in items:
            if LOCK_FIELD.search(item) and NUMBER.match(value):
                key = re.sub(r"thread_?\d+_", "", item)
                known = sums.get(key, 0.0)
                sums[key] = max(known, float(value)) if "max" in key else known + float(value)
    return sums


def longest_hold_us(server):
    """The longest time the lock was held at once, where INFO tells; None elsewhere."""
    found = [value * TO_NS[name.rsplit("_", 1)[-1]] / 1e3
             for name, value in lock_fields(server).items()
             if "max" in name and name.rsplit("_", 1)[-1] in TO_NS]
    return max(found, default=None)


TO_NS = {"ns": 1.0, "nsec": 1.0, "us": 1e3, "usec": 1e3, "ms": 1e6, "msec": 1e6}


def held_ns(before, after):
    """Nanoseconds held in all modes together, from the fields whose name says held and a unit."""
    total, found = 0.0, False
    for name in after:
        unit = TO_NS.get(name.rsplit("_", 1)[-1])
        if "held" in name and "max" not in name and unit is not None:
            total += (after[name] - before.get(name, 0.0)) * unit
            found = True
    return total if found else None


def row_9(bench):
    server = bench.base_pair()["ours"]
    measures = []
    for test, goal in (("get", 40), ("set", 60)):
        values = []
        changed = {}
        for _ in range(bench.pair_count):
            before = lock_fields(server)
            outcome = bench.generator.run(server, *test_arguments(bench, test, 32), "--duration",
                                          bench.window_s)
            after = lock_fields(server)
            ns = held_ns(before, after)
            if ns is not None:
                values.append(ns / outcome["requests"])
            changed = {name: after[name] - before.get(name, 0.0) for name in after
                       if after[name] != before.get(name, 0.0)}
        name = "time in the lock an op, %s, pipeline 32" % test.upper()
        if values:
            held = Series(values)
            note = ", ".join("%s +%.0f" % item for item in sorted(changed.items())[:6])
            measures.append(Measure(9, name, held.median, None, held.median, goal,
                                    unit="ns (absolute)", digits=1, spread=held.spread, note=note))
        else:
            measures.append(Measure(9, name, None, None, None, goal, unit="ns (absolute)",
                                    note="INFO names no lock_..held_.. field"))
    return measures


def row_14(bench):
    """Both get the same load: 70 % of what the oracle can do."""
    contestants = bench.base_pair()
    mix = ["--mix", "get=1,set=1", "-c", 50, "-r", bench.keys, "-d", VALUE_BYTES]
    most = bench.generator.run(contestants["oracle"], *mix, "--duration", bench.window_s)["rps"]
    rate = round(0.7 * most)
    windows = pairs(bench, contestants, mix + ["--rate", rate], seconds=2 * bench.window_s)
    measures = []
    for point, goal in (("p99.9", 0.7), ("p50", None)):
        ours, oracle = (Series([each.latency_ms[point] * 1e3 for each in windows[name]],
                               sum(not each.quiet for each in windows[name]))
                        for name in ("ours", "oracle"))
        measures.append(ratio_measure(14, "%s at 70 %% of the oracle's load, GET and SET" % point, ours,
                                      oracle, goal, note="%d/s" % rate))
    return measures
