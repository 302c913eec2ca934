"""README's chapter "Moving here from Redis", line by line: from a running redis-server, started as
its unit starts it, with data and writing clients, to ours, without losing an acknowledged write.
There is no systemd to ask here: what its units say is done by hand."""

import os
import re
import shlex
import signal
import subprocess
import tempfile
import threading
import time

import pytest

from lib.bounds import eventually, scaled
from lib.readme import CLI, commands_of
from lib.replication import everything, program
from lib.resp import Closed, Connection, Error, Timeout
from lib.seeds import generator, seeds
from lib.server import REPOSITORY, free_port, server_path

DEBIAN_FILE = "/etc/redis/redis.conf"
DEBIAN_UNIT = "/lib/systemd/system/redis-server.service"
OUR_UNIT = os.path.join(REPOSITORY, "pkg", "keydb-server.service")


class Machine:
    """A directory that stands for /, and the two services on it."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="kt-")
        self.ports = {"6379": str(free_port()), "6380": str(free_port()), "6390": str(free_port())}
        self.processes = {}
        for path in ("etc/redis", "etc/keydb", "var/lib/redis", "var/lib/keydb", "var/log/redis",
                     "var/log/keydb", "run/redis", "run/keydb", "bin"):
            os.makedirs(os.path.join(self.root, path))
        # sudo has nothing to do: all of it belongs to this user.
        self.script("bin/sudo", 'exec "$@"')
        self.script("bin/redis-cli", 'case "$1" in -p) ;; *) set -- -p %s "$@" ;; esac\n'
                    'exec /usr/bin/redis-cli "$@"' % self.ports["6379"])
        self.script("bin/keydb-cli", 'case "$1" in -p) ;; *) set -- -p %s "$@" ;; esac\nexec %s "$@"'
                    % (self.ports["6379"], shlex.quote(CLI)))

    def script(self, name, text):
        path = os.path.join(self.root, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n%s\n" % text)
        os.chmod(path, 0o755)

    def port(self, name):
        return int(self.ports[name])

    def here(self, line):
        """The line with this machine's places and ports in place of a real one's."""
        line = re.sub(r"(?<![\w/])/(etc|var|run)/", self.root + r"/\1/", line)
        line = re.sub(r"\b(6379|6380|6390)\b", lambda match: self.ports[match.group(1)], line)
        return line.replace("-o keydb -g keydb ", "")

    def install_redis(self):
        """Debian's file, in this machine's places."""
        with open(DEBIAN_FILE, encoding="utf-8") as file:
            text = file.read()
        for name in ("pidfile", "logfile", "dir", "port"):
            text, found = re.subn(r"(?m)^%s .*$" % name, lambda m: self.here(m.group(0)), text)
            assert found == 1, name
        with open(os.path.join(self.root, "etc/redis/redis.conf"), "w", encoding="utf-8") as file:
            file.write(text)

    def start(self, service, unit, programs):
        """As the unit's ExecStart says."""
        with open(unit, encoding="utf-8") as file:
            words = re.search(r"(?m)^ExecStart=(.*)$", file.read()).group(1).split()
        words = [programs.get(words[0], words[0])] + [self.here(w) for w in words[1:]]
        with open(os.path.join(self.root, service + ".out"), "wb") as out:
            self.processes[service] = subprocess.Popen(words, stdout=out, stderr=out,
                                                       cwd=self.root, start_new_session=True)

    def stop(self, service):
        """As systemd does: SIGTERM, and it has to end by itself."""
        process = self.processes.pop(service)
        process.send_signal(signal.SIGTERM)
        assert process.wait(scaled(60)) == 0, service

    def remove(self):
        for process in self.processes.values():
            process.kill()
            process.wait()
        subprocess.run(["rm", "-rf", self.root], check=True)

    def said(self, service):
        found = []
        for path in (service + ".out", "var/log/%s/%s.log" % (service.split("-")[0], service)):
            if os.path.exists(os.path.join(self.root, path)):
                with open(os.path.join(self.root, path), encoding="utf-8") as file:
                    found.append(file.read())
        return "\n".join(found)

    def lives(self, service):
        assert self.processes[service].poll() is None, self.said(service)
        return True

    def run(self, line):
        """One line of README."""
        if "systemctl enable --now keydb-server" in line:
            self.start("keydb-server", OUR_UNIT, {"/usr/bin/keydb-server": server_path()})
            eventually(lambda: self.lives("keydb-server") and answers(self.port("6380")),
                       "keydb-server answers")
        elif "systemctl disable --now redis-server" in line:
            self.stop("redis-server")
        else:
            assert "systemctl" not in line, line
            environment = dict(os.environ, PATH="%s/bin:%s" % (self.root, os.environ["PATH"]))
            done = subprocess.run(["sh", "-ec", self.here(line)], env=environment, check=False,
                                  timeout=scaled(120), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            assert done.returncode == 0 and not re.search(r"\b(ERR|error)\b", done.stdout), \
                (line, done.stdout, self.said("keydb-server"))


def answers(port):
    try:
        with Connection(("127.0.0.1", port), 2.0) as c:
            return not isinstance(c.call("PING"), Error)
    except (OSError, Closed, Timeout):
        return False


class Writer:
    """A client that knows one address, comes again when it is cut off, and remembers what was
    acknowledged, and what it does not know."""

    def __init__(self, port, number):
        self.port, self.number = port, number
        self.sent = 0
        self.acknowledged, self.unknown, self.by_ours = [], [], 0
        self.over = threading.Event()
        self.trouble = None
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        try:
            while not self.over.is_set():
                try:
                    with Connection(("127.0.0.1", self.port), 60.0) as c:
                        self._write(c)
                except (OSError, Closed):
                    time.sleep(0.02)
        except Exception as trouble:  # whatever it is, the test must show it
            self.trouble = repr(trouble)

    def _write(self, c):
        ours = b"server_name:keydb" in c.call("INFO", "server")
        while not self.over.is_set():
            self.sent += 1
            self.unknown.append(self.sent)
            reply = c.call("RPUSH", "writer:%d" % self.number, self.sent)
            assert isinstance(reply, int), reply
            self.acknowledged.append(self.unknown.pop())
            self.by_ours += ours
            c.call("LINDEX", "writer:%d" % self.number, -1)

    def stop(self):
        self.over.set()
        self.thread.join()


@pytest.fixture
def machine():
    made = Machine()
    yield made
    made.remove()


def fill(machine, random):
    """Data of every type, with expiries far off; what they are."""
    with Connection(("127.0.0.1", machine.port("6379"))) as c:
        for command in program(random, 3000):
            if command[0] not in ("SELECT", b"SELECT"):
                c.call(*command)
        for db in range(16):  # MOVE and COPY know them
            c.ok("SELECT", str(db))
            for key in c.call("KEYS", "*"):
                if c.call("PTTL", key) >= 0:
                    c.call("EXPIRE", key, "100000")


class At:
    """What lib/replication.py wants of a server."""

    def __init__(self, port):
        self.port = port

    def connect(self):
        return Connection(("127.0.0.1", self.port))


@pytest.mark.any_threads
@pytest.mark.parametrize("seed", seeds(1))
def test_readmes_lines_lose_no_acknowledged_write(machine, seed, ours_only):
    lines = commands_of("Moving here from Redis")
    assert len(lines) >= 10
    machine.install_redis()
    machine.start("redis-server", DEBIAN_UNIT, {})
    old = At(machine.port("6379"))
    eventually(lambda: answers(old.port), "redis-server answers")
    fill(machine, generator(seed))
    before = everything(old)
    writers = [Writer(old.port, number) for number in range(4)]
    try:
        eventually(lambda: all(len(w.acknowledged) > 50 for w in writers), "they write")
        for line in lines:
            machine.run(line)
        eventually(lambda: all(w.by_ours > 50 for w in writers), "they write to the new one")
    finally:
        for w in writers:
            w.stop()
    assert [w.trouble for w in writers] == [None] * 4
    with At(machine.port("6379")).connect() as c:
        assert b"role:master" in c.call("INFO", "replication")
        for w in writers:
            kept = [int(n) for n in c.call("LRANGE", "writer:%d" % w.number, 0, -1)]
            assert len(set(kept)) == len(kept), "something was done twice"
            missing = set(w.acknowledged) - set(kept)
            assert not missing, "acknowledged, and lost: %s" % sorted(missing)[:10]
            assert set(kept) - set(w.acknowledged) <= set(w.unknown)
    after = everything(At(machine.port("6379")))
    assert {k: v for k, v in after.items() if not k[1].startswith(b"writer:")} == before
    # What CONFIG REWRITE left starts it again, as a primary on the old port.
    machine.stop("keydb-server")
    machine.start("keydb-server", OUR_UNIT, {"/usr/bin/keydb-server": server_path()})
    eventually(lambda: answers(machine.port("6379")), "it starts again")
    assert everything(At(machine.port("6379"))) == after
    machine.stop("keydb-server")
