#!/usr/bin/python3
"""Commands of modules that people run, here and in redis-server 8.2.3 with the same files (tests/real/fetch gets them):
CPU an operation; what a loaded module costs plain GET and SET of ours; and what threads of a module and clients leave
each other.  See README.md in this folder.

    tests/bench/modules.py [--quick] [--instructions] [--only BF.ADD,JSON.GET,FT.SEARCH,plain,fair] [--json FILE]
                           [--server PATH]
"""

import argparse
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import modules_instructions  # noqa: E402
from load import Generator, pairs, series  # noqa: E402
from report import Measure, ratio_measure, save_json, table  # noqa: E402
from rows_load import load_note  # noqa: E402
from servers import REPOSITORY, Server  # noqa: E402
from setting import add_options, check_programs, head_of, setting_of  # noqa: E402

FOLDER = os.path.join(REPOSITORY, "build", "real")
THREADS_MODULE = os.path.join(REPOSITORY, "build", "modules", "threads.so")  # make test-modules
CLIENTS = 50
PIPELINES = (1, 32)
GOAL, PLAIN_GOAL = 1.0, 1.02
# Of what they do alone each side keeps a tenth at least: nobody starves.
FAIR_GOAL = 0.1
MODULE_THREADS = 4
DOCUMENTS = 10000
INDEX_WAIT_S = 60.0


# Data are there before; of all but the filter one in `share`.
def load_filter(server, share=1):
    del share
    server.call("BF.RESERVE", "filter", "0.01", "1000000")


def load_documents(server, share=1):
    with server.client() as client:
        for i in range(1000 // share):
            client.call("JSON.SET", "j:%012d" % i, "$", '{"name":"name %d","n":%d,"list":[1,2,3],"deep":{"x":"y"}}' % (i, i))


def load_index(server, share=1):
    """Titles of which each word stands in one of ten, and one word in ten of all."""
    documents = DOCUMENTS // share
    with server.client() as client:
        client.call("FT.CREATE", "idx", "PREFIX", "1", "doc:", "SCHEMA", "title", "TEXT", "n", "NUMERIC", "SORTABLE")
        for i in range(documents):
            client.call("HSET", "doc:%d" % i, "title", "common word%d rare%012d" % (i % 10, i % (documents // 10)), "n", i)
        deadline_s = time.monotonic() + INDEX_WAIT_S
        while client.call("FT.SEARCH", "idx", "common", "LIMIT", "0", "0")[0] != documents:
            if time.monotonic() > deadline_s:
                raise RuntimeError("the index does not get ready")
            time.sleep(0.05)


# Name, module, what is there before, keyspace of the generator, command.
CASES = (
    ("BF.ADD", "redisbloom.so", load_filter, 1000000, "bf.add filter item:__rand_int__"),
    ("BF.EXISTS", "redisbloom.so", load_filter, 1000000, "bf.exists filter item:__rand_int__"),
    ("JSON.GET", "rejson.so", load_documents, 1000, "json.get j:__rand_int__ $.name"),
    ("JSON.SET", "rejson.so", load_documents, 1000, "json.set j:__rand_int__ $.n 7"),
    ("FT.SEARCH", "redisearch.so", load_index, 1000, "ft.search idx rare__rand_int__ nocontent"),
)
PLAIN_MODULES = ("redisbloom.so", "rejson.so", "redisearch.so")


class Bench:
    """What load.py asks of one, and callgrind.py."""

    clients, pipelines = CLIENTS, PIPELINES

    def __init__(self, options):
        self.generator = Generator(options.generator, options.generator_core)
        self.server_core = options.server_core
        self.window_s = 0.5 if options.quick else 1.5
        self.retry_budget_s = 30.0 if options.quick else 240.0
        self.pair_count = 3 if options.quick else 5
        self.instruction_runs = (1000, 4000) if options.quick else (4000, 16000)
        self.running = []

    def server(self, path, threads=1, cores=None, wrapper=(), options=None):
        server = Server(path, threads, cores or self.server_core, wrapper, options)
        server.__enter__()
        self.running.append(server)
        return server

    def server_with(self, path, module, threads=1, cores=None):
        return self.server(path, threads, cores, options=modules_instructions.load_module(module))

    def end(self, server):
        self.running.remove(server)
        server.stop()

    def end_all(self):
        while self.running:
            self.end(self.running[-1])


def measure_pair(bench, row, name, contestants, arguments, goal):
    measures = []
    for pipeline in PIPELINES:
        windows = pairs(bench, contestants, ["-c", CLIENTS, "-P", pipeline] + arguments)
        measures.append(ratio_measure(row, "CPU an op, %s, pipeline %d" % (name, pipeline), series(windows["ours"], "cpu_us"),
                                      series(windows["oracle"], "cpu_us"), goal, note=load_note(windows)))
    return measures


def measure_case(bench, options, row, case):
    name, module, load, keyspace, command = case
    path = os.path.join(FOLDER, module)
    if options.instructions:
        return modules_instructions.measure_case(bench, options, row, case, path, GOAL)
    contestants = {"ours": bench.server_with(options.server, path), "oracle": bench.server_with(options.oracle, path)}
    for server in contestants.values():
        load(server)
    return measure_pair(bench, row, name, contestants, ["-r", keyspace] + command.split(), GOAL)


def measure_plain(bench, options, row):
    """Ours with a module, and (as the "oracle") ours without."""
    if options.instructions:
        modules = [os.path.join(FOLDER, name) for name in PLAIN_MODULES]
        return modules_instructions.measure_plain(bench, options, row, modules, PLAIN_GOAL, GOAL)
    contestants = {"ours": bench.server_with(options.server, os.path.join(FOLDER, "redisbloom.so")),
                   "oracle": bench.server_with(options.server, None)}
    measures = []
    for command in ("set", "get"):
        measures += measure_pair(bench, row, "%s with a module; without" % command.upper(), contestants,
                                 ["-t", command, "-r", 100000, "-d", 64], PLAIN_GOAL)
    return measures


def turns_a_second(server, meanwhile):
    """Of the module's threads, each of which adds one to the key in a turn, while meanwhile() runs; with its result."""
    with server.client() as client:
        begin, before = time.monotonic(), int(client.call("GET", "turns") or 0)
        result = meanwhile()
        turns = int(client.call("GET", "turns")) - before
        return turns / (time.monotonic() - begin), result


def measure_fair_server(bench, server, row, who):
    """Clients alone, threads of a module alone, both."""
    def load():
        return bench.generator.run(server, "--duration", bench.window_s, "-t", "get", "-r", 100000, "-c", CLIENTS, "-P", 32)["rps"]

    clients_alone = load()
    asking = server.client()
    asking.send("TH.COUNT", "turns", MODULE_THREADS, 2**40)
    turns_alone, _ = turns_a_second(server, lambda: time.sleep(bench.window_s))
    turns, clients = turns_a_second(server, load)
    asking.close()
    return [Measure(row, "%s: GETs beside %d threads that lock; alone" % (who, MODULE_THREADS), clients, clients_alone,
                    clients / clients_alone, FAIR_GOAL, "above", "1/s"),
            Measure(row, "%s: their turns beside GETs; alone" % who, turns, turns_alone, turns / turns_alone, FAIR_GOAL, "above", "1/s")]


def measure_fair(bench, options, row):
    measures = []
    cores = "%s,%s" % (options.generator_core, options.server_core)
    for who, path, threads in (("1 server thread", options.server, 1), ("2 server threads", options.server, 2),
                               ("redis-server", options.oracle, 1)):
        measures += measure_fair_server(bench, bench.server_with(path, THREADS_MODULE, threads, cores), row, who)
        bench.end_all()
    return measures


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--only", default="", help="of the names of cases, plain and fair, these")
    parser.add_argument("--instructions", action="store_true",
                        help="user instructions under callgrind in the place of CPU time (not of fair)")
    add_options(parser, os.path.join(FOLDER, "redis-server"))
    return parser.parse_args()


def main():
    options = parse_options()
    check_programs(options, "make builds ours, tests/real/fetch gets redis-server and the modules")
    wanted = [word.lower() for word in options.only.split(",") if word]
    bench, measures, failed = Bench(options), [], []
    jobs = [(case[0], lambda row, case=case: measure_case(bench, options, row, case)) for case in CASES]
    jobs.append(("plain", lambda row: measure_plain(bench, options, row)))
    if not options.instructions:
        jobs.append(("fair", lambda row: measure_fair(bench, options, row)))
    for row, (name, job) in enumerate(jobs, 1):
        if wanted and name.lower() not in wanted:
            continue
        try:
            measures += job(row)
        except (RuntimeError, OSError, ValueError) as trouble:  # one that cannot be measured must not cost the others
            print("%s failed: %r" % (name, trouble), file=sys.stderr)
            failed.append(name)
        finally:
            bench.end_all()
    setting = setting_of(options, bench)
    print(head_of(setting))
    print(table(measures))
    if options.json:
        save_json(options.json, setting, measures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
