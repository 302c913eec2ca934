"""Row 21: CPU time an operation of every command (every_command.txt), one connection with a pipeline of 32, both
servers with the same content.  Row 22: a short connection: connect, HELLO, two CLIENT SETINFO, GET, close."""

import os
import shlex
import socket

from load import Window, pairs, series
from machine import Meter
from report import Measure, ratio_measure
from rows_load import load_note
from rows_types import drop, fill, with_scores

PIPELINE = 32
GOAL, MEDIAN_GOAL, SHORT_GOAL = 0.9, 0.7, 0.95
CASE_WINDOW_S = 0.3
SHORT_CONNECTIONS = 3000
SHORT_THREADS = (1, 4)
LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "every_command.txt")
LIBRARY = "#!lua name=bench\nredis.register_function{function_name='get1', flags={'no-writes'}, " \
          "callback=function(keys) return redis.call('get', keys[1]) end}"


def numbered(prefix, count, first=0):
    return ["%s%012d" % (prefix, number) for number in range(first, first + count)]


def refill(key, count):
    def run(_bench, server):
        server.call("DEL", key)
        if key == "ins":
            server.call("RPUSH", key, "a")
        elif key.startswith("z"):
            fill(server, "ZADD", key, with_scores(numbered("m:", count + 100)))
        else:
            fill(server, "SADD" if key.startswith("s") else "RPUSH", key, numbered("m:", count + 100))
    return run


def group_again(key, _count):
    def run(_bench, server):
        server.call("XGROUP", "DESTROY", key, "g")
        server.call("XGROUP", "CREATE", key, "g", "0")
    return run


BEFORE = {"drop": lambda key, _count: drop(key), "refill": refill, "again": group_again}


class Case:
    """A line of every_command.txt."""

    def __init__(self, line):
        command, name, options = ([part.strip() for part in line.split("|")] + ["", ""])[:3]
        values = dict(option.split("=") for option in options.split())
        self.words = shlex.split(command)
        self.name = name or command
        self.count = int(values.pop("n", 0))
        self.keys = values.pop("keys", "1000")
        self.data = values.pop("data", "16")
        self.before = None
        for verb, key in values.items():
            self.before = BEFORE[verb](key, self.count)

    def arguments(self):
        count = ["-n", self.count] if self.count else []
        return ["-c", 1, "-P", PIPELINE, "-d", self.data, "-r", self.keys] + count + self.words


def cases():
    with open(LIST, encoding="utf-8") as file:
        return [Case(line) for line in file if line.strip() and not line.startswith("#")]


def load_strings(server):
    server.call("MSET", *with_values(numbered("key:", 1000)))
    server.call("SET", "volatile", "x", "EX", "100000")
    server.call("MSET", "there", "x", "large", "x" * 10000, "bits", "\x55" * 10000, "bits2", "\x0f" * 10000,
                "words1", "ab" * 50, "words2", "abc" * 33)
    server.call("SETRANGE", "zeros", 9999, "\xff")
    for key, count in (("hlldense", 100000), ("hlldense2", 50000), ("hllsparse", 100)):
        fill(server, "PFADD", key, numbered("", count))


def with_values(keys):
    """Each key and then a value, as MSET takes them."""
    return [word for key in keys for word in (key, "x" * 16)]


def load_collections(server):
    fill(server, "RPUSH", "list1000", ["element:%08d" % number for number in range(1000)])
    fill(server, "RPUSH", "list100", ["element:%d" % number for number in range(100)])
    fill(server, "RPUSH", "numbers100", [number * 37 % 100 for number in range(100)])
    fill(server, "RPUSH", "ring", numbered("m:", 10))
    fill(server, "HSET", "hash50", [word for number in range(50)
                                    for word in ("field:%d" % number, "value:%010d" % number)])
    fill(server, "HSET", "hbig", with_values(numbered("field:", 10000)))
    fill(server, "SADD", "sbig", numbered("member:", 10000))
    fill(server, "SADD", "sints", range(500))
    fill(server, "SADD", "s100", numbered("member:", 100))
    fill(server, "SADD", "s100b", numbered("member:", 100, 50))
    fill(server, "ZADD", "z100", with_scores(numbered("m:", 100)))
    fill(server, "ZADD", "z100b", with_scores(numbered("m:", 100, 50)))
    fill(server, "ZADD", "zbig", with_scores(numbered("m:", 10000)))
    fill(server, "ZADD", "zsame", [word for member in numbered("m:", 1000) for word in ("0", member)])
    fill(server, "GEOADD", "geo", [word for number in range(10000) for word in
                                   (number * 37 % 3600 / 100, number * 53 % 8000 / 100, "g:%d" % number)], 999)


def load_streams(server):
    with server.client() as client:
        for key in ("stream", "fresh"):
            for number in range(1, 10001):
                client.call("XADD", key, "%d-1" % number, "field", "value:%d" % number)
            client.call("XGROUP", "CREATE", key, "g", "0")
        client.call("XREADGROUP", "GROUP", "g", "c", "COUNT", "100", "STREAMS", "stream", ">")


def load(server):
    load_strings(server)
    load_collections(server)
    load_streams(server)
    server.call("FUNCTION", "LOAD", "REPLACE", LIBRARY)
    server.call("SCRIPT", "LOAD", "return 1")


def measure(bench, contestants, case):
    title = "CPU an op, " + case.name
    try:
        windows = pairs(bench, contestants, case.arguments(), before=case.before, timed=not case.count,
                        seconds=min(bench.window_s, CASE_WINDOW_S))
    except RuntimeError as refused:
        return Measure(21, title, None, None, None, GOAL, unit="us", note=str(refused))
    return ratio_measure(21, title, series(windows["ours"], "cpu_us"), series(windows["oracle"], "cpu_us"), GOAL,
                         note=load_note(windows))


def summary(measures):
    known = sorted((each for each in measures if each.value is not None), key=lambda each: each.value)
    if not known:
        return []
    middle = known[len(known) // 2]
    over = sum(each.verdict == "NO" for each in known)
    return [Measure(21, "  the median of these ratios", middle.ours, middle.other, middle.value, MEDIAN_GOAL, unit="us"),
            Measure(21, "  the highest of these ratios", known[-1].ours, known[-1].other, known[-1].value, GOAL,
                    unit="us", note="%s; %d of %d above" % (known[-1].name.split(", ", 1)[1], over, len(known)))]


def row_21(bench):
    contestants = {"ours": bench.server(bench.ours), "oracle": bench.server(bench.oracle)}
    for server in contestants.values():
        load(server)
    wanted = [case for case in cases() if (bench.command or "") in case.name]
    measures = [measure(bench, contestants, case) for case in wanted]
    return measures + summary(measures)


# ---- short connections ----

HELLO = b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"
SETINFO = b"*4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$8\r\nlib-name\r\n$5\r\nbench\r\n" \
          b"*4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$7\r\nlib-ver\r\n$3\r\n1.0\r\n"
GET = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"


def short_connection(port):
    """As a client library begins: each step waits for its replies. The oracle answers SETINFO with errors."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for request, end in ((HELLO, b"*0\r\n"), (SETINFO, b"\r\n"), (GET, b"_\r\n")):
            connection.sendall(request)
            seen = b""
            while not (seen.endswith(end) and (request is not SETINFO or seen.count(b"\r\n") == 2)):
                seen += connection.recv(4096)


def short_window(server):
    meter = Meter([server.pid])
    before_s = server.cpu_s()
    for _ in range(SHORT_CONNECTIONS):
        short_connection(server.port)
    outcome = {"requests": SHORT_CONNECTIONS, "rps": 0, "seconds": 1, "generator_cpu_seconds": 0, "latency_ms": None}
    return Window(outcome, server.cpu_s() - before_s, meter.foreign_share())


def row_22(bench):
    os.sched_setaffinity(0, {int(bench.generator.cores)})
    measures = []
    for threads in SHORT_THREADS:
        contestants = {"ours": bench.server(bench.ours, threads=threads), "oracle": bench.server(bench.oracle)}
        windows = {name: [] for name in contestants}
        for _ in range(bench.pair_count):
            for name, server in contestants.items():
                windows[name].append(short_window(server))
        measures.append(ratio_measure(22, "CPU a short connection, %d threads" % threads, series(windows["ours"], "cpu_us"),
                                      series(windows["oracle"], "cpu_us"), SHORT_GOAL))
        bench.end_all()
    return measures
