"""A server process: started on a free port in a directory of its own, stopped by its pid, and
asked afterwards whether it behaved (problems())."""

import collections
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from lib.bounds import Bound, BoundPassed, eventually, scaled
from lib.resp import Closed, Connection, Error, Timeout

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ORACLE = "/usr/bin/redis-server"
START_BOUND_S = 20.0
STOP_BOUND_S = 10.0

SANITIZER_REPORT = re.compile(
    r"^.*(ERROR: \w*Sanitizer|WARNING: ThreadSanitizer|: runtime error: |SUMMARY: \w*Sanitizer"
    r"|Assertion .* failed|BUG REPORT START).*$", re.MULTILINE)

# Files that a server may leave in its directory: what the test put there, and nothing else.
OUR_FILES = {"stdout", "stderr", "server.conf"}


def server_path():
    """The program under test: KEYDB_SERVER, or the one that make leaves in src/."""
    path = os.environ.get("KEYDB_SERVER") or os.path.join("src", "keydb-server")
    return path if os.path.isabs(path) else os.path.join(REPOSITORY, path)


def is_redis(path):
    """Whether the program is Redis, standing in for ours or as the oracle."""
    return os.path.basename(os.path.realpath(path)).startswith("redis-")


# Ports that were drawn last: the system may give one again as long as nobody has bound it.
_drawn = collections.deque(maxlen=100)


# Tests that run at the same time draw from parts of their own: nobody has bound a port between the draw and its use.
_PARTS = 8
_PART = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").lstrip("gw") or 0) % _PARTS


def free_port():
    """A port where nobody listens, another one than those of the last hundred calls, and than those of tests beside
    this one."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port // 2 % _PARTS == _PART and port not in _drawn:
            _drawn.append(port)
            return port


@contextlib.contextmanager
def closed_port():
    """A port where nobody listens, nor can before the end: it is bound meanwhile."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def running_in(group):
    """Processes of the group that are no zombies."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, encoding="ascii", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] not in "ZX":
                found.append(int(name))
    return found


def thread_states(pid):
    """The states of its threads, as proc(5) has them."""
    found = set()
    for thread in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/stat" % (pid, thread), encoding="ascii", errors="replace") as file:
                found.add(file.read().rpartition(")")[2].split()[0])
        except OSError:
            pass  # ended meanwhile
    return found


def children_of(pid):
    """The processes that its threads have started and that are there still."""
    found = set()
    for thread in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/children" % (pid, thread), encoding="ascii") as file:
                found |= {int(child) for child in file.read().split()}
        except OSError:
            pass  # ended meanwhile
    return sorted(found)


def session_of(pid):
    """The processes of the session that the process leads."""
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.getsid(int(name)) == pid:
                yield int(name)
        except ProcessLookupError:
            pass


def holds_port(pid, port):
    """Whether the process has a descriptor of a socket that listens on the TCP port."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        with open("/proc/net/" + table, encoding="ascii") as lines:
            next(lines)
            for words in map(str.split, lines):
                if words[3] != "0A":
                    break  # who listens comes first, before very many in TIME_WAIT
                if words[1].endswith(":%04X" % port):
                    inodes.add("socket:[%s]" % words[9])
    folder = "/proc/%d/fd" % pid
    for name in os.listdir(folder):
        try:
            if os.readlink(os.path.join(folder, name)) in inodes:
                return True
        except OSError:
            pass  # closed meanwhile
    return False


def listens(pid, port):
    """Whether a process of its session listens on the port: two tests may have been given the same free one, and then
    the other's server answers as well."""
    for member in session_of(pid):
        try:
            if holds_port(member, port):
                return True
        except OSError:
            pass  # ended meanwhile
    return False


class StartFailed(Exception):
    """The server ended while starting."""


class StartLate(StartFailed, BoundPassed):
    """It never answered."""


class Server:
    """options maps option names to a string or a list of words.  config is the text of a
    configuration file, given to the server as its first argument."""

    def __init__(self, path=None, threads=1, options=None, config=None, password=None):
        self.path = path or server_path()
        self.threads = threads
        self.options = dict(options or {})
        self.config = config
        self.password = password
        self.environment = {}  # beside that of the tests
        self.drawn_ports = set()  # options that name a free port: another one if it has been taken meanwhile
        self.directory = tempfile.mkdtemp(prefix="kt-")
        self.port = None
        self.process = None
        self.expected_exit = 0
        self.stands_still = False
        self.expected_files = set()
        self._trouble = []

    # -- life

    def start(self):
        for attempt in range(5):
            self.port = free_port()
            self._spawn()
            try:
                self._wait_ready()
                return self
            except StartFailed:
                # Another process may have taken the port between probe and bind.
                retry = "port" not in self.options and "ddress already in use" in self.output()
                if attempt == 4 or not retry:
                    raise
                self.options.update({name: str(free_port()) for name in self.drawn_ports})
        raise AssertionError("unreachable")

    def start_fails(self):
        """For what must stop the start: the text that says why."""
        try:
            self.start()
        except StartFailed as failure:
            self.process = None
            return str(failure)
        raise AssertionError("it started: %s" % " ".join(self.arguments()[1:]))

    def arguments(self):
        argv = [self.path]
        if self.config is not None:
            argv.append("server.conf")
        options = {"port": str(self.port), "bind": "127.0.0.1", "enable-debug-command": "yes"}
        # A server leaves no file behind unless its test wants one.
        options["save"] = ""
        if not is_redis(self.path):
            options["server-threads"] = str(self.threads)
            # A handful of clients is to be spread over all threads, not to fill the first.
            options["min-clients-per-thread"] = "0"
        options.update(self.options)
        for name, value in options.items():
            if value is None:
                continue
            argv.append("--" + name)
            argv += [value] if isinstance(value, str) else list(value)
        return argv

    def _spawn(self):
        if self.config is not None:
            with open(self.file("server.conf"), "w", encoding="utf-8") as file:
                file.write(self.config)
        environment = dict(os.environ)
        environment.setdefault("TSAN_OPTIONS", "exitcode=66")
        environment.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        environment.update(self.environment)
        with open(self.file("stdout"), "ab") as out, open(self.file("stderr"), "ab") as err:
            self.process = subprocess.Popen(
                self.arguments(), cwd=self.directory, stdin=subprocess.DEVNULL, stdout=out,
                stderr=err, env=environment, start_new_session=True)

    def address(self):
        unix = self.options.get("unixsocket")
        if self.options.get("port") == "0":
            return os.path.join(self.directory, unix)
        return ("127.0.0.1", int(self.options.get("port", self.port)))

    def unix_address(self):
        return os.path.join(self.directory, self.options["unixsocket"])

    def _wait_ready(self):
        bound = Bound(scaled(START_BOUND_S))
        while bound.left():
            if self.process.poll() is not None:
                raise StartFailed("exit status %s\n%s" % (self.process.returncode, self.output()))
            try:
                with Connection(self.address(), timeout_s=2.0) as probe:
                    reply = probe.call("PING")
            except (OSError, Closed, Timeout):
                time.sleep(0.01)
                continue
            loading = isinstance(reply, Error) and reply.startswith(b"LOADING")
            if not loading and self._is_ours(probe.address):
                return
            time.sleep(0.01)
        self.kill()
        raise StartLate("no PONG within the bound\n%s" % self.output())

    def _is_ours(self, address):
        return not isinstance(address, tuple) or listens(self.process.pid, address[1])

    def stop(self):
        """SIGTERM, SIGKILL after a bound; notes what was wrong.  Idempotent."""
        if self.process is None:
            return
        process, self.process = self.process, None
        if process.poll() is not None:
            self._trouble.append("died: exit status %s" % process.returncode)
        else:
            process.send_signal(signal.SIGTERM)
            if self.stands_still:
                process.send_signal(signal.SIGCONT)
                self.stands_still = False
            try:
                status = process.wait(scaled(STOP_BOUND_S))
                if status != self.expected_exit:
                    self._trouble.append("exit status %s on SIGTERM" % status)
            except subprocess.TimeoutExpired:
                self._trouble.append("did not end on SIGTERM")
                process.kill()
                process.wait()
        self._end_group(process.pid)
        self._look_for_leftovers()

    def wait_exit(self, bound_s=STOP_BOUND_S):
        """Exit status of a server that was told to end by other means."""
        process = self.process
        status = process.wait(scaled(bound_s))
        self.process = None
        self._end_group(process.pid)
        self._look_for_leftovers()
        return status

    def kill(self):
        """End it without a look at how it behaved."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def kill_all(self):
        """kill -9 of it and its children; when this is over none of them runs. start() goes on with
        the same files."""
        process, self.process = self.process, None
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        eventually(lambda: not running_in(process.pid), "the children are gone")

    # -- a server that does not run for a while

    def stand_still(self):
        """None of its threads runs when this is over: to another process a signal comes some time
        after kill(). Until go_on(), or stop()."""
        os.kill(self.pid, signal.SIGSTOP)
        self.stands_still = True
        eventually(lambda: thread_states(self.pid) <= {"T", "t"}, "it stands still")

    def go_on(self):
        # Only then: LeakSanitizer waits for ever when a signal comes while it looks at the end.
        os.kill(self.pid, signal.SIGCONT)
        self.stands_still = False

    @contextlib.contextmanager
    def standing_still(self):
        self.stand_still()
        try:
            yield
        finally:
            self.go_on()

    def _end_group(self, pid):
        try:
            os.killpg(pid, signal.SIGKILL)
            if not is_redis(self.path):  # which does not wait for the child that it ends
                self._trouble.append("left a process behind")
        except ProcessLookupError:
            pass

    def _look_for_leftovers(self):
        left = set(os.listdir(self.directory)) - OUR_FILES - self.expected_files
        if left:
            self._trouble.append("left files behind: %s" % sorted(left))

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)

    # -- questions

    @property
    def pid(self):
        return self.process.pid

    def file(self, name):
        return os.path.join(self.directory, name)

    def read(self, name):
        with open(self.file(name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def output(self):
        return self.read("stdout") + self.read("stderr")

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def problems(self):
        """What went wrong so far, as text; empty when nothing did."""
        found = list(self._trouble)
        if self.process is not None and self.process.poll() is not None:
            found.append("died: exit status %s" % self.process.returncode)
        found += [match.group(0) for match in SANITIZER_REPORT.finditer(self.output())][:5]
        if found:
            found.append("--- end of its output ---\n" + self.output()[-6000:])
        return "\n".join(found)

    def connect(self, proto=2, timeout_s=20.0):
        connection = Connection(self.address(), timeout_s)
        if self.password is not None:
            connection.ok("AUTH", self.password)
        if proto == 3:
            connection.hello(3)
        return connection

    def knows(self, command):
        """Whether the server has this command."""
        with self.connect() as c:
            return c.call("COMMAND", "INFO", command)[0] is not None

    def info(self, section="everything"):
        with self.connect() as c:
            return parse_info(c.call("INFO", section))


def parse_info(text):
    """INFO's text as a dict of str."""
    fields = {}
    for line in text.decode("utf-8", "replace").split("\r\n"):
        if line and not line.startswith("#"):
            name, _, value = line.partition(":")
            fields[name] = value
    return fields
