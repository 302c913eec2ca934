"""Loads a server with keydb-benchmark and says what an operation cost."""

import json
import os
import statistics
import subprocess
import threading
import time

from machine import Meter
from servers import REPOSITORY

FOREIGN_LIMIT = 0.06
RETRIES = 5
QUIET_PROBE_S = 0.1
QUIET_WAIT_S = 1.5


class Generator:
    def __init__(self, path=None, cores="0"):
        self.path = path or os.path.join(REPOSITORY, "src", "keydb-benchmark")
        self.cores = cores

    def command(self, server, arguments, unix=False, cores=None):
        where = ["-s", server.socket_path] if unix else ["-p", str(server.port)]
        return ["taskset", "-c", cores or self.cores, self.path] + where + \
            ["--json"] + [str(word) for word in arguments]

    def run(self, server, *arguments, unix=False, cores=None):
        """One run to its end; its JSON line as a dictionary."""
        done = subprocess.run(self.command(server, arguments, unix, cores), capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError("keydb-benchmark: " + done.stderr.strip())
        return json.loads(done.stdout.splitlines()[-1])

    def start(self, server, *arguments, cores=None):
        """A run in the background; finish it with result()."""
        return subprocess.Popen(self.command(server, arguments, cores=cores),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result(process):
    out, err = process.communicate()
    if process.returncode != 0:
        raise RuntimeError("keydb-benchmark: " + err.strip())
    return json.loads(out.splitlines()[-1])


class Meanwhile:
    """Takes one step() after the other on a thread of its own, as long as the `with` lasts."""

    def __init__(self):
        self._over = threading.Event()
        self._failure = None
        self._thread = threading.Thread(target=self._run)

    def step(self):
        raise NotImplementedError

    def _run(self):
        try:
            while not self._over.is_set():
                self.step()
        except Exception as trouble:  # raised again by __exit__
            self._failure = trouble

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure


class Window:
    """One measured stretch of load."""

    def __init__(self, outcome, server_cpu_s, foreign):
        self.operations = outcome["requests"]
        self.ops_per_s = outcome["rps"]
        self.cpu_us = server_cpu_s / self.operations * 1e6
        self.server_load = server_cpu_s / outcome["seconds"]
        self.generator_load = outcome["generator_cpu_seconds"] / outcome["seconds"]
        self.latency_ms = outcome["latency_ms"]
        self.foreign = foreign

    @property
    def quiet(self):
        return self.foreign <= FOREIGN_LIMIT


def window_once(bench, server, arguments, unix, cores):
    meter = Meter([other.pid for other in bench.running])
    before_s = server.cpu_s()
    outcome = bench.generator.run(server, *arguments, unix=unix, cores=cores)
    return Window(outcome, server.cpu_s() - before_s, meter.foreign_share())


def wait_quiet(bench):
    """Waits a moment for others to end what they do."""
    deadline_s = time.monotonic() + QUIET_WAIT_S
    while time.monotonic() < deadline_s:
        meter = Meter([server.pid for server in bench.running])
        time.sleep(QUIET_PROBE_S)
        if meter.foreign_share() <= FOREIGN_LIMIT:
            return


def window(bench, server, arguments, unix=False, cores=None, before=None):
    """A window without others' work; of the noisy ones the quietest, when there is none.  On a
    machine that is never quiet the whole run retries for bench.retry_budget_s and no longer.
    `before` (bench, server) puts the server into the state in which each try begins."""
    tries = []
    for _ in range(RETRIES):
        start_s = time.monotonic()
        if before:
            before(bench, server)
        if bench.retry_budget_s > 0:
            wait_quiet(bench)
        tries.append(window_once(bench, server, arguments, unix, cores))
        if tries[-1].quiet or bench.retry_budget_s <= 0:
            break
        bench.retry_budget_s -= time.monotonic() - start_s
    return min(tries, key=lambda each: each.foreign)


class Series:
    """Figures of the same measure from the windows of one server."""

    def __init__(self, values, noisy=0):
        self.values = list(values)
        self.noisy = noisy

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def spread(self):
        """Half of the range over the median."""
        if not self.median:
            return 0.0
        return (max(self.values) - min(self.values)) / 2 / abs(self.median)


def pairs(bench, contestants, arguments, unix=False, cores=None, seconds=None, before=None,
          timed=True):
    """Windows A-B-A-B of `contestants` (name -> server); a list of windows for each name.  cores
    maps names to the generator's cores where they are not the usual ones.  before: see window().
    Without `timed` the arguments themselves bound a window (-n)."""
    cores = cores or {}
    windows = {name: [] for name in contestants}
    for name, server in contestants.items():  # warm: buffers grown, pages touched
        if before:
            before(bench, server)
        bench.generator.run(server, "--duration", 0.2, *arguments, unix=unix, cores=cores.get(name))
    bound = ["--duration", seconds or bench.window_s] if timed else []
    for _ in range(bench.pair_count):
        for name, server in contestants.items():
            windows[name].append(window(bench, server, bound + list(arguments), unix,
                                        cores.get(name), before))
    return windows


def series(windows, figure):
    return Series([getattr(each, figure) for each in windows],
                  sum(not each.quiet for each in windows))
