"""A server that nobody talks to leaves the processor alone."""

import os
import time

import pytest

from lib.server import is_redis, server_path

pytestmark = pytest.mark.any_threads

SECONDS = 2.0
# Being preempted counts as waking up, and a busy machine does it now and then; a thread that wakes
# by itself does so in every look. So the quietest of several looks counts, thread by thread.
LOOKS = 5


def switches(pid):
    """Context switches of each thread so far: how often it woke up, and a few more."""
    counts = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, tid), encoding="ascii") as file:
            fields = dict(line.split(":", 1) for line in file if ":" in line)
        # A sanitizer's own thread is called main as well.
        name = "main" if int(tid) == pid else fields["Name"].strip().replace("main", "other")
        counts[name + " " + tid] = (
            int(fields["voluntary_ctxt_switches"]) + int(fields["nonvoluntary_ctxt_switches"]))
    return counts


def woken(server):
    before = switches(server.pid)
    time.sleep(SECONDS)
    return {name: count - before.get(name, 0) for name, count in switches(server.pid).items()}


@pytest.fixture
def idle_server(make_server):
    if is_redis(server_path()):
        pytest.skip("a promise of ours, not of Redis")
    server = make_server({"server-threads": "16"})
    with server.connect() as client:
        client.ok("SET", "k", "v", "PX", "1")
    time.sleep(0.5)
    return server


def judge(counts, server_threads):
    main = [count for name, count in counts.items() if name.startswith("main ")]
    others = {name: count for name, count in counts.items() if not name.startswith("main ")}
    assert len(main) == 1 and len(others) >= server_threads, counts
    # hz is 10: the cron wakes 20 times in 2 s.
    busy = {name: count for name, count in others.items()
            if count > 5 and name.startswith(("server-", "reclaim"))}
    return busy if main[0] <= 60 else dict(busy, main=main[0])


def check_quiet(server, server_threads):
    quietest = {}
    for _ in range(LOOKS):
        for name, count in woken(server).items():
            quietest[name] = min(count, quietest.get(name, count))
        busy = judge(quietest, server_threads)
        if not busy:
            return
    assert not busy, busy


def test_sixteen_threads_sleep(idle_server):
    check_quiet(idle_server, 16)


def test_idle_clients_wake_nobody(idle_server):
    clients = [idle_server.connect() for _ in range(100)]
    for client in clients:
        client.ok("SET", "key", "value", "EX", "1000")
    time.sleep(0.2)
    check_quiet(idle_server, 16)
    for client in clients:
        client.close()


def test_a_blocked_writer_is_no_busy_loop(idle_server):
    """A client that does not read its replies costs nothing while it does not."""
    with idle_server.connect() as client, idle_server.connect() as deaf:
        client.ok("SET", "big", "x" * 1_000_000)
        deaf.send_raw(b"GET big\r\n" * 20)
        time.sleep(0.5)
        check_quiet(idle_server, 16)


def test_the_pause_of_clients_is_no_busy_loop(idle_server):
    with idle_server.connect() as client, idle_server.connect() as waiting:
        client.ok("CLIENT", "PAUSE", "3600000", "WRITE")
        waiting.send("SET", "k", "v")
        time.sleep(0.2)
        check_quiet(idle_server, 16)
        client.ok("CLIENT", "UNPAUSE")
        assert waiting.read() == b"OK"
