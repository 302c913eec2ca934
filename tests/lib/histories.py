"""Records histories: clients as processes, each with a connection of its own, noting monotonic
nanoseconds (one clock for all processes of a machine) before each call and after each reply."""

import multiprocessing
import time
import traceback

from lib.bounds import BoundPassed, scaled
from lib.linearizability import FOREVER, UNKNOWN, Op
from lib.resp import Closed, Connection, Error, Malformed, Timeout
from lib.seeds import generator

ROUND_BOUND_S = 60.0


def _run(address, plan, number, barrier, pipe):
    """One client process: executes its plan, a list of batches of (key, name, args)."""
    history = []
    try:
        with Connection(address) as client:
            client.call("PING")
            barrier.wait(scaled(ROUND_BOUND_S))
            for batch in plan:
                before = time.monotonic_ns()
                commands = [[name, key, *args] for key, name, args in batch]
                try:
                    results = client.pipeline(commands)
                except (Closed, Timeout, Malformed, OSError):
                    results = None
                after = time.monotonic_ns()
                for place, (key, name, args) in enumerate(batch):
                    if results is None:
                        op = (number, before, FOREVER, name, args, None)
                    else:
                        result = results[place]
                        if isinstance(result, Error):
                            raise AssertionError("%s %s: %r" % (name, key, result))
                        op = (number, before, after, name, args, result)
                    history.append((key, op))
                if results is None:
                    break
        pipe.send((history, None))
    except BaseException:
        pipe.send((history, traceback.format_exc()))
    finally:
        pipe.close()


def record(address, plans):
    """Run the plans at once; gives [(key, Op)].  An operation without a reply is UNKNOWN."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(len(plans))
    workers = []
    for number, plan in enumerate(plans):
        here, there = context.Pipe(duplex=False)
        worker = context.Process(target=_run, args=(address, plan, number, barrier, there))
        worker.start()
        there.close()
        workers.append((worker, here))
    history, trouble, late = [], [], False
    for worker, pipe in workers:
        if not pipe.poll(scaled(ROUND_BOUND_S)):
            worker.kill()
            late = True
        else:
            part, error = pipe.recv()
            history += part
            trouble += [error] if error else []
        worker.join()
    assert not trouble, "\n".join(trouble)
    if late:
        raise BoundPassed("a client did not come back")
    return [(key, Op(c, call, ret, name, args, UNKNOWN if ret == FOREVER else result))
            for key, (c, call, ret, name, args, result) in history]


def register_plans(seed, clients=8, ops=250, keys=3, batch=1):
    """Mixed reads and writes of unique values, so that each read names its write."""
    plans = []
    for number in range(clients):
        random, serial, plan = generator(seed, "register", number), 0, []
        while serial < ops:
            step = []
            for _ in range(batch):
                serial += 1
                key = "r%d" % random.randrange(keys)
                name = random.choice(["GET"] * 5 + ["SET"] * 4
                                     + ["GETSET", "GETDEL", "SETNX", "DEL"])
                value = b"%d-%d" % (number, serial)
                step.append((key, name, [value] if name in ("SET", "GETSET", "SETNX") else []))
            plan.append(step)
        plans.append(plan)
    return plans


def counter_plans(seed, clients=8, ops=250, keys=2, batch=1, only_increments=False):
    plans = []
    for number in range(clients):
        random, plan = generator(seed, "counter", number), []
        for _ in range(ops // batch):
            step = []
            for _ in range(batch):
                key = "c%d" % random.randrange(keys)
                name = random.choice(["INCR"] * 4 + ["GET"] * 2 + ["DECRBY"] * 2 + ["GETDEL"])
                if only_increments:
                    name = random.choice(["INCR", "INCR", "INCR", "GET"])
                step.append((key, name, [random.randint(1, 5)] if name == "DECRBY" else []))
            plan.append(step)
        plans.append(plan)
    return plans
