"""README's chapter "Active replicas", line by line: each line is run as it stands there, but for ports and places, and
says what stands behind it."""

import re
import shlex
import subprocess
import tempfile

import pytest

from lib.active import AT_ONCE
from lib.bounds import eventually, scaled
from lib.readme import CLI, chapter
from lib.replication import in_step
from lib.server import free_port, server_path

pytestmark = [pytest.mark.any_threads, pytest.mark.usefixtures("ours_only")]


def blocks():
    """The chapter's blocks of commands: [(command, what is said of it)] each."""
    found = [[]]
    for line in chapter("Active replicas").split("\n"):
        if line.startswith("    "):
            command, _, said = line[4:].partition(" #")
            found[-1].append((command.strip(), said.strip()))
        elif found[-1]:
            found.append([])
    return [block for block in found if block]


class Shell:
    """Where the lines run: their ports are free ones, /tmp is a place of its own."""

    def __init__(self):
        self.place = tempfile.mkdtemp(prefix="kt-")
        self.ports = {}

    def port(self, match):
        return str(self.ports.setdefault(match.group(0), free_port()))

    def run(self, command):
        command = re.sub(r"\b(70|63)\d\d\b", self.port, command).replace("/tmp/", self.place + "/")
        for name, path in (("src/keydb-server", server_path()), ("src/keydb-cli", CLI)):
            command = command.replace(name, shlex.quote(path))
        done = subprocess.run(["sh", "-c", command], cwd=self.place, timeout=scaled(60), capture_output=True,
                              text=True, check=False)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout.strip()

    def end(self):
        """Whatever runs yet."""
        for port in self.ports.values():
            subprocess.run([CLI, "-p", str(port), "SHUTDOWN", "NOSAVE", "NOW"], timeout=60, capture_output=True,
                           check=False)
        subprocess.run(["rm", "-rf", self.place], check=True)


@pytest.fixture
def shell():
    s = Shell()
    yield s
    s.end()


def expected(said):
    """What the line prints, if that is what is said of it: OK, (integer) 1, "hello"; behind a colon is why."""
    match = re.match(r'(OK|\(integer\) \d+|"[^"]*")', said)
    return match and re.sub(r'\(integer\) |"', "", match.group(1))


def play(shell, block):
    for command, said in block:
        if " WAIT " in command:  # the links may need longer than it waits
            eventually(lambda line=command, number=expected(said): shell.run(line) == number, command, 60)
            continue
        printed = shell.run(command)
        if expected(said) is not None:
            assert printed == expected(said), (command, printed)
        elif command.startswith("src/keydb-cli"):
            fields = re.findall(r"[a-z_]+:[a-z0-9-]+", said)
            for word in re.findall(r"[a-z_-]+:?[a-z0-9-]+", said.split(",")[0]) + fields:
                assert word in printed, (command, word, printed)


def test_two_nodes(shell):
    block = blocks()[0]
    assert "--active-replica yes" in block[0][0] and len(block) == 10
    play(shell, block)


def test_three_in_a_mesh(shell):
    block = blocks()[1]
    assert all("--multi-master yes" in command for command, _ in block[:3]) and len(block) == 11
    play(shell, block)


def test_two_nodes_of_a_primary_and_its_replica(shell, make_server):
    block = blocks()[2]
    primary, replica = [make_server(AT_ONCE, files=["active-node", "dump.rdb"]) for _ in range(2)]
    shell.ports.update({"6379": primary.port, "6380": replica.port})
    with primary.connect() as a, replica.connect() as b:
        a.ok("SET", "k", "v")
        b.ok("REPLICAOF", "127.0.0.1", primary.port)
        eventually(lambda: in_step(primary, replica), "in step", 30)
        for command, _ in block:
            assert shell.run(command) == "OK", command
        assert a.call("WAIT", 1, 0) == 1 and b.call("WAIT", 1, 0) == 1
        b.ok("SET", "k", "w")
        eventually(lambda: a.call("GET", "k") == b"w", "both take writes", 20)
    shell.ports.clear()
