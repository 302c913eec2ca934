"""Clients as processes that work at the same time, each with a connection of its own."""

import multiprocessing
import traceback

from lib.bounds import BoundPassed, scaled
from lib.resp import Connection

BOUND_S = 60.0


def _work(address, work, number, barrier, pipe):
    try:
        with Connection(address, timeout_s=BOUND_S) as client:
            client.call("PING")
            barrier.wait(scaled(BOUND_S))
            pipe.send((work(client, number), None))
    except BaseException:
        pipe.send((None, traceback.format_exc()))
    finally:
        pipe.close()


def run_workers(address, work, count):
    """work(client, number) in `count` processes that begin together; their results, in order."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(count)
    workers = []
    for number in range(count):
        here, there = context.Pipe(duplex=False)
        worker = context.Process(target=_work, args=(address, work, number, barrier, there))
        worker.start()
        there.close()
        workers.append((worker, here))
    results, trouble, late = [], [], False
    for worker, pipe in workers:
        if not pipe.poll(scaled(BOUND_S)):
            worker.kill()
            late = True
        else:
            result, error = pipe.recv()
            results.append(result)
            trouble += [error] if error else []
        worker.join()
    assert not trouble, "\n".join(trouble)
    if late:
        raise BoundPassed("a client did not come back")
    return results
