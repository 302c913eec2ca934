"""Servers to measure: ours and the oracle, each on a free port in a directory of its own."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from machine import process_cpu_s
from resp import Client, ReplyError

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ORACLE = "/usr/bin/redis-server"
START_BOUND_S = 60.0
START_BOUND_VALGRIND_S = 120.0


def is_redis(path):
    return os.path.basename(os.path.realpath(path)).startswith(("redis-", "valkey-"))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """cores is a taskset list ("1", "0,1").  wrapper is put before the program (valgrind)."""

    # What a program does not know yet is found out once, and left out from then on.
    _refused = {}
    OPTIONAL = ("save", "appendonly", "unixsocket", "dir", "bind")

    def __init__(self, path, threads=1, cores="1", wrapper=(), options=None):
        self.path = path
        self.threads = threads
        self.cores = cores
        self.wrapper = list(wrapper)
        self.options = dict(options or {})  # name -> words, beside the usual ones or in their place
        self.directory = tempfile.mkdtemp(prefix="kb-")
        self.socket_path = os.path.join(self.directory, "s")
        self.port = None
        self.process = None

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()

    def _arguments(self, left_out):
        options = {"save": [""], "appendonly": ["no"], "unixsocket": [self.socket_path],
                   "dir": [self.directory], "bind": ["127.0.0.1"], **self.options}
        argv = ["taskset", "-c", self.cores] + self.wrapper + [self.path, "--port", str(self.port)]
        if not is_redis(self.path):
            argv += ["--server-threads", str(self.threads)]
        for name, words in options.items():
            if name not in left_out:
                argv += ["--" + name] + words
        return argv

    def start(self):
        if self.path not in Server._refused:
            Server._refused[self.path] = self._find_refused()
        if not self._try_start(Server._refused[self.path]):
            raise RuntimeError("%s does not start:\n%s" % (self.path, self.output()))
        return self

    def _find_refused(self):
        """Options without which the program starts and with which it does not."""
        if self._try_start(()):
            self._end()
            return ()
        refused = []
        for name in Server.OPTIONAL:
            others = [other for other in Server.OPTIONAL if other != name]
            if not self._try_start(others):
                refused.append(name)
            self._end()
        return tuple(refused)

    def _try_start(self, left_out):
        self.port = free_port()
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self.process = subprocess.Popen(self._arguments(left_out), cwd=self.directory,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        bound_s = START_BOUND_VALGRIND_S if self.wrapper else START_BOUND_S
        deadline_s = time.monotonic() + bound_s
        while time.monotonic() < deadline_s and self.process.poll() is None:
            try:
                with Client(self.port, 5.0) as client:
                    client.call("PING")
                return True
            except (OSError, ConnectionError, ReplyError):
                time.sleep(0.02)
        return False

    def _end(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def stop(self):
        self._end()
        shutil.rmtree(self.directory, ignore_errors=True)

    def end_keeping_files(self):
        """Ends the process but keeps its directory until stop()."""
        self._end()

    @property
    def pid(self):
        return self.process.pid

    def cpu_s(self):
        return process_cpu_s(self.pid)

    def client(self):
        return Client(self.port)

    def call(self, *words):
        with self.client() as client:
            return client.call(*words)

    def info(self, *sections):
        with self.client() as client:
            return client.info(*sections)

    def output(self):
        with open(os.path.join(self.directory, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()[-2000:]
