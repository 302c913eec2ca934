"""Celery with a real worker: 1,000 jobs of which every tenth is retried, and a chord."""

import subprocess
import sys

import redis
from celery import chord, group

from celery_app import app, square, total
from common import FAILING, JOBS, URL, run

TIMEOUT_SECONDS = 150


def thousand_jobs():
    result = group(square.s(n) for n in range(JOBS)).apply_async()
    assert result.get(timeout=TIMEOUT_SECONDS) == [n * n for n in range(JOBS)]
    tries = redis.Redis.from_url(URL + "2", decode_responses=True)
    counts = [int(tries.get("tries:%d" % n)) for n in range(JOBS)]
    assert sum(counts) == JOBS + FAILING, sum(counts)


def chord_of_jobs():
    numbers = range(1, 100)
    redis.Redis.from_url(URL + "2").flushdb()
    result = chord((square.s(n) for n in numbers), total.s())()
    assert result.get(timeout=TIMEOUT_SECONDS) == sum(n * n for n in numbers)


def remote_control():
    replies = app.control.ping(timeout=5)
    assert len(replies) == 1 and list(replies[0].values()) == [{"ok": "pong"}], replies


worker = subprocess.Popen([sys.executable, "-m", "celery", "-A", "celery_app", "worker", "-c", "2",
                           "--loglevel=WARNING"])
try:
    run([thousand_jobs, chord_of_jobs, remote_control])
finally:
    worker.terminate()
    worker.wait(60)
