"""Modules that tests load: tests/modules/*.c, compiled by `make test-modules` when they are asked for; what their tests
share."""

import fcntl
import functools
import os
import subprocess
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@functools.lru_cache(maxsize=None)
def build():
    """The folder with all of them. One make at a time, whoever else runs tests of this tree."""
    folder = os.path.join(ROOT, "build", "modules")
    os.makedirs(folder, exist_ok=True)
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "SANITIZE", "CC")}
    with open(os.path.join(folder, ".lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["make", "-s", "-C", ROOT, "test-modules"], check=True, env=environment,
                       stdout=subprocess.DEVNULL)
    return folder


def path_of(name):
    """The shared object of tests/modules/<name>.c."""
    return os.path.join(build(), name + ".so")


def beside_redis(make_server, make_oracle, connect, name, **options):
    """call(word, ...) for a module here and in redis-server: the reply of both, which is the same. call.clients
    and call.servers are the two, ours first."""
    options = {"loadmodule": [path_of(name)], "enable-module-command": "yes", **options}
    servers = make_server(options), make_oracle(options)
    clients = [connect(to=server) for server in servers]

    def call(*words):
        replies = [client.call(*words) for client in clients]
        assert replies[0] == replies[1], words
        return replies[0]

    call.clients, call.servers = clients, servers
    return call


def in_threads(*tasks):
    """Runs all at once, and shows what went wrong in them."""
    faults = []

    def guarded(task):
        try:
            task()
        except BaseException as fault:  # told by the thread that waits
            faults.append(fault)

    threads = [threading.Thread(target=guarded, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults


def rewrites(c):
    """How often the log was begun anew; -1 while it is."""
    fields = [dict(line.split(b":", 1) for line in c.call("INFO", "persistence").split(b"\r\n") if b":" in line)
              for _ in range(2)]  # one that has begun between the two is seen to run
    runs = fields[1][b"aof_rewrite_in_progress"] != b"0" or fields[0][b"aof_rewrites"] != fields[1][b"aof_rewrites"]
    return -1 if runs else int(fields[0][b"aof_rewrites"])
