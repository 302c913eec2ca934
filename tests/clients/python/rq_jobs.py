"""RQ with two real workers: 1,000 jobs of which every tenth is retried."""

import subprocess
import sys

import redis
from rq import Queue, Retry

from common import FAILING, JOBS, URL, run
from rq_tasks import square


def thousand_jobs():
    connection = redis.Redis.from_url(URL)
    queue = Queue("jobs", connection=connection)
    with connection.pipeline() as pipe:
        queue.enqueue_many([Queue.prepare_data(square, (n,), retry=Retry(max=3), result_ttl=600)
                            for n in range(JOBS)], pipeline=pipe)
        pipe.execute()
    # SimpleWorker runs jobs in its own process: the others fork for each, which only takes time here.
    workers = [subprocess.Popen([sys.executable, "-m", "rq.cli", "worker", "--burst", "--quiet", "--url", URL,
                                 "--worker-class", "rq.worker.SimpleWorker", "--name", "w%d" % i, "jobs"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for i in range(2)]
    for worker in workers:
        assert worker.wait(150) == 0
    counts = redis.Redis.from_url(URL + "2")
    assert int(counts.get("sum")) == sum(n * n for n in range(JOBS)), counts.get("sum")
    assert sum(int(counts.get("tries:%d" % n)) for n in range(JOBS)) == JOBS + FAILING
    assert queue.count == 0 and queue.finished_job_registry.count == JOBS, queue.finished_job_registry.count
    assert queue.failed_job_registry.count == 0 and queue.started_job_registry.count == 0


def forking_worker():
    connection = redis.Redis.from_url(URL)
    queue = Queue("few", connection=connection)
    jobs = [queue.enqueue(square, JOBS + n) for n in range(1, 10)]
    worker = subprocess.Popen([sys.executable, "-m", "rq.cli", "worker", "--burst", "--quiet", "--url", URL,
                               "--with-scheduler", "few"])
    assert worker.wait(100) == 0
    for n, job in enumerate(jobs, 1):
        assert job.return_value(refresh=True) == (JOBS + n) ** 2


run([thousand_jobs, forking_worker])
