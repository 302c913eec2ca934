"""Runs the integration, differential and history tests with Debian's pytest; its summary stays the last thing on
the screen but for what follows. Arguments go to pytest.

A test that failed only because a bound passed (lib/bounds.py) is run again when all others are done, alone and
twice. One that passes both times is *shaky*: it is shown with its first failure, and does not decide; three of them
do (they are counted in KEYDB_TEST_SHAKY, a file that the rounds of one gate share). Whatever else fails is never run
again.

KEYDB_SERVER: the program under test. PYTEST_JOBS: how many tests run at a time. KEYDB_TEST_FOLDERS: other tests than
ours, for integration/test_run_again.py.
"""

import glob
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OURS = ["tests/integration", "tests/differential", "tests/histories"]
FOLDERS = os.environ.get("KEYDB_TEST_FOLDERS", "").split() or OURS
TOO_MANY_SHAKY = 3
TRIES = 2
TESTS_FAILED = 1  # pytest's exit status
SANITIZERS = {
    # A report must fail the test that caused it: the server ends with a status of its own.
    "ASAN_OPTIONS": "abort_on_error=0:exitcode=66:detect_leaks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=0:exitcode=66:second_deadlock_stack=1",
}


def prepare():
    server = os.path.abspath(os.environ.get("KEYDB_SERVER") or "src/keydb-server")
    if not os.access(server, os.X_OK):
        sys.exit("the program under test is not there: " + server)
    os.environ.update(KEYDB_SERVER=server, PYTHONPYCACHEPREFIX=os.path.join(ROOT, "build/pycache"))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # there it is in nobody's way
    for name, value in SANITIZERS.items():
        os.environ.setdefault(name, value)
    return server


def rewrite_asserts(cores):
    """Has pytest compile the tests once, into the cache that all of its processes share: each of those would do it for
    itself, at the same time, which takes a fresh clone a minute more."""
    files = sorted(path for folder in OURS for path in glob.glob(os.path.join(folder, "test_*.py")))
    stamp = os.path.join(os.environ["PYTHONPYCACHEPREFIX"], "rewritten")
    if FOLDERS != OURS or os.path.exists(stamp) and os.path.getmtime(stamp) > max(map(os.path.getmtime, files)):
        return
    collect = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only"]
    running = [subprocess.Popen(collect + files[first::cores], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for first in range(cores)]
    if not any([process.wait() for process in running]):  # what cannot be collected is told by the run itself
        os.makedirs(os.path.dirname(stamp), exist_ok=True)
        with open(stamp, "w", encoding="ascii"):
            pass


def pytest(arguments):
    """(exit status, what failed)"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "outcome")
        command = [sys.executable, "-m", "pytest", "-o", "cache_dir=%s/build/pytest-cache" % ROOT,
                   "--basetemp=" + os.path.join(folder, "p")]
        status = subprocess.call(command + arguments, env=dict(os.environ, KEYDB_TEST_OUTCOME=path))
        if not os.path.exists(path):
            return status or 2, {}
        with open(path, encoding="utf-8") as file:
            return status, json.load(file)


def shaky_before(path):
    if not path or not os.path.exists(path):
        return 0
    with open(path, encoding="utf-8") as file:
        return sum(1 for _ in file)


def show(title, tests, failed):
    print("\n%s" % title)
    for test in tests:
        print("  %s\n    %s" % (test, failed[test]["text"].strip().replace("\n", "\n    ")))


def run_again(failed, arguments):
    """The exit status of a round in which nothing but bounds passed, and what it says of it."""
    shared = os.environ.get("KEYDB_TEST_SHAKY")
    before = shaky_before(shared)
    if before + len(failed) >= TOO_MANY_SHAKY:
        print("\n%d tests were late in this run%s: too many to be chance"
              % (len(failed), " and %d before" % before if before else ""))
        return TESTS_FAILED
    for test in failed:
        for number in range(TRIES):
            print("\nagain, alone, %d of %d: %s" % (number + 1, TRIES, test), flush=True)
            status, _ = pytest(["-q", "-p", "no:xdist", *arguments, test])
            if status != 0:
                return TESTS_FAILED
    show("shaky: a bound passed, and twice alone it did not", failed, failed)
    if shared:
        with open(shared, "a", encoding="utf-8") as file:
            file.writelines("%s\n" % test for test in failed)
    return 0


def main(arguments):
    os.chdir(ROOT)
    server = prepare()
    # Most tests wait more than they compute: seven at a time on two cores; four with a sanitizer.
    cores = len(os.sched_getaffinity(0))
    sanitized = any(word in server for word in ("/asan", "/tsan", "/ubsan"))
    rewrite_asserts(cores)
    jobs = os.environ.get("PYTEST_JOBS") or str(2 * cores if sanitized else 3 * cores + 1)
    spread = ["-n", jobs, "--dist", "load", "--durations=25", "--durations-min=0.5"]
    status, failed = pytest(spread + arguments + FOLDERS)
    # Nothing failed, and yet the status says so: then it was pytest itself.
    if status != TESTS_FAILED or not failed or not all(about["late"] for about in failed.values()):
        return status
    # Options of ours only: what chose the tests has done so.
    return run_again(failed, [a for a in arguments if a in ("--slow", "--long", "--previews")])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
