"""Rows of modules.py by user instructions (callgrind.py) in the place of CPU time: exact where a busy machine's figures
are not, and blind to the kernel and to caches.  What is spent outside the module's own file is told beside."""

import os

from callgrind import an_operation
from report import Measure

# Data are loaded under callgrind as well, twice a figure.
SHARE = 10
KEYS = 10000
LISTENING = ("redisearch",)


def load_module(path):
    return {"loadmodule": [path]} if path else {}


def under_callgrind(path):
    """What the clock drives weighs more there, where everything else is slow: as little of it as there can be."""
    return {**load_module(path), "hz": ["1"]}


def case_instructions(bench, path, module, case, pipeline):
    """Of a case (modules.py): instructions an operation, and those of them outside the module's file."""
    _, _, load, keyspace, command = case

    def use(server, operations):
        load(server, SHARE)
        bench.generator.run(server, "-n", operations, "-c", bench.clients, "-P", pipeline, "-r", keyspace // SHARE, "--seed", 1,
                            *command.split())

    costs = an_operation(bench, path, use, pipeline, under_callgrind(module))
    return sum(costs.values()), sum(cost for name, cost in costs.items() if not is_file(name, module))


def is_file(name, path):
    return name is not None and os.path.realpath(name) == os.path.realpath(path)


def measure_case(bench, options, row, case, module, goal):
    """Two lines a pipeline: everything, and what is not the module's."""
    measures = []
    for pipeline in bench.pipelines:
        ours, theirs = (case_instructions(bench, path, module, case, pipeline) for path in (options.server, options.oracle))
        for part, mine, other in zip(("", " outside the module"), ours, theirs):
            measures.append(Measure(row, "instructions an op%s, %s, pipeline %d" % (part, case[0], pipeline), mine, other, mine / other,
                                    goal, digits=0))
    return measures


def plain_instructions(bench, path, module, test, pipeline):
    def use(server, operations):
        bench.generator.run(server, "-t", "set", "-n", KEYS, "--sequential", "-P", 50, "-c", 1, "-r", KEYS, "-d", 64)
        bench.generator.run(server, "-t", test, "-n", operations, "-c", bench.clients, "-P", pipeline, "-r", KEYS, "-d", 64,
                            "--seed", 1)

    return sum(an_operation(bench, path, use, pipeline, under_callgrind(module)).values())


def measure_plain(bench, options, row, modules, goal, listening_goal):
    """SET and GET of ours with each of the modules, and (as the "oracle") without.  A module that has asked to be told of
    each SET has its price: there redis-server with the same module is the measure."""
    measures = []
    for test in ("set", "get"):
        for pipeline in bench.pipelines:
            without = plain_instructions(bench, options.server, None, test, pipeline)
            for path in modules:
                name = os.path.basename(path).removesuffix(".so")
                listens = test == "set" and name in LISTENING
                what = "instructions an op, %s beside %s%%s, pipeline %d" % (test.upper(), name, pipeline)
                ours = plain_instructions(bench, options.server, path, test, pipeline)
                measures.append(Measure(row, what % "; without", ours, without, ours / without, None if listens else goal, digits=0))
                if listens:
                    theirs = plain_instructions(bench, options.oracle, path, test, pipeline)
                    measures.append(Measure(row, what % "", ours, theirs, ours / theirs, listening_goal, digits=0))
    return measures
