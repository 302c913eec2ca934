"""README's chapter "Moving here from KeyDB", line by line: a pair of KeyDB's active replicas, played (lib/keydb.py), with
clients that write to both, becomes a pair of ours, and no acknowledged write is lost."""

import re
import shlex
import subprocess
import tempfile
import threading
import time

import pytest

from lib.bounds import eventually, scaled
from lib.keydb import Node, pair
from lib.readme import CLI, commands_of
from lib.replication import everything, replication
from lib.resp import Closed, Connection, Error, Timeout
from lib.server import free_port, server_path

pytestmark = [pytest.mark.any_threads, pytest.mark.usefixtures("ours_only")]


class Machine:
    """Ports and places of the lines, here."""

    def __init__(self, theirs):
        self.place = tempfile.mkdtemp(prefix="kt-")
        self.ports = {"6401": theirs[0].port, "6402": theirs[1].port, "6501": free_port(), "6502": free_port()}

    def run(self, line):
        line = re.sub(r"\b(6[45]0[12])\b", lambda match: str(self.ports[match.group(1)]), line)
        line = line.replace("/tmp/", self.place + "/")
        for name, path in (("src/keydb-server", server_path()), ("src/keydb-cli", CLI)):
            line = line.replace(name, shlex.quote(path))
        done = subprocess.run(["sh", "-c", line], cwd=self.place, timeout=scaled(60), capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0 and not re.search(r"\b(ERR|rror)\b", done.stdout), (line, done.stdout, done.stderr)

    def at(self, port):
        return At(self.ports[port])

    def end(self):
        for port in ("6501", "6502"):
            subprocess.run([CLI, "-p", str(self.ports[port]), "SHUTDOWN", "NOSAVE", "NOW"], timeout=60,
                           capture_output=True, check=False)
        subprocess.run(["rm", "-rf", self.place], check=True)


class At:
    """What lib/replication.py wants of a server."""

    def __init__(self, port):
        self.port = port

    def connect(self):
        return Connection(("127.0.0.1", self.port))

    def info(self, section):
        with self.connect() as c:
            text = c.call("INFO", section).decode()
        return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


class Writer:
    """Writes to one address until that ends, then to another; remembers what was acknowledged, and what it does not know."""

    def __init__(self, name, old, new):
        self.name, self.ports = name, [old, new]
        self.acknowledged, self.unknown, self.by_ours = [], [], 0
        self.over, self.trouble = threading.Event(), None
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        number = 0
        try:
            while not self.over.is_set():
                for ours, port in enumerate(self.ports):
                    try:
                        with Connection(("127.0.0.1", port), 60.0) as c:
                            while not self.over.is_set():
                                number += 1
                                self.unknown.append(number)
                                reply = c.call("RPUSH", self.name, number)
                                if isinstance(reply, Error):  # it is a replica yet
                                    self.unknown.pop()
                                    break
                                self.acknowledged.append(self.unknown.pop())
                                self.by_ours += ours
                                time.sleep(0.001)
                    except (OSError, Closed, Timeout):
                        pass
                time.sleep(0.02)
        except Exception as trouble:  # whatever it is, the test must show it
            self.trouble = repr(trouble)

    def stop(self):
        self.over.set()
        self.thread.join()


def test_a_pair_of_ours_from_a_pair_of_keydbs(make_oracle):
    theirs = [Node(make_oracle({"save": "", "appendonly": "no"})) for _ in range(2)]
    pair(*theirs)
    machine = Machine(theirs)
    for i in range(500):
        theirs[i % 2].run("SET", "k%d" % i, "v" * i, db=i % 4)
        theirs[i % 2].run("HSET", "h%d" % (i % 9), "f%d" % i, i)
    writers = [Writer("writer:%d" % i, theirs[i % 2].port, machine.ports["6501" if i % 2 == 0 else "6502"])
               for i in range(4)]
    try:
        eventually(lambda: all(len(w.acknowledged) > 50 for w in writers), "they write")
        for line in commands_of("Moving here from KeyDB"):
            if "SHUTDOWN" in line:  # from now on clients write to both of ours
                assert everything(machine.at("6501")) == everything(machine.at("6502")), "not all has come"
            machine.run(line)
        eventually(lambda: all(w.by_ours > 50 for w in writers), "they write to ours")
    finally:
        for w in writers:
            w.stop()
    try:
        check(machine, theirs, writers)
    finally:
        machine.end()
        for node in theirs:
            node.close()


def check(machine, theirs, writers):
    assert [w.trouble for w in writers] == [None] * len(writers)
    first, second = machine.at("6501"), machine.at("6502")
    eventually(lambda: everything(first) == everything(second), "equal content")
    assert replication(first)["role"] == replication(second)["role"] == "active-replica"
    found = everything(first)
    for w in writers:
        kept = [int(n) for n in found.pop((0, w.name.encode()))[0][1]]
        assert len(set(kept)) == len(kept), "something was done twice"
        missing = set(w.acknowledged) - set(kept)
        assert not missing, "acknowledged, and lost: %s" % sorted(missing)[:10]
        assert set(kept) - set(w.acknowledged) <= set(w.unknown)
    old = {place: v for place, v in everything(theirs[0].server).items() if not place[1].startswith(b"writer:")}
    assert old == found
