"""Running keydb-cli and Debian's redis-cli 7.0.15 in tests: on pipes, on a pseudo-terminal, and against a
server that answers what the test chose."""

import os
import pty
import re
import select
import signal
import socket
import subprocess
import termios
import threading
import time

from lib.bounds import BoundPassed

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def find_cli():
    """KEYDB_CLI, or the one beside the server under test, or the one that make leaves in src/."""
    beside = os.path.join(os.path.dirname(os.environ.get("KEYDB_SERVER", "")), "keydb-cli")
    built = os.path.join(ROOT, "src", "keydb-cli")
    path = os.environ.get("KEYDB_CLI") or (beside if os.path.isabs(beside) else built)
    return path if os.access(path, os.X_OK) else built


CLI = find_cli()
THEIRS = "/usr/bin/redis-cli"

# Nothing here takes long; a program that hangs is a failure, not a hanging test run.
PATIENCE_S = 60


class Outcome:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def __eq__(self, other):
        return (self.status, self.out, self.err) == (other.status, other.out, other.err)

    def __repr__(self):
        return "status %d\n  out %r\n  err %r" % (self.status, self.out, self.err)


def run(program, args, stdin=b"", env=None):
    full_env = {k: v for k, v in os.environ.items() if not k.startswith("REDISCLI_")}
    full_env.update({"HOME": "/nonexistent", "TERM": "xterm"})
    full_env.update(env or {})
    args = [a if isinstance(a, bytes) else str(a) for a in args]
    done = subprocess.run(
        [program] + args, input=stdin, capture_output=True, timeout=PATIENCE_S, env=full_env
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def cli(*args, stdin=b"", env=None):
    return run(CLI, args, stdin, env)


def same(*args, stdin=b"", env=None):
    """Runs both clients and compares everything; returns the outcome."""
    theirs = run(THEIRS, args, stdin, env)
    ours = run(CLI, args, stdin, env)
    theirs.out = theirs.out.replace(b"redis-cli", b"keydb-cli")
    theirs.err = theirs.err.replace(b"redis-cli", b"keydb-cli")
    assert ours == theirs, "\nours   %r\ntheirs %r" % (ours, theirs)
    return ours


class Listener:
    """A port whose connections are served by `_serve`, each in a thread, until `stop`."""

    def __init__(self):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(8)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve_and_close, args=(connection,), daemon=True).start()

    def _serve_and_close(self, connection):
        try:
            with connection:
                self._serve(connection)
        except OSError:
            pass

    def stop(self):
        self.listener.close()


class Canned(Listener):
    """Answers HELLO as a RESP3 server, COMMAND with nothing, and all else with `answer`."""

    def __init__(self, answer, close=False):
        self.answer, self.close = answer, close
        self.commands = []
        super().__init__()

    def _serve(self, connection):
        pending = b""
        while data := connection.recv(65536):
            pending += data
            while True:
                arguments, pending = self._cut(pending)
                if arguments is None:
                    break
                self.commands.append(arguments)
                if not self._reply(connection, arguments[0].lower()):
                    return

    def _reply(self, connection, name):
        """Whether the connection stays."""
        if name == b"hello":
            connection.sendall(b"%1\r\n+proto\r\n:3\r\n")
        elif name == b"command":
            connection.sendall(b"*0\r\n")
        else:
            connection.sendall(self.answer)
            return not self.close
        return True

    @staticmethod
    def _cut(data):
        """Takes one command off the front of `data`."""
        head = re.match(rb"\*(\d+)\r\n", data)
        if not head:
            return None, data
        at, arguments = head.end(), []
        for _ in range(int(head.group(1))):
            size = re.match(rb"\$(\d+)\r\n", data[at:])
            if not size:
                return None, data
            start = at + size.end()
            at = start + int(size.group(1)) + 2
            if at > len(data):
                return None, data
            arguments.append(data[start : at - 2])
        return arguments, data[at:]


class Prompt:
    """keydb-cli (or another) on a pseudo-terminal. What it draws is taken apart only as far as needed: what is
    on the screen after the last carriage return."""

    def __init__(self, *args, env=None, home="/nonexistent", columns=80, program=CLI):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            termios.tcsetwinsize(0, (24, columns))  # redis-cli would ask the terminal where its cursor is
            full = {k: v for k, v in os.environ.items() if not k.startswith("REDISCLI_")}
            full.update({"HOME": str(home), "TERM": "xterm", "COLUMNS": str(columns)})
            full.update(env or {})
            os.execvpe(program, [program] + [str(a) for a in args], full)
        self.seen = b""

    def expect(self, wanted):
        """Reads until `wanted` (a regular expression) appears; returns what came before it and
        with it."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            found = re.search(wanted, self.seen, re.DOTALL)
            if found:
                data, self.seen = self.seen[: found.end()], self.seen[found.end() :]
                return data
            ready = select.select([self.fd], [], [], max(0, deadline - time.monotonic()))[0]
            if not ready:
                raise BoundPassed("waited for %r, got %r" % (wanted, self.seen))
            try:
                piece = os.read(self.fd, 65536)
            except OSError:
                piece = b""
            assert piece, "ended; waited for %r, got %r" % (wanted, self.seen)
            self.seen += piece

    def type(self, keys):
        os.write(self.fd, keys)

    def say(self, line, wanted):
        self.type(line + b"\r")
        return self.expect(wanted)

    def take(self):
        """Reads a piece, if one comes soon. False at the end: a terminal that nobody has open any more, read empty."""
        try:
            if not select.select([self.fd], [], [], 0.05)[0]:
                return True
            piece = os.read(self.fd, 65536)
        except OSError:
            return False
        self.seen += piece
        return bool(piece)

    def status(self):
        """Waits for the end, with all that it has printed in `seen`; the wait status."""
        deadline = time.monotonic() + PATIENCE_S
        is_open = True
        while time.monotonic() < deadline:
            is_open = is_open and self.take()
            if is_open:
                continue
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return status
            time.sleep(0.01)
        raise BoundPassed("does not end: %r" % self.seen)

    def end(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
