"""Row 5: user instructions an operation (callgrind.py)."""

from callgrind import an_operation
from report import Measure

CLIENTS = 50
KEYS = 10000


def instructions(bench, path, test, pipeline):
    def use(server, requests):
        bench.generator.run(server, "-t", "set", "-n", KEYS, "--sequential", "-P", 50, "-c", 1, "-r", KEYS, "-d", 64)
        bench.generator.run(server, "-t", test, "-n", requests, "-c", CLIENTS, "-P", pipeline, "-r", KEYS, "-d", 64, "--seed", 1)

    return sum(an_operation(bench, path, use, pipeline).values())


def row_5(bench):
    measures = []
    for test, pipeline, goal in (("get", 32, 900), ("set", 32, 1300), ("get", 1, 1500)):
        ours = instructions(bench, bench.ours, test, pipeline)
        oracle = instructions(bench, bench.oracle, test, pipeline)
        measures.append(Measure(
            5, "user instructions an op, %s, pipeline %d" % (test.upper(), pipeline), ours, oracle,
            ours, goal, unit="instructions (absolute)", digits=0))
    return measures
