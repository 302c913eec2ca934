"""10,000 idle clients and 100 busy ones, without a refusal and for little memory each."""

import threading

import pytest

from lib.bounds import descriptors, eventually
from lib.resp import Connection
from lib.server import parse_info


def used_memory(client):
    return int(parse_info(client.call("INFO", "memory"))["used_memory"])


def work(server, number, rounds):
    with server.connect() as c:
        for turn in range(rounds):
            value = b"%d-%d" % (number, turn)
            assert c.pipeline([["SET", "k%d" % number, value],
                               ["GET", "k%d" % number]]) == [b"OK", value]


def idle_and_busy(server, idle_count, busy_count, rounds):
    idle, trouble = [], []

    def guarded(number):
        try:
            work(server, number, rounds)
        except BaseException as error:
            trouble.append(error)

    with server.connect() as watcher:
        before = used_memory(watcher)
        try:
            for _ in range(idle_count):
                idle.append(Connection(server.address()))
            eventually(lambda: int(parse_info(watcher.call("INFO", "clients"))["connected_clients"])
                       >= idle_count + 1, "all are connected", bound_s=60)
            per_client = (used_memory(watcher) - before) / idle_count
            workers = [threading.Thread(target=guarded, args=(n,)) for n in range(busy_count)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            assert not trouble, trouble[0]
            for client in idle[::97]:
                assert client.call("PING") == b"PONG"
            assert parse_info(watcher.call("INFO"))["rejected_connections"] == "0"
        finally:
            for client in idle:
                client.close()
        eventually(lambda: parse_info(watcher.call("INFO", "clients"))["connected_clients"] == "1",
                   "all are gone", bound_s=60)
    return per_client


def test_500_idle_and_20_busy(make_server, ours_only):
    per_client = idle_and_busy(make_server(), 500, 20, 20)
    assert per_client < 4096


@pytest.mark.slow
def test_10000_idle_and_100_busy(make_server, ours_only):
    if descriptors() < 11_000:
        pytest.skip("the descriptor limit is below 11,000")
    per_client = idle_and_busy(make_server({"maxclients": "12000"}), 10_000, 100, 50)
    assert per_client < 4096
