"""Money that is moved between accounts by transactions.  Whoever looks at all accounts in one
transaction sees the same total, and nothing is ever lost."""

from lib.resp import Connection
from lib.seeds import generator
from lib.workers import run_workers

ACCOUNTS = ["{bank}%d" % n for n in range(5)]
EACH = 1000
TOTAL = EACH * len(ACCOUNTS)


class Broken(AssertionError):
    """What no order of whole transactions explains."""


def fill(client):
    client.ok("MSET", *[w for account in ACCOUNTS for w in (account, EACH)])


def _look():
    return [["MULTI"]] + [["GET", account] for account in ACCOUNTS] + [["EXEC"]]


def _move(random):
    source, target = random.sample(ACCOUNTS, 2)
    amount = str(random.randint(1, 50))
    return [["MULTI"], ["DECRBY", source, amount], ["INCRBY", target, amount],
            ["MGET"] + ACCOUNTS, ["EXEC"]]


def _totals(program, replies):
    for words, reply in zip(program, replies):
        if words[0] == "EXEC":
            parts = reply[-1] if isinstance(reply[-1], list) else reply
            yield sum(int(part) for part in parts)


def move_money(address, seed, clients=8, rounds=100, batch=20):
    """Every client sends pipelines of `batch` transactions; Broken when one has seen another total."""

    def work(client, number):
        random, wrong = generator(seed, "bank", number), []
        for _ in range(rounds):
            program = []
            for _ in range(batch):
                program += _look() if random.random() < 0.5 else _move(random)
            wrong += [t for t in _totals(program, client.pipeline(program)) if t != TOTAL]
        return wrong

    with Connection(address) as client:
        fill(client)
        wrong = [total for seen in run_workers(address, work, clients) for total in seen]
        last = sum(int(part) for part in client.call("MGET", *ACCOUNTS))
    if wrong or last != TOTAL:
        raise Broken("totals seen: %r; at the end: %d" % (wrong[:10], last))


def count_optimistically(address, seed, clients=8, rounds=100, keys=2):
    """WATCH, GET, MULTI, SET, EXEC until it works: Broken when increments are lost or come twice."""

    def work(client, number):
        random, made = generator(seed, "optimist", number), []
        for _ in range(rounds):
            key = "count%d" % random.randrange(keys)
            while True:
                client.ok("WATCH", key)
                value = int(client.call("GET", key) or 0) + 1
                replies = client.pipeline([["MULTI"], ["SET", key, value], ["GET", key], ["EXEC"]])
                if replies[-1] is not None:
                    made.append((key, value, int(replies[-1][1])))
                    break
        return made

    with Connection(address) as client:
        client.call("DEL", *["count%d" % n for n in range(keys)])
        made = [m for each in run_workers(address, work, clients) for m in each]
        ends = {"count%d" % n: int(client.call("GET", "count%d" % n) or 0) for n in range(keys)}
    for key, end in ends.items():
        values = sorted(value for k, value, _ in made if k == key)
        if values != list(range(1, end + 1)):
            raise Broken("%s ends at %d after %d increments" % (key, end, len(values)))
    if any(value != seen for _, value, seen in made):
        raise Broken("somebody wrote inside a transaction")
