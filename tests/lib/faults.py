"""Faults of files and of fork for a server under test: a layer that is preloaded (faults.c, compiled
here with cc), and switches for it."""

import contextlib
import mmap
import os
import resource
import shutil
import struct
import subprocess
import tempfile

import pytest

from lib.bounds import eventually
from lib.server import server_path

# faults.c's struct control.
FIELDS = ("write_error", "fsync_error", "rename_error", "open_error", "fork_error", "short_writes",
          "kill_at", "calls", "write_after", "sync_hangs", "fstat_error", "slow_ms")
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "faults.c")


def is_sanitized(path):
    with open(path, "rb") as file:
        data = file.read()
    return b"__asan_init" in data or b"__tsan_init" in data


def closes_soon(pid):
    """Whether the process has TCP connections whose other ends have gone: their numbers are about to be free."""
    with open("/proc/net/tcp", encoding="ascii") as lines:
        gone = {"socket:[%s]" % words[9] for words in map(str.split, lines) if words[3] == "08"}  # CLOSE_WAIT
    for number in os.listdir("/proc/%d/fd" % pid):
        try:
            if os.readlink("/proc/%d/fd/%s" % (pid, number)) in gone:
                return True
        except OSError:
            pass  # closed meanwhile
    return False


@contextlib.contextmanager
def no_descriptors(server):
    """The server has no number left for another file; all are free again afterwards."""
    # Twice: a row may be missing in a reading while other connections go.
    eventually(lambda: not closes_soon(server.pid) and not closes_soon(server.pid), "the clients before are forgotten")
    limit = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    highest = max(int(n) for n in os.listdir("/proc/%d/fd" % server.pid))
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (highest + 1, limit[1]))
    taken = []
    try:
        # Numbers below the limit may be free: clients take them.
        while len(os.listdir("/proc/%d/fd" % server.pid)) <= highest:
            taken.append(server.connect())
            taken[-1].call("PING")
        yield
    finally:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limit)
        for client in taken:
            client.close()


def compile_layer(source):
    """A library to be loaded before a server's own, alone in a directory of the caller's."""
    if is_sanitized(server_path()):
        pytest.skip("a sanitizer has to be the first library of a process")
    directory = tempfile.mkdtemp(prefix="kt-layer-")
    library = os.path.join(directory, os.path.basename(source)[:-2] + ".so")
    subprocess.run(["cc", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"],
                   check=True)
    return directory, library


class Faults:
    """Switches: faults.set(write_error=errno.EIO); faults.set() ends them all."""

    def __init__(self):
        self.directory, self.library = compile_layer(SOURCE)
        self.path = os.path.join(self.directory, "control")
        with open(self.path, "wb") as file:
            file.write(bytes(4096))
        with open(self.path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 4096)

    def environment(self):
        return {"LD_PRELOAD": self.library, "KEYDB_TEST_FAULTS": self.path}

    def set(self, **switches):
        for name in FIELDS:
            struct.pack_into("i", self.map, 4 * FIELDS.index(name), switches.pop(name, 0))
        assert not switches

    def get(self, name):
        return struct.unpack_from("i", self.map, 4 * FIELDS.index(name))[0]

    def end(self):
        self.map.close()
        shutil.rmtree(self.directory)
