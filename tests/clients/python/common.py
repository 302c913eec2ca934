"""What the Python programs share: where the server is, and how a job's outcome is told."""

import os
import sys
import traceback

HOST, PORT = os.environ["REDIS_HOST"], int(os.environ["REDIS_PORT"])
URL = "redis://%s:%d/" % (HOST, PORT)
JOBS = 1000
# Every tenth job fails the first time it is tried.
FAILING = JOBS // 10


def run(jobs):
    """Runs functions one after another and exits."""
    failed = 0
    for job in jobs:
        try:
            job()
            print("ok " + job.__name__, flush=True)
        except Exception as error:
            failed += 1
            print("failed %s: %r" % (job.__name__, error), flush=True)
            traceback.print_exc()
    sys.exit(1 if failed else 0)
