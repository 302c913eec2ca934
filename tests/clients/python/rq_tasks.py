"""The functions that RQ's workers import."""

import redis

from common import URL

counts = redis.Redis.from_url(URL + "2")


def square(n):
    if counts.incr("tries:%d" % n) == 1 and n % 10 == 0:
        raise RuntimeError("the first try of every tenth job fails")
    counts.incrby("sum", n * n)
    return n * n
