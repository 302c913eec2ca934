"""Row 5: user instructions an operation, as the difference of two runs of different length under
callgrind: what a start, connections and the end cost is in both."""

import os
import re

from report import Measure

CLIENTS = 50
KEYS = 10000


def total_instructions(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        found = re.findall(r"^(?:summary|totals): (\d+)", file.read(), re.MULTILINE)
    if not found:
        raise RuntimeError("callgrind has left no totals in " + path)
    return int(found[-1])


def run_of(bench, path, test, pipeline, requests):
    server = bench.server(path, wrapper=["valgrind", "--tool=callgrind", "-q",
                                         "--callgrind-out-file=callgrind.%p"])
    pid = server.pid
    load = ["-c", CLIENTS, "-P", pipeline, "-r", KEYS, "-d", 64, "--seed", 1]
    bench.generator.run(server, "-t", "set", "-n", KEYS, "--sequential", "-P", 50, "-c", 1, "-r", KEYS,
                        "-d", 64)
    bench.generator.run(server, "-t", test, "-n", requests, *load)
    server.end_keeping_files()
    total = total_instructions(os.path.join(server.directory, "callgrind.%d" % pid))
    bench.end(server)
    return total


def instructions(bench, path, test, pipeline):
    short, long = bench.instruction_runs
    if pipeline == 1:
        short, long = short // 2, long // 2
    spent = [run_of(bench, path, test, pipeline, requests) for requests in (short, long)]
    return (spent[1] - spent[0]) / (long - short)


def row_5(bench):
    measures = []
    for test, pipeline, goal in (("get", 32, 900), ("set", 32, 1300), ("get", 1, 1500)):
        ours = instructions(bench, bench.ours, test, pipeline)
        oracle = instructions(bench, bench.oracle, test, pipeline)
        measures.append(Measure(
            5, "user instructions an op, %s, pipeline %d" % (test.upper(), pipeline), ours, oracle,
            ours, goal, unit="instructions (absolute)", digits=0))
    return measures
