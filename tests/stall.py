"""Runs a command on a machine that stands still now and then: everything that it starts is stopped for a while, clock
and all but time itself, and goes on. What a test takes for an order of events or for a bound shows then.

    tests/stall.py [--for 2,10] [--every 4,20] [--seed N] COMMAND...     e.g. pytest -n 4 integration/test_x.py

Seconds, each drawn between the two. Root, and a control group that freezes (version 1 or 2). Ends with the command's
status, and says on standard error how often and how long it stood.
"""

import argparse
import os
import random
import subprocess
import sys
import time

GROUPS = [("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"),  # version 1
          ("/sys/fs/cgroup", "cgroup.freeze", "1", "0"), ("/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0")]


class Freezer:
    """A control group of our own."""

    def __init__(self):
        for root, self.switch, self.stop, self.go in GROUPS:
            self.folder = os.path.join(root, "keydb-stall-%d" % os.getpid())
            try:
                os.mkdir(self.folder)
            except OSError:
                continue
            if os.path.exists(os.path.join(self.folder, self.switch)):
                return
            os.rmdir(self.folder)
        raise SystemExit("stall: no control group that freezes can be made here")

    def write(self, name, word):
        with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
            file.write(word)

    def enter(self):
        self.write("cgroup.procs", str(os.getpid()))

    def stand(self, seconds):
        self.write(self.switch, self.stop)
        try:
            time.sleep(seconds)
        finally:
            self.write(self.switch, self.go)

    def remove(self):
        """What the command has left running goes where it came from."""
        with open(os.path.join(self.folder, "cgroup.procs"), encoding="ascii") as file:
            left = file.read().split()
        for pid in left:
            try:
                with open(os.path.join(os.path.dirname(self.folder), "cgroup.procs"), "w", encoding="ascii") as file:
                    file.write(pid)
            except OSError:
                pass  # it has ended
        os.rmdir(self.folder)


def between(text):
    low, high = map(float, text.split(","))
    return low, high


def main():
    parser = argparse.ArgumentParser(usage="%(prog)s [--for A,B] [--every A,B] [--seed N] COMMAND...")
    parser.add_argument("--for", dest="duration", type=between, default=(2.0, 10.0))
    parser.add_argument("--every", type=between, default=(4.0, 20.0))
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100000)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("no command")
    draw, freezer, stood = random.Random(options.seed), Freezer(), []
    try:
        with subprocess.Popen(options.command, preexec_fn=freezer.enter) as process:
            while True:
                try:
                    process.wait(draw.uniform(*options.every))
                    break
                except subprocess.TimeoutExpired:
                    stood.append(draw.uniform(*options.duration))
                    freezer.stand(stood[-1])
    finally:
        freezer.remove()
    print("stall: seed %d: stood %d times, %.0f s in all" % (options.seed, len(stood), sum(stood)), file=sys.stderr)
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
