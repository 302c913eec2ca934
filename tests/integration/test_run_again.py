"""tests/run_pytest.py: a test that was only late is run again, alone and twice, and does not decide; whatever else
fails decides, and so do three late ones. And tests/guard.py: nothing is left of a run."""

import os
import signal
import subprocess
import sys

import pytest

from lib.bounds import eventually
from lib.server import REPOSITORY

TESTS = os.path.join(REPOSITORY, "tests")
LATE = "raise BoundPassed('too late')"


def run(folder, tests, **environment):
    """Status and output of a run of tests, each (name, what it does in its n-th run)."""
    lines = ["import os, time, pytest", "from lib.bounds import BoundPassed, eventually", "",
             "def turn(name):",
             "    with open(os.path.join(os.path.dirname(__file__), name), 'a+') as file:",
             "        file.write('x')",
             "        return file.tell()", ""]
    for name, steps in tests:
        lines += ["def test_%s():" % name, "    n = turn('%s')" % name]
        for number, step in enumerate(steps):
            lines += ["    if n == %d:" % (number + 1), "        " + step]
    (folder / "test_them.py").write_text("\n".join(lines) + "\n")
    (folder / "conftest.py").write_text("pytest_plugins = ['lib.outcome']\ndef pytest_addoption(parser):\n    pass\n")
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = %s\n" % TESTS)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "KEYDB_TEST"))}
    env.update(KEYDB_SERVER="/bin/true", KEYDB_TEST_FOLDERS=str(folder), PYTEST_JOBS="2", **environment)
    done = subprocess.run([sys.executable, os.path.join(TESTS, "run_pytest.py"), "-q"], env=env, text=True,
                          capture_output=True)
    return done.returncode, done.stdout + done.stderr


def times(folder, name):
    return len((folder / name).read_text())


def test_late_once_is_shaky(tmp_path):
    shaky = tmp_path / "shaky"
    status, said = run(tmp_path, [("slow", [LATE]), ("good", [])], KEYDB_TEST_SHAKY=str(shaky))
    assert status == 0 and "shaky" in said and "too late" in said.rpartition("shaky:")[2], said
    assert times(tmp_path, "slow") == 3 and times(tmp_path, "good") == 1
    assert shaky.read_text().count("test_slow") == 1


@pytest.mark.parametrize("late", ["raise TimeoutError", "raise __import__('subprocess').TimeoutExpired('x', 1)",
                                  "eventually(lambda: False, 'never', 0.01)"])
def test_every_kind_of_bound(tmp_path, late):
    status, said = run(tmp_path, [("slow", [late])])
    assert status == 0 and times(tmp_path, "slow") == 3, said


@pytest.mark.parametrize("number", [2, 3])
def test_late_again_fails(tmp_path, number):
    status, said = run(tmp_path, [("slow", [LATE] + ["pass"] * (number - 2) + [LATE])])
    assert status == 1 and times(tmp_path, "slow") == number, said


@pytest.mark.parametrize("fault", ["assert 0", "pytest.fail('the server: died')", "raise ValueError", "os._exit(1)"])
def test_a_fault_is_never_run_again(tmp_path, fault):
    status, said = run(tmp_path, [("bad", [fault])])
    assert status == 1 and times(tmp_path, "bad") == 1, said


def test_a_fault_beside_a_late_one_decides(tmp_path):
    status, said = run(tmp_path, [("bad", ["assert 0"]), ("slow", [LATE])])
    assert status == 1 and times(tmp_path, "slow") == 1, said


def test_three_late_ones_fail(tmp_path):
    assert run(tmp_path, [(name, [LATE]) for name in ("a", "b", "c")])[0] == 1
    assert times(tmp_path, "a") == 1


def test_late_ones_of_all_rounds_count(tmp_path):
    shaky = tmp_path / "shaky"
    shaky.write_text("one\ntwo\n")
    assert run(tmp_path, [("slow", [LATE])], KEYDB_TEST_SHAKY=str(shaky))[0] == 1


@pytest.mark.parametrize("text", ["import nothing_like_it", "def test_x(:"])
def test_what_cannot_be_collected_fails(tmp_path, text):
    (tmp_path / "test_other.py").write_text(text + "\n")
    assert run(tmp_path, [("good", [])])[0] != 0


def test_no_pytest_fails(tmp_path):
    (tmp_path / "pytest.py").write_text("raise SystemExit(1)\n")
    assert run(tmp_path, [("good", [])], PYTHONPATH=str(tmp_path))[0] != 0


def sleeps(pid):
    """Whether it is there; another process may have its number by now."""
    try:
        with open("/proc/%s/cmdline" % pid, "rb") as file:
            return file.read() == b"sleep\x00600\x00"
    except OSError:
        return False


@pytest.mark.parametrize("end", ["exit", "term", "kill"])
def test_nothing_is_left_of_a_run(tmp_path, end):
    """A process in a session of its own and a folder with a file, however the run ends."""
    told = tmp_path / "told"
    script = "setsid sleep 600 & touch $TMPDIR/file; echo $! $TMPDIR > %s.new; mv %s.new %s; %s" % (
        told, told, told, "exit 3" if end == "exit" else "exec sleep 600")
    env = {name: value for name, value in os.environ.items() if name != "KEYDB_TESTS_DIR"}
    with subprocess.Popen([sys.executable, os.path.join(TESTS, "guard.py"), "sh", "-c", script], env=env) as guard:
        eventually(told.exists, "the script runs")
        left, folder = told.read_text().split()
        if end != "exit":
            guard.send_signal(signal.SIGTERM if end == "term" else signal.SIGKILL)
        status = guard.wait()
    assert status == {"exit": 3, "term": 128 + signal.SIGTERM, "kill": -signal.SIGKILL}[end]
    eventually(lambda: not os.path.exists(folder) and not sleeps(left), "it is clean")
