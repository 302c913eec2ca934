"""Clients move between server threads after connect: nobody notices, and what belongs to a client
moves with it."""

import threading
import time

import pytest

from lib.bounds import eventually
from lib.server import parse_info

# Slow to run and quick to send, so that the server's thread is busy and this process is not.
SLOW = ["LCS", "a", "b", "LEN"]
TEXT = "0123456789" * 15
PIPELINE = 50


def thread_of(client):
    return parse_info(client.call("INFO", "clients", "threads"))["current_client_thread"]


class Busy(threading.Thread):
    """A client with a state of its own that works until it is told to stop."""

    def __init__(self, client, number):
        super().__init__()
        self.client, self.number = client, number
        self.stopped = threading.Event()
        self.trouble = None
        self.seen = []
        client.ok("CLIENT", "SETNAME", "busy%d" % number)
        client.ok("SELECT", number)
        client.ok("MSET", "a", TEXT, "b", TEXT[::-1], "mine", number)

    def run(self):
        try:
            turn = 0
            while not self.stopped.is_set():
                turn += 1
                replies = self.client.pipeline([SLOW] * PIPELINE + [
                    ["ECHO", turn], ["GET", "mine"], ["CLIENT", "GETNAME"], ["INFO", "clients", "threads"]])
                assert replies[0] == replies[PIPELINE - 1] and replies[0] > 0
                assert replies[PIPELINE:-1] == [b"%d" % turn, b"%d" % self.number,
                                                b"busy%d" % self.number]
                thread = parse_info(replies[-1])["current_client_thread"]
                if thread not in self.seen[-1:]:
                    self.seen.append(thread)
        except BaseException as error:
            self.trouble = error


def two_of_one_thread(connect, server, threads):
    """Two clients that share a thread, and one that watches from another."""
    clients = [connect(to=server) for _ in range(2 * threads)]
    homes = [thread_of(client) for client in clients]
    pairs = [(a, b) for a in range(len(clients)) for b in range(a) if homes[a] == homes[b]]
    a, b = pairs[0]
    watcher = next(c for c, home in zip(clients, homes) if home != homes[a])
    return clients[a], clients[b], watcher


def apart(work):
    for busy in work:
        if busy.trouble is not None:
            raise busy.trouble
    return work[0].seen and work[1].seen and work[0].seen[-1] != work[1].seen[-1]


def test_busy_clients_of_one_thread_move_apart(make_server, connect, threads, ours_only):
    """However crowded the cores are, for a cron that is told to be eager; when it moves clients by itself is held by
    figures (unit/net/test_busyness.c)."""
    if threads < 2:
        pytest.skip("needs two threads")
    server = make_server()
    first, second, watcher = two_of_one_thread(connect, server, threads)
    watcher.ok("DEBUG", "EAGER-BALANCE", 1)
    work = [Busy(first, 1), Busy(second, 2)]
    for busy in work:
        busy.start()
    try:
        eventually(lambda: apart(work), "the two are apart", 120)
    finally:
        for busy in work:
            busy.stopped.set()
        for busy in work:
            busy.join()
    assert work[0].trouble is None and work[1].trouble is None
    info = parse_info(watcher.call("INFO", "clients", "threads"))
    assert int(info["clients_moved"]) >= 1
    assert max(len(busy.seen) for busy in work) >= 2
    assert int(info["thread_%s_clients" % work[0].seen[-1]]) >= 1
    listed = watcher.call("CLIENT", "LIST")
    assert b" name=busy1 " in listed and b" name=busy2 " in listed


def test_nobody_moves_when_told_so(make_server, connect, threads, ours_only):
    if threads < 2:
        pytest.skip("needs two threads")
    server = make_server({"active-client-balancing": "no"})
    first, second, watcher = two_of_one_thread(connect, server, threads)
    work = [Busy(first, 1), Busy(second, 2)]
    for busy in work:
        busy.start()
    time.sleep(3.5)
    for busy in work:
        busy.stopped.set()
    for busy in work:
        busy.join()
    for busy in work:
        assert busy.trouble is None and len(busy.seen) == 1
    assert parse_info(watcher.call("INFO", "clients", "threads"))["clients_moved"] == "0"
