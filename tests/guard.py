"""Runs a command with a temporary folder of its own (TMPDIR). However it ends - by itself, by a signal, by the end
of who called - the processes it left are ended, what it mounted is unmounted, and the folder is removed.

    tests/guard.py COMMAND...

A process of its own does that, in a session of its own, as soon as this one is gone. Standard library only.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MARK = "KEYDB_TESTS_DIR"
PR_SET_PDEATHSIG = 1
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def members(folder):
    """Processes of the run, in whatever session: by their environment or where they work."""
    mark = ("%s=%s" % (MARK, folder)).encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % name, "rb") as file:
                ours = mark in file.read().split(b"\0")
            if ours or (os.readlink("/proc/%s/cwd" % name) + "/").startswith(folder + "/"):
                yield int(name)
        except OSError:
            pass  # it has ended, or is not ours to look at


def end_members(folder):
    for _ in range(100):
        left = list(members(folder))
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.05)


def clean_up(folder):
    end_members(folder)
    with open("/proc/mounts", encoding="utf-8", errors="surrogateescape") as file:
        places = [line.split()[1] for line in file]
    for place in reversed([p for p in places if p.startswith(folder + "/")]):
        subprocess.call(["umount", "-l", place])
    shutil.rmtree(folder, ignore_errors=True)


def start_watcher(folder):
    """(pid, descriptor): when the descriptor is closed, which the end of this process does, it cleans up."""
    there, here = os.pipe()  # neither is inherited by programs
    pid = os.fork()
    if pid:
        os.close(there)
        return pid, here
    os.close(here)
    os.setsid()
    os.chdir("/")
    os.read(there, 1)
    clean_up(folder)
    os._exit(0)


def main(command):
    if MARK in os.environ:  # guarded already
        os.execvp(command[0], command)
    folder = tempfile.mkdtemp(prefix="kt.")  # short: paths of Unix sockets lie in it
    watcher, lifeline = start_watcher(folder)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

    def end(number, _):
        raise SystemExit(128 + number)

    for number in ENDING:
        signal.signal(number, end)
    status = 1
    try:
        # make's job server is inherited; so is the process group, for Ctrl-C.
        status = subprocess.call(command, close_fds=False,
                                 env=dict(os.environ, TMPDIR=folder, **{MARK: folder}))
    except OSError as trouble:
        print("tests/guard.py: %s: %s" % (command[0], trouble), file=sys.stderr)
    finally:
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        os.close(lifeline)
        os.waitpid(watcher, 0)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
