"""Administration while all threads work: every reply is well formed and of its kind, nobody dies,
and the sanitizers have the mixtures to look at that single tests do not make."""

import random
import threading
import time

import pytest

from lib.bounds import eventually
from lib.pubsub import until_token
from lib.resp import Closed, Error, Timeout, encode
from lib.seeds import seeds
from lib.server import free_port, parse_info

pytestmark = pytest.mark.one_thread("everything is on one thread, the world never stands")

SECONDS = 2.0
KEYS = ["k%d" % n for n in range(60)]
SIZES = [0, 1, 8, 44, 45, 200, 1000, 1100, 20_000, 300_000]


class Worker(threading.Thread):
    """Runs turn(self, client) until the time is over, on connections of its own."""

    def __init__(self, server, seed, turn, proto=2):
        super().__init__()
        self.server, self.turn, self.proto = server, turn, proto
        self.random = random.Random(seed)
        self.trouble = None
        self.turns = 0
        self.killed = 0

    def run(self):
        deadline = time.monotonic() + SECONDS
        client = None
        try:
            # At least one turn: on a busy machine the time may be over before this thread gets to work.
            while time.monotonic() < deadline or not (self.turns or self.turn is comings_and_goings):
                try:
                    client = client or self.server.connect(self.proto)
                    self.turn(self, client)
                    self.turns += 1
                except (Closed, ConnectionError):
                    # Somebody kills clients: that is no trouble, a dead server is.
                    self.killed += 1
                    client = client and client.close()
                    if not self.server.alive():
                        raise
        except BaseException as error:
            self.trouble = error
        finally:
            if client:
                client.close()


def data(worker, client):
    pick, commands = worker.random.choice, []
    for _ in range(worker.random.choice([1, 1, 5, 40])):
        key, other = pick(KEYS), pick(KEYS)
        value = pick("abc") * pick(SIZES)
        commands.append(pick([
            ["GET", key], ["GET", key], ["MGET", key, other], ["STRLEN", key], ["EXISTS", key, other],
            ["SET", key, value], ["SET", key, value, "PX", str(pick([1, 5, 50, 100_000]))],
            ["SET", key, pick(["1", "77", "-5"])], ["INCR", key], ["APPEND", key, value[:100]],
            ["SETRANGE", key, str(pick([0, 5, 2000])), "xyz"], ["GETRANGE", key, "1", "-2"],
            ["GETDEL", key], ["GETEX", key, "PX", "3"], ["DEL", key, other], ["UNLINK", key],
            ["RENAME", key, other], ["COPY", key, other, "REPLACE"], ["MOVE", key, "1"],
            ["PEXPIRE", key, str(pick([1, 10, 5000]))], ["PERSIST", key], ["TTL", key],
            ["TYPE", key], ["OBJECT", "ENCODING", key], ["OBJECT", "IDLETIME", key],
            ["LCS", key, other, "LEN"], ["TOUCH", key], ["RANDOMKEY"], ["SCAN", "0", "COUNT", "30"],
            ["KEYS", "k1*"], ["DBSIZE"], ["SELECT", pick("01")], ["MSETNX", key, value, other, "x"],
            ["ECHO", value], ["PING"], ["SWAPDB", "0", "1"], ["DEBUG", "OBJECT", key],
        ]))
    if pick([True, False, False]):
        watched = [["WATCH", pick(KEYS)]] if pick([True, False]) else []
        commands = watched + [["MULTI"]] + commands + [[pick(["EXEC", "EXEC", "DISCARD"])]]
    client.pipeline(commands)


def listening(worker, client):
    """Subscriptions that come and go; keyspace events are switched on and off meanwhile."""
    pick, commands = worker.random.choice, []
    for _ in range(worker.random.choice([1, 3, 10])):
        channel, pattern = pick("abcd"), pick(["*", "__key*", "[ab]", "c*"])
        commands.append(pick([
            ["SUBSCRIBE", channel, pick("abcd")], ["PSUBSCRIBE", pattern], ["SSUBSCRIBE", channel],
            ["UNSUBSCRIBE", channel], ["UNSUBSCRIBE"], ["PUNSUBSCRIBE"], ["SUNSUBSCRIBE"],
            ["PUBLISH", channel, "m" * pick(SIZES)], ["SPUBLISH", channel, "m"],
            ["PUBSUB", "CHANNELS"], ["PUBSUB", "NUMSUB", "a", "b"], ["SET", pick(KEYS), "x"],
        ]))
    client.send_raw(b"".join(encode(*words) for words in commands))
    until_token(client, b"token-%d" % worker.turns)


def collections(worker, client):
    """Values of all types under the same few keys, which change their type now and then."""
    pick, commands = worker.random.choice, []
    for _ in range(worker.random.choice([1, 5, 40])):
        key, other, number = pick(KEYS), pick(KEYS), str(worker.random.randrange(50))
        name = pick("abc") * pick([1, 10, 100])
        commands.append(pick([
            ["RPUSH", key, number, name], ["LPOP", key], ["LRANGE", key, "0", "-1"],
            ["LMOVE", key, other, "LEFT", "RIGHT"], ["LTRIM", key, "0", "200"],
            ["HSET", key, name, number], ["HGETALL", key], ["HDEL", key, name],
            ["HSCAN", key, "0"], ["SADD", key, number, name], ["SREM", key, name],
            ["SUNIONSTORE", key, key, other], ["SMEMBERS", key], ["SPOP", key],
            ["ZADD", key, number, name], ["ZRANGE", key, "0", "-1"], ["ZPOPMIN", key],
            ["ZINTERSTORE", key, "2", key, other], ["ZSCAN", key, "0"],
            ["GEOADD", key, number, number, name], ["PFADD", key, name], ["PFCOUNT", key, other],
            ["SETBIT", key, number, "1"], ["BITOP", "LSHIFT", key, other, number],
            ["XADD", key, "MAXLEN", "50", "*", "f", number], ["XRANGE", key, "-", "+"],
            ["SORT", key, "ALPHA", "STORE", other], ["SORT_RO", key, "BY", "k*", "GET", "k*"],
            ["SORT", key, "BY", "nosort", "LIMIT", "1", "5"],
            ["KEYDB.NHSET", "%s.a.%s" % (key, name), number], ["KEYDB.NHGET", "json", key],
            ["KEYDB.NHSET", "%s.a" % key, number, number], ["COPY", key, other, "REPLACE"],
            ["DEL", key], ["UNLINK", key, other], ["TYPE", key], ["OBJECT", "ENCODING", key],
            ["DEBUG", "OBJECT", key], ["DEBUG", "DIGEST-VALUE", key], ["DEBUG", "HTSTATS-KEY", key],
            ["MEMORY", "USAGE", key, "SAMPLES", "3"], ["EXPIRE", key, "1000"],
        ]))
    client.pipeline(commands)


def administration(worker, client):
    pick = worker.random.choice
    command = pick([
        ["INFO", "everything"], ["CLIENT", "LIST"], ["CLIENT", "INFO"], ["CONFIG", "GET", "*"],
        ["CONFIG", "SET", "notify-keyspace-events", pick(["", "KEAmn", "Kx"])],
        ["CONFIG", "SET", "slowlog-log-slower-than", pick(["0", "100", "-1"])],
        ["CONFIG", "SET", "latency-monitor-threshold", pick(["0", "1"])],
        ["CONFIG", "SET", "latency-tracking", pick(["yes", "no"])],
        ["CONFIG", "SET", "active-expire-effort", pick(["1", "10"]), "hz", pick(["1", "100", "500"])],
        ["CONFIG", "SET", "maxmemory-policy", pick(["noeviction", "allkeys-lfu", "allkeys-lru"])],
        ["CONFIG", "SET", "client-output-buffer-limit", pick(["normal 0 0 0", "normal 4mb 1mb 1"])],
        ["CONFIG", "SET", "lazyfree-lazy-user-del", pick(["yes", "no"])],
        ["CONFIG", "SET", "active-client-balancing", pick(["yes", "no"])],
        ["CONFIG", "SET", "requirepass", ""], ["CONFIG", "RESETSTAT"],
        ["SLOWLOG", "GET"], ["SLOWLOG", "RESET"], ["LATENCY", "LATEST"], ["LATENCY", "RESET"],
        ["LATENCY", "HISTOGRAM"], ["LATENCY", "DOCTOR"], ["MEMORY", "STATS"], ["MEMORY", "DOCTOR"],
        ["MEMORY", "USAGE", pick(KEYS)], ["MEMORY", "PURGE"], ["COMMAND", "COUNT"],
        ["COMMAND", "DOCS", "get"], ["COMMAND", "INFO", "set"], ["DEBUG", "DIGEST"],
        ["DEBUG", "SET-ACTIVE-EXPIRE", pick("01")], ["FLUSHDB", pick(["ASYNC", "SYNC"])],
        ["FLUSHALL", pick(["ASYNC", "SYNC"])], ["CLIENT", "PAUSE", "3", pick(["ALL", "WRITE"])],
        ["CLIENT", "UNPAUSE"], ["CLIENT", "KILL", "TYPE", "pubsub"],
        ["CLIENT", "SETNAME", pick(["a", "b"])], ["LOLWUT"], ["TIME"],
        ["CLIENT", "NO-EVICT", pick(["on", "off"])], ["SCAN", "0"], ["DEBUG", "SLEEP", "0.002"],
    ])
    reply = client.call(*command)
    assert not isinstance(reply, Error), (command, reply)


def comings_and_goings(worker, client):
    """Connections that end in every way, monitors among them."""
    pick = worker.random.choice
    identity = client.call("CLIENT", "ID")
    way = worker.random.randrange(6)
    if way == 0:
        client.ok("MONITOR")
        client.nothing_comes(0.05)
    elif way == 1:
        client.send_raw(b"*2\r\n$3\r\nGET\r\n$2\r\nk1\r\n" * 50 + b"*3\r\n$3\r\nSE")
    elif way == 2:
        client.call("CLIENT", "KILL", "ID", str(identity - worker.random.randint(1, 4)))
        client.send("SET", pick(KEYS), "z" * 100_000)
    elif way == 3:
        client.send("QUIT")
    elif way == 4:
        client.send_raw(b"CLIENT REPLY SKIP\r\nSET %s 1\r\n*x\r\n" % pick(KEYS).encode())
        client.read_to_end()
    else:
        client.send_raw(b"GET %s\r\n" % pick(KEYS).encode() * 200)
    if pick([True, False]):
        client.reset_hard()
        raise Closed("as it was meant to")
    raise Closed("as it was meant to")


def run_all(server, seed, jobs):
    """Each job from a worker of its own, until the time is over."""
    workers = [Worker(server, "%d/%d" % (seed, n), job, proto=2 + n % 2)
               for n, job in enumerate(jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for worker in workers:
        if worker.trouble is not None:
            raise worker.trouble
        assert worker.turns or worker.turn is comings_and_goings


@pytest.mark.parametrize("seed", seeds(2))
def test_everything_at_once(make_server, seed, ours_only):
    server = make_server({"unixsocket": "s.sock"})
    run_all(server, seed, [data, data, collections, collections, administration, administration,
                           comings_and_goings, listening, listening])
    with server.connect() as client:
        for name, value in (("client-output-buffer-limit", "normal 0 0 0"), ("hz", "10")):
            client.ok("CONFIG", "SET", name, value)
        eventually(lambda: parse_info(client.call("INFO", "clients"))["connected_clients"] == "1",
                   "all others are gone")
        client.ok("FLUSHALL", "SYNC")
        assert client.call("DBSIZE") == 0


def test_the_port_moves_while_clients_come(make_server, ours_only):
    server = make_server({"unixsocket": "s.sock"})
    stop = threading.Event()
    trouble = []

    def come(number):
        while not stop.is_set():
            try:
                with server.connect() as client:
                    assert client.call("ECHO", str(number)) == b"%d" % number
            except (ConnectionError, Closed):
                pass
            except (AssertionError, Timeout) as error:
                trouble.append(error)

    comers = [threading.Thread(target=come, args=(n,)) for n in range(3)]
    for comer in comers:
        comer.start()
    here, there = server.port, free_port()
    try:
        with server.connect() as client:
            for _ in range(100):
                assert client.pipeline([["CONFIG", "SET", "port", there],
                                        ["CONFIG", "SET", "port", here]]) == [b"OK", b"OK"]
            assert client.call("PING") == b"PONG"
    finally:
        stop.set()
        for comer in comers:
            comer.join()
    assert not trouble, trouble[0]
    with server.connect() as client:
        assert client.call("PING") == b"PONG"
