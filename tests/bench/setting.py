"""What the benchmarks of this folder have in common: who is measured, where, and what is printed of that."""

import os
import platform
import subprocess
import sys
import time

from servers import REPOSITORY


def add_options(parser, oracle):
    """The options of every benchmark; `oracle` is the program that ours is compared with."""
    parser.add_argument("--quick", action="store_true", help="short windows, small data")
    parser.add_argument("--json", metavar="FILE", help="write all figures there as well")
    parser.add_argument("--server", type=os.path.abspath, default=os.environ.get(
        "KEYDB_SERVER", os.path.join(REPOSITORY, "src", "keydb-server")), help="the program measured")
    parser.add_argument("--oracle", type=os.path.abspath, default=oracle, help="the program it is compared with")
    parser.add_argument("--generator", default=None, help="keydb-benchmark")
    parser.add_argument("--server-core", default="1", help="core of the servers (1)")
    parser.add_argument("--generator-core", default="0", help="core of the generator (0)")


def check_programs(options, hint):
    """Ends the run where a program is missing; `hint` says where they come from."""
    missing = [path for path in (options.server, options.oracle) if not os.access(path, os.X_OK)]
    if missing:
        sys.exit("no program at %s (%s)" % (missing[0], hint))
    if os.cpu_count() < 2 and options.server_core != options.generator_core:
        sys.exit("one core: give --server-core 0 --generator-core 0, and believe no figure")


def version_of(path):
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or path


def setting_of(options, bench):
    """What a table is of, for its head and for JSON."""
    return {"ours": version_of(options.server), "oracle": version_of(options.oracle), "kernel": platform.release(),
            "cores": os.cpu_count(), "window_s": bench.window_s, "pairs": bench.pair_count, "quick": options.quick,
            "time": time.strftime("%Y-%m-%d %H:%M:%S")}


def head_of(setting, more=""):
    return ("ours:   %(ours)s\noracle: %(oracle)s\n%(cores)s cores, Linux %(kernel)s, %(pairs)s pairs of "
            "%(window_s)s s windows, " % setting) + more + setting["time"] + "\n"
