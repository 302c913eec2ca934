"""Histories of blocking queues, and their check.

Every operation on a queue is sent together with INCR of one ticket counter before it; a server runs
the two without anything of another client between them.  So tickets number the operations in the
order in which they took effect or began to wait, and what each must have replied follows exactly
from a run of the same operations, in that order, on a model of lists and waiters:

    a pop takes from the first of its keys that has an element, else it waits at all of them;
    a push serves the waiters of its key, first come, first served;
    a move that is served is a push to its target;
    keys that become ready by one operation are looked after in the order in which they do.

A pop with a time-out that came to nothing must have found its keys empty when it began; it is taken
for one that never waited.
"""

import collections
import multiprocessing
import time
import traceback

from lib.bounds import Bound, scaled
from lib.resp import Connection, Error, encode
from lib.seeds import generator

ROUND_BOUND_S = 60.0
TICKETS = "tickets"

# An operation: its ticket, the command's words as str, what it replied.
Op = collections.namedtuple("Op", "ticket words reply")


class Broken(Exception):
    """The history is none of first come, first served."""


# ---- the model ----


class _Waiter:
    def __init__(self, op):
        self.op = op
        self.waiting = True


class _Model:
    def __init__(self):
        self.lists = collections.defaultdict(collections.deque)
        self.waiters = collections.defaultdict(collections.deque)
        self.ready = collections.deque()
        self.replies = {}

    def push(self, key, elements):
        self.lists[key].extend(elements)
        if key not in self.ready:
            self.ready.append(key)

    def try_pop(self, op):
        """Whether the pop or move was served."""
        name, words = op.words[0], op.words[1:]
        if name == "BLMOVE":
            source, target = words[0], words[1]
            if not self.lists[source]:
                return False
            element = self.lists[source].popleft()
            self.replies[op.ticket] = element
            self.push(target, [element])
            return True
        for key in words[:-1]:
            if self.lists[key]:
                self.replies[op.ticket] = [key.encode(), self.lists[key].popleft()]
                return True
        return False

    def wait(self, op):
        waiter = _Waiter(op)
        keys = op.words[1:2] if op.words[0] == "BLMOVE" else op.words[1:-1]
        for key in dict.fromkeys(keys):
            self.waiters[key].append(waiter)

    def serve(self):
        while self.ready:
            key = self.ready.popleft()
            for waiter in list(self.waiters[key]):
                if not self.lists[key]:
                    break
                if waiter.waiting and self.try_pop(waiter.op):
                    waiter.waiting = False
                    self.waiters[key].remove(waiter)

    def run(self, op):
        if op.words[0] == "RPUSH":
            self.push(op.words[1], [word.encode() for word in op.words[2:]])
            self.replies[op.ticket] = len(self.lists[op.words[1]])
        elif not self.try_pop(op):
            self.replies[op.ticket] = None
            if op.reply is not None:
                self.wait(op)
        self.serve()


def check(history, left=None):
    """Raises Broken unless first come, first served explains the history; `left`: what the queues
    hold at its end, {key: [elements]}."""
    model = _Model()
    tickets = [op.ticket for op in history]
    if len(set(tickets)) != len(tickets):
        raise Broken("two operations with one ticket")
    for op in sorted(history):
        model.run(op)
    for op in sorted(history):
        if model.replies[op.ticket] != op.reply:
            raise Broken("ticket %d, %s: replied %r, due was %r"
                         % (op.ticket, " ".join(op.words), op.reply, model.replies[op.ticket]))
    if left is not None:
        due = {key: list(elements) for key, elements in model.lists.items() if elements}
        if left != due:
            raise Broken("left over: %r, due was %r" % (left, due))


# ---- recording ----


def _call(client, words):
    client.send_raw(encode("INCR", TICKETS) + encode(*words))
    ticket, reply = client.read(), client.read()
    if isinstance(reply, Error):
        raise AssertionError("%s: %r" % (" ".join(words), reply))
    return Op(ticket, tuple(words), reply)


def _work(address, plan, barrier, pipe):
    history, trouble = [], None
    try:
        with Connection(address, timeout_s=scaled(ROUND_BOUND_S)) as client:
            barrier.wait(scaled(ROUND_BOUND_S))
            for words in plan:
                history.append(_call(client, words))
    except BaseException:
        trouble = traceback.format_exc()
    pipe.send((history, trouble))
    pipe.close()


def record(address, plans, keys):
    """Run the plans at once, a process each, and feed the keys until all have come to their ends.
    Gives the history and what is left in the keys."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(len(plans))
    workers = []
    for plan in plans:
        here, there = context.Pipe(duplex=False)
        worker = context.Process(target=_work, args=(address, plan, barrier, there))
        worker.start()
        there.close()
        workers.append((worker, here))
    history, trouble = [], []
    try:
        with Connection(address) as feeder:
            bound = Bound(scaled(ROUND_BOUND_S))
            serial = 0
            while not all(pipe.poll(0) for _, pipe in workers):
                if not bound.left():
                    trouble.append("a client waits though its keys are fed")
                    break
                serial += 1
                for key in keys:
                    history.append(_call(feeder, ["RPUSH", key, "fed-%s-%d" % (key, serial)]))
                time.sleep(0.005)
            for worker, pipe in workers:
                if pipe.poll(0):
                    part, error = pipe.recv()
                    history += part
                    trouble += [error] if error else []
            left = {key: feeder.call("LRANGE", key, "0", "-1") for key in keys}
    finally:
        for worker, _ in workers:
            if trouble:
                worker.kill()
            worker.join()
    assert not trouble, "\n".join(trouble)
    return history, {key: elements for key, elements in left.items() if elements}


# ---- plans ----


def plans(seed, keys, producers=3, consumers=6, movers=1, ops=150):
    """Producers push one to three elements; consumers pop from one or several keys, some with a
    short time-out; movers carry elements from one key to another."""
    made = []
    for number in range(producers):
        random, plan, serial = generator(seed, "producer", number), [], 0
        for _ in range(ops * consumers // producers // 2):
            elements = []
            for _ in range(random.choice([1, 1, 1, 2, 3])):
                serial += 1
                elements.append("%d-%d" % (number, serial))
            plan.append(["RPUSH", random.choice(keys)] + elements)
        made.append(plan)
    for number in range(consumers):
        random, plan = generator(seed, "consumer", number), []
        for _ in range(ops):
            wanted = random.choices(keys, k=random.choice([1, 1, 2, 3]))
            plan.append(["BLPOP"] + wanted + [random.choice(["0", "0", "0", "0.002"])])
        made.append(plan)
    for number in range(movers):
        random, plan = generator(seed, "mover", number), []
        for _ in range(ops):
            plan.append(["BLMOVE", random.choice(keys), random.choice(keys), "LEFT", "RIGHT", "0"])
        made.append(plan)
    return made
