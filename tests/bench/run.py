#!/usr/bin/python3
"""Measures our server beside the oracle (Debian's redis-server) in one run and prints how the
figures stand to the goals of DESIGN.md, section 10.  See README.md in this folder.

    tests/bench/run.py [--only 1,2,14] [--quick] [--json FILE] [--server PATH]
"""

import argparse
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import rows_active  # noqa: E402
import rows_commands  # noqa: E402
import rows_instructions  # noqa: E402
import rows_load  # noqa: E402
import rows_persist  # noqa: E402
import rows_replica  # noqa: E402
import rows_state  # noqa: E402
import rows_types  # noqa: E402
from load import Generator  # noqa: E402
from report import save_json, table  # noqa: E402
from resp import ReplyError  # noqa: E402
from servers import ORACLE, Server  # noqa: E402
from setting import add_options, check_programs, head_of, setting_of  # noqa: E402

# In this order, because rows 1-4, 9 and 14 share a pair of servers; the table is sorted.
ROWS = {
    1: rows_load.row_1, 2: rows_load.row_2, 3: rows_load.row_3, 4: rows_load.row_4,
    9: rows_load.row_9, 14: rows_load.row_14, 6: rows_load.row_6, 7: rows_load.row_7,
    8: rows_state.row_8, 10: rows_state.row_10, 11: rows_state.row_11, 12: rows_state.row_12,
    13: rows_state.row_13, 15: rows_types.row_15, 16: rows_types.row_16,
    17: rows_persist.row_17, 18: rows_persist.row_18, 19: rows_persist.row_19,
    20: rows_replica.row_20,
    5: rows_instructions.row_5,
    21: rows_commands.row_21, 22: rows_commands.row_22,
    23: rows_active.row_23, 25: rows_active.row_25, 26: rows_active.row_26, 27: rows_active.row_27,
    28: rows_active.row_28, 29: rows_active.row_29,
}
EVERY_COMMAND = [21, 22]
ACTIVE = [23, 25, 26, 27, 28, 29]
SHARING = (1, 2, 3, 4, 9, 14)


class Bench:
    """What the rows are given: programs, sizes, and servers that are ended whatever happens."""

    def __init__(self, options):
        quick = options.quick
        self.ours = options.server
        self.oracle = options.oracle
        self.generator = Generator(options.generator, options.generator_core)
        self.server_core = options.server_core
        self.window_s = 0.5 if quick else 1.5
        self.retry_budget_s = 30.0 if quick else 240.0
        self.pair_count = options.pairs or (3 if quick else 5)
        self.keys = 100000 if quick else 1000000
        # Under a power of two by as much as a million is, so that tables are as full.
        self.memory_keys = 125000 if quick else 1000000
        self.idle_s = 3.0 if quick else 10.0
        self.grow_from = self.keys
        self.grow_to = options.grow_to or (1600000 if quick else 16000000)
        self.walk_keys = 400000 if quick else 4000000
        self.saved_keys = 500000 if quick else 5000000
        self.type_operations = 200000 if quick else 1000000
        self.small_collections = 31250 if quick else 125000
        self.large_collections = 50 if quick else 500
        self.instruction_runs = (4000, 16000) if quick else (10000, 60000)
        self.command = options.every_command  # a part of the names of row 21's commands, or None
        self.running = []
        self._pair = None

    def server(self, path, threads=1, cores=None, wrapper=(), options=None):
        server = Server(path, threads, cores or self.server_core, wrapper, options)
        server.__enter__()
        self.running.append(server)
        return server

    def end(self, server):
        self.running.remove(server)
        server.stop()

    def end_all(self):
        while self.running:
            self.end(self.running[-1])
        self._pair = None

    def preload(self, server, keys):
        self.generator.run(server, "-t", "set", "-n", keys, "-r", keys, "--sequential", "-P", 50, "-c",
                           10, "-d", rows_load.VALUE_BYTES)

    def base_pair(self):
        """Both with one thread on the server's core and their keys in place; kept between rows."""
        if self._pair is None:
            self._pair = {"ours": self.server(self.ours), "oracle": self.server(self.oracle)}
            for server in self._pair.values():
                self.preload(server, self.keys)
        return self._pair

    @staticmethod
    def prefer(pid):
        """Lets a process run before all others, where this user may ask for that."""
        try:
            os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(10))
        except (OSError, PermissionError):
            pass


def parse_rows(text):
    rows = [int(word) for word in text.split(",") if word]
    for row in rows:
        if row not in ROWS:
            raise argparse.ArgumentTypeError("rows are 1 to %d" % max(ROWS))
    return rows


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", type=parse_rows, default=sorted(set(ROWS) - set(EVERY_COMMAND) - set(ACTIVE)), metavar="ROW,ROW",
                        help="only these rows of the table in DESIGN.md")
    parser.add_argument("--every-command", nargs="?", const="", metavar="PART",
                        help="only rows 21 and 22; of the commands those that have PART in their name")
    parser.add_argument("--active", action="store_true", help="only rows 23 to 29: active nodes")
    parser.add_argument("--pairs", type=int, help="pairs of windows (5; quick: 3)")
    parser.add_argument("--grow-to", type=int, help="keys at the end of row 12 (16,000,000)")
    add_options(parser, ORACLE)
    return parser.parse_args()


def run_rows(bench, wanted):
    measures = []
    for row in (row for row in ROWS if row in wanted):
        if row not in SHARING:
            bench.end_all()
        start_s = time.monotonic()
        print("row %d ..." % row, end=" ", file=sys.stderr, flush=True)
        try:
            measures += ROWS[row](bench)
            print("%.0f s" % (time.monotonic() - start_s), file=sys.stderr)
        except (RuntimeError, ReplyError, OSError, KeyError, ValueError) as trouble:
            # One row that cannot be measured must not cost the others.
            print("failed: %r" % trouble, file=sys.stderr)
            bench.failed.append(row)
            bench.end_all()
    bench.end_all()
    return measures


def main():
    options = parse_options()
    if options.every_command is not None:
        options.only = EVERY_COMMAND if not options.every_command else [21]
    if options.active:
        options.only = ACTIVE
    check_programs(options, "make builds ours; the oracle is Debian's redis-server")
    bench = Bench(options)
    bench.failed = []
    setting = dict(setting_of(options, bench), keys=bench.keys)
    measures = []
    try:
        measures = run_rows(bench, options.only)
    finally:
        bench.end_all()
    print(head_of(setting, "%s keys, " % bench.keys))
    print(table(measures))
    if bench.failed:
        print("\nnot measured: rows %s" % ", ".join(map(str, bench.failed)))
    if options.json:
        save_json(options.json, setting, measures)
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
