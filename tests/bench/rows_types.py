"""Rows 15 and 16: what collections cost, in CPU time and in bytes."""

import random

from load import pairs, series
from report import Measure, ratio_measure
from rows_load import load_note
from rows_state import settled_memory

PIPELINE = 32
GOAL, WORST = 0.6, 0.8
MEMORY_GOAL = 0.8
SEED = 1
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def fill(server, command, key, words, chunk=1000):
    """The words as arguments of one command after the other."""
    with server.client() as client:
        for start in range(0, len(words), chunk):
            client.call(command, key, *words[start:start + chunk])


def with_scores(members):
    return [word for number, member in enumerate(members) for word in (number, member)]


class Operation:
    """One measured command.  `load` fills a server once, before the windows; `before` runs ahead of
    every window (and of each repetition of one), so that all windows see the same state; `count`
    bounds windows whose command makes something grow or shrink."""

    def __init__(self, name, command, keyspace=None, load=None, before=None, count=None, data=16,
                 clients=50):
        self.name = name
        self.command = command.split()
        self.keyspace = keyspace
        self.load = load
        self.before = before
        self.count = count
        self.data = data
        self.clients = clients

    def arguments(self, bench):
        count = ["-n", bench.type_operations] if self.count else []
        keys = ["-r", self.keyspace] if self.keyspace else []
        return ["-c", self.clients, "-P", PIPELINE, "-d", self.data] + keys + count + self.command


def drop(key):
    def run(_bench, server):
        server.call("DEL", key)
    return run


def refill_list(bench, server):
    server.call("DEL", "list")
    bench.generator.run(server, "-c", 10, "-P", 50, "-d", 16, "-n", bench.type_operations, "lpush",
                        "list", "__data__")


def load_sorted_set(_bench, server):
    server.call("DEL", "zbig")
    fill(server, "ZADD", "zbig",
         with_scores("member:%012d" % number for number in range(100000)), 2000)


def load_list(_bench, server):
    server.call("DEL", "range")
    fill(server, "RPUSH", "range", ["element:%08d" % number for number in range(1000)])


def load_hash(_bench, server):
    server.call("DEL", "hash50")
    fill(server, "HSET", "hash50",
         [word for number in range(50) for word in ("field:%d" % number, "value:%010d" % number)])


def load_sets(_bench, server):
    """Half of each is in the other."""
    server.call("DEL", "left", "right")
    for key, first in (("left", 0), ("right", 5000)):
        fill(server, "SADD", key, ["member:%d" % number for number in range(first, first + 10000)])


OPERATIONS = (
    Operation("LPUSH", "lpush list __data__", before=drop("list"), count=True),
    Operation("RPOP", "rpop list", before=refill_list, count=True),
    Operation("SADD, one set of 100k", "sadd set member:__rand_int__", 100000),
    Operation("HSET, one hash of 100k", "hset hash field:__rand_int__ __data__", 100000),
    Operation("HSET, hashes of 10 fields", "hset h:__rand_int__ f:__rand_int__ __data__", 10),
    Operation("ZADD, set of 100", "zadd zsmall __rand_int__ member:__rand_int__", 100),
    Operation("ZADD, set of 100k", "zadd zbig __rand_int__ member:__rand_int__", 100000,
              load=load_sorted_set),
    Operation("ZRANGE 0 99", "zrange zbig 0 99", load=load_sorted_set),
    Operation("LRANGE 0 99", "lrange range 0 99", load=load_list),
    Operation("HGETALL of 50 fields", "hgetall hash50", load=load_hash),
    Operation("XADD", "xadd stream * field __data__", before=drop("stream"), count=True),
    Operation("SINTER of two sets of 10,000", "sinter left right", load=load_sets, clients=5),
)


def knows(server, command):
    return server.call("COMMAND", "INFO", command)[0] is not None


def measure_operation(bench, contestants, operation):
    for server in contestants.values():
        if operation.load:
            operation.load(bench, server)
    return pairs(bench, contestants, operation.arguments(bench), before=operation.before,
                 timed=not operation.count)


def row_15(bench):
    contestants = {"ours": bench.server(bench.ours), "oracle": bench.server(bench.oracle)}
    measures, worst = [], None
    for operation in OPERATIONS:
        title = "CPU an op, %s, pipeline %d" % (operation.name, PIPELINE)
        missing = [name for name, server in contestants.items()
                   if not knows(server, operation.command[0])]
        if missing:
            measures.append(Measure(15, title, None, None, None, GOAL, unit="us",
                                    note="%s does not know the command" % " and ".join(missing)))
            continue
        windows = measure_operation(bench, contestants, operation)
        cost = ratio_measure(15, title, series(windows["ours"], "cpu_us"),
                             series(windows["oracle"], "cpu_us"), GOAL, note=load_note(windows))
        measures.append(cost)
        worst = cost if worst is None or cost.value > worst.value else worst
    if worst:
        measures.append(Measure(15, "  the highest of these ratios", worst.ours, worst.other,
                                worst.value, WORST, unit="us", note=worst.name.split(", ", 1)[1]))
    return measures


# ---- memory ----

def text(numbers, length):
    return "".join(numbers.choices(ALPHABET, k=length))


def load_million_list(_bench, server, numbers, keys):
    """`keys` elements of one list."""
    element = text(numbers, 94)
    fill(server, "RPUSH", "list", [element + "%06d" % (number % 1000000) for number in range(keys)])


def hash_loader(fields, shortest, longest):
    def run(_bench, server, numbers, keys):
        with server.client() as client:
            for key in range(keys):
                words = []
                for field in range(fields):
                    words += ["field%d" % field, text(numbers, numbers.randint(shortest, longest))]
                client.call("HSET", "hash:%08d" % key, *words)
    return run


def load_integer_sets(_bench, server, numbers, keys):
    with server.client() as client:
        for key in range(keys):
            client.call("SADD", "set:%08d" % key, *numbers.sample(range(1000000), 1000))


def load_text_sets(_bench, server, numbers, keys):
    with server.client() as client:
        for key in range(keys):
            client.call("SADD", "set:%08d" % key,
                        *("member:%06d" % number for number in numbers.sample(range(1000000), 1000)))


def load_sorted_sets(_bench, server, numbers, keys):
    with server.client() as client:
        for key in range(keys):
            members = ["member:%06d" % number for number in numbers.sample(range(1000000), 1000)]
            client.call("ZADD", "zset:%08d" % key, *with_scores(members))


def bytes_each(bench, path, load, keys, each):
    server = bench.server(path)
    before = settled_memory(server)
    load(bench, server, random.Random(SEED), keys)
    used = settled_memory(server) - before
    bench.end(server)
    return used / each


def row_16(bench):
    small, large = bench.small_collections, bench.large_collections
    elements = bench.keys
    ours, oracle = (bytes_each(bench, path, load_million_list, elements, elements)
                    for path in (bench.ours, bench.oracle))
    measures = [Measure(16, "bytes an element, list of %.3g M of 100 bytes" % (elements / 1e6), ours,
                        oracle, ours, 110, unit="B (absolute)", digits=1)]
    for name, load, keys in (
            ("hash of 10 fields of 6, values of 8", hash_loader(10, 8, 8), small),
            ("hash of 10 fields of 6, values of 8-16", hash_loader(10, 8, 16), small),
            ("hash of 10 fields of 6, values of 16", hash_loader(10, 16, 16), small),
            ("hash of 1,000 fields, values of 8-16", hash_loader(1000, 8, 16), large),
            ("set of 1,000 integers", load_integer_sets, large),
            ("set of 1,000 members of 13", load_text_sets, large),
            ("sorted set of 1,000 members of 13", load_sorted_sets, large)):
        ours, oracle = (bytes_each(bench, path, load, keys, keys) for path in (bench.ours, bench.oracle))
        measures.append(Measure(16, "bytes a key, " + name, ours, oracle, ours / oracle, MEMORY_GOAL,
                                unit="B", digits=1))
    return measures
