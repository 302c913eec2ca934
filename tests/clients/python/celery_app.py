"""Celery's application: what the worker imports and celery_jobs.py sends to."""

import redis
from celery import Celery

from common import URL

app = Celery("jobs", broker=URL + "0", backend=URL + "1")
app.conf.update(task_acks_late=True, worker_prefetch_multiplier=4, broker_connection_retry_on_startup=True,
                result_expires=600)
tries = redis.Redis.from_url(URL + "2")


@app.task(bind=True, max_retries=3)
def square(self, n):
    if tries.incr("tries:%d" % n) == 1 and n % 10 == 0:
        raise self.retry(countdown=0)
    return n * n


@app.task
def total(values):
    return sum(values)
