#!/usr/bin/python3
"""What more server threads give on a machine of many cores, beside peers with as many I/O threads.
Row 7 measures two threads on two cores; this is for machines that are lent for an hour.

    tests/bench/scaling.py                                      half of the cores for the servers
    tests/bench/scaling.py --threads 1,2,4,8 --peer redis=redis-server,8 --peer 9.1=/opt/valkey-server,8

Thread counts and peers take turns, --rounds times; the medians stand in the table. A server has
as many cores as threads, the generator the machine's upper half. Its share says whether it was
the generator that ended the growth.
"""

import argparse
import json
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from load import Generator, window_once  # noqa: E402
from servers import REPOSITORY, Server  # noqa: E402

KEYS = 1000000
LOADS = {
    "GET P1": ["-t", "get", "-P", 1],
    "SET P1": ["-t", "set", "-P", 1],
    "GET P32": ["-t", "get", "-P", 32],
    "SET P32": ["-t", "set", "-P", 32],
    "9 GET, 1 SET P32": ["--mix", "get=9,set=1", "-P", 32],
}


class Bench:
    """What window_once() asks for."""

    def __init__(self, options):
        self.generator = Generator(options.generator, options.generator_cores)
        self.running = []


def contestants(options):
    """(name, a server that is not started) in the order of the table."""
    for threads in options.threads:
        yield "ours, %d" % threads, lambda n=threads: Server(
            os.path.abspath(options.server), threads=n, cores="0-%d" % (n - 1))
    for peer in options.peer:
        name, program = peer.split("=", 1)
        path, threads = program.rsplit(",", 1)
        path = os.path.abspath(path)
        many = {"io-threads": [threads]} if int(threads) > 1 else {}
        yield name + ", " + threads, lambda p=path, n=int(threads), o=many: Server(
            p, cores="0-%d" % (n - 1), options=o)


def measure(bench, server, options):
    """One window of each load; load -> Window."""
    bench.generator.run(server, "-t", "set", "--sequential", "-r", KEYS, "-n", KEYS, "-d", 64, "-P", 64,
                        "-c", 32, "--threads", 4)
    usual = ["-r", KEYS, "-d", 64, "-c", options.clients, "--threads", options.generator_threads,
             "--duration", options.seconds]
    return {name: window_once(bench, server, arguments + usual, False, None)
            for name, arguments in LOADS.items()}


def run(options):
    bench = Bench(options)
    figures = {}
    for turn in range(options.rounds):
        for name, make in contestants(options):
            print("round %d: %s" % (turn + 1, name), file=sys.stderr, flush=True)
            with make() as server:
                bench.running = [server]
                for load, window in measure(bench, server, options).items():
                    figures.setdefault(name, {}).setdefault(load, []).append(window)
    return figures


def cell(windows):
    """Millions a second, CPU an operation in us, 99th percentile in ms, the generator's cores."""
    middle = [statistics.median(figure(each) for each in windows) for figure in
              (lambda w: w.ops_per_s / 1e6, lambda w: w.cpu_us, lambda w: w.latency_ms["p99"],
               lambda w: w.generator_load)]
    return "%.2f (%.2f us, %.1f ms, %.1f)" % tuple(middle)


def report(figures):
    print("millions a second (CPU an operation, 99th percentile, cores that the generator used)\n")
    print("| server, threads | " + " | ".join(LOADS) + " |\n|---" + "|---" * len(LOADS) + "|")
    for name, loads in figures.items():
        print("| " + name + " | " + " | ".join(cell(loads[load]) for load in LOADS) + " |")


def parse():
    cores = os.cpu_count()
    half = max(1, cores // 2)
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--threads", default=",".join(str(n) for n in (1, 2, 4, 8, 16) if n <= half),
                        help="our thread counts", type=str)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PROGRAM,IO-THREADS")
    parser.add_argument("--server", default=os.path.join(REPOSITORY, "src", "keydb-server"))
    parser.add_argument("--generator", default=None, help="keydb-benchmark")
    parser.add_argument("--generator-cores", default="%d-%d" % (half, cores - 1), help="a taskset list")
    parser.add_argument("--generator-threads", type=int, default=max(1, cores - half))
    parser.add_argument("--clients", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5, help="of a window")
    parser.add_argument("--json", help="all figures go there as well")
    options = parser.parse_args()
    options.threads = [int(word) for word in options.threads.split(",")]
    return options


def main():
    options = parse()
    figures = run(options)
    report(figures)
    if options.json:
        with open(options.json, "w", encoding="ascii") as file:
            json.dump({name: {load: [vars(each) for each in windows] for load, windows in loads.items()}
                       for name, loads in figures.items()}, file)


if __name__ == "__main__":
    main()
