"""User instructions an operation, as the difference of two runs of different length under callgrind: what a start, the
data, connections and the end cost is in both."""

import collections
import os
import re

SHARED_OBJECT = re.compile(r"^ob=\((\d+)\)(?: (.*))?$")
TOTALS = re.compile(r"^(?:summary|totals): (\d+)")


def costs_by_object(path):
    """Of a file of callgrind's: program or shared object -> instructions in its own functions."""
    names, costs, total = {}, collections.Counter(), None
    object_id, is_call = None, False
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line[0] in "0123456789+-*":
                if not is_call:  # (what a call costs stands with the function that is called)
                    costs[object_id] += int(line.split()[1])
                is_call = False
            elif line.startswith("calls="):
                is_call = True
            elif line.startswith(("ob=", "cob=")):
                number, name = SHARED_OBJECT.match(line.removeprefix("c")).groups()
                names.setdefault(number, name)
                if line[0] == "o":
                    object_id = number
            elif found := TOTALS.match(line):
                total = int(found[1])
    if total is None:
        raise RuntimeError("callgrind has left no totals in " + path)
    if sum(costs.values()) != total:
        raise RuntimeError("%s: costs of %d, and totals of %d" % (path, sum(costs.values()), total))
    return collections.Counter({names.get(number): cost for number, cost in costs.items()})


def run_of(bench, path, options, use):
    """One run: `use` is given the server, which has ended when the costs are counted."""
    server = bench.server(path, wrapper=["valgrind", "--tool=callgrind", "-q", "--callgrind-out-file=callgrind.%p"],
                          options=options)
    pid = server.pid
    use(server)
    server.end_keeping_files()
    costs = costs_by_object(os.path.join(server.directory, "callgrind.%d" % pid))
    bench.end(server)
    return costs


def an_operation(bench, path, use, pipeline, options=None):
    """Program or shared object -> instructions an operation.  `use` (server, operations) readies the server and sends it so
    many."""
    short, long = bench.instruction_runs
    if pipeline == 1:
        short, long = short // 2, long // 2
    less, more = [run_of(bench, path, options, lambda server, count=count: use(server, count)) for count in (short, long)]
    more.subtract(less)
    return {name: cost / (long - short) for name, cost in more.items()}
