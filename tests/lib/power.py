"""Rounds of power loss: clients write numbered transactions, administration goes on beside them, the
files are recorded (lib/disk.py), and servers are started on what the disk may hold at chosen
moments. What was answered has to be there, as far as it was promised."""

import os
import re
import shutil
import threading
import time

from lib.bounds import eventually, scaled
from lib.disk import Disk, read_tree, write_tree
from lib.resp import Closed, Error, Timeout
from lib.server import Server, StartFailed

# A gap in the record is time in which nothing ran, on a machine that is slow or busy: only so much of
# it counts.
GAP_NS = 100 * 1000 * 1000
# How much of the last that was acknowledged everysec may lose: two seconds, and what the machine needs
# between a look at the clock and a reply.
EVERYSEC_NS = 2500 * 1000 * 1000
PADDING = 3000


class Restartable(Server):
    """A server with server.conf in its directory, which nobody writes but itself."""

    def arguments(self):
        argv = super().arguments()
        return argv[:1] + ["server.conf"] + argv[1:]


class Client:
    """Writes 1, 2, 3 ... to its keys, each number in a transaction."""

    def __init__(self, number, server, log, pause_s):
        self.number, self.server, self.log, self.pause_s = number, server, log, pause_s
        self.acknowledged = []  # (position, number), growing
        self.sent = 0
        self.failed = None
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _write(self, client, n):
        c = self.number
        padding = "%d:%s" % (n, "x" * (n * 37 % PADDING))
        replies = client.pipeline([["MULTI"], ["INCR", "c%d" % c], ["SELECT", "1"],
                                   ["RPUSH", "l%d" % c, str(n)], ["SELECT", "0"],
                                   ["SET", "p%d" % c, padding], ["EXEC"]])
        assert replies[-1][0] == n, replies

    def _run(self):
        try:
            with self.server.connect() as client:
                self.sent = int(client.call("GET", "c%d" % self.number) or 0)
                while not self.ended.is_set():
                    self.sent += 1
                    self._write(client, self.sent)
                    self.acknowledged.append((self.log.position(), self.sent))
                    time.sleep(self.pause_s)
        except (OSError, Closed, Timeout):
            pass
        except Exception as trouble:  # told by the thread that waits for this one
            self.failed = trouble

    def end(self):
        self.ended.set()
        self.thread.join()
        if self.failed:
            raise self.failed


class Round:
    """A server in a directory, clients of it, and what they were told."""

    def __init__(self, recorder, threads, policy, options=None, clients=4, pause_s=0.001, log=None):
        self.policy, self.threads, self.pause_s = policy, threads, pause_s
        self.options = {"save": None, "appendonly": "yes", "appendfsync": policy, **(options or {})}
        self.server = Restartable(threads=threads, options=self.options)
        with open(self.server.file("server.conf"), "w", encoding="utf-8") as file:
            file.write("aclfile users.acl\nsave 3600 1000000\n")
        with open(self.server.file("users.acl"), "w", encoding="utf-8"):
            pass
        self.first = {}  # {client: number} that is in the files before the first start
        if log is not None:
            self.first[0] = 1
            with open(self.server.file("appendonly.aof"), "wb") as file:
                file.write(log)
        self.log = recorder.log(self.server.directory)
        self.server.environment = self.log.environment()
        self.client_count = clients
        self.clients = []
        self.unlogged = []  # [from, to] positions between which the log was off
        self.markers = {"config": [], "acl": []}  # (sent at, acknowledged at, number)
        self.saves = []  # (acknowledged at, {client: number}) of RDB files
        self.states = 0

    # -- while it runs

    def start(self):
        self.server.start()
        self._begin_clients()

    def _begin_clients(self):
        self.clients += [Client(n, self.server, self.log, self.pause_s)
                         for n in range(self.client_count)]

    def run(self, seconds):
        time.sleep(seconds)

    def _call(self, *words):
        with self.server.connect() as c:
            return c.call(*words)

    def _idle(self):
        info = self.server.info("persistence")
        return info["aof_rewrite_in_progress"] == "0" and info["rdb_bgsave_in_progress"] == "0" \
            and info["aof_rewrite_scheduled"] == "0"

    def wait_idle(self):
        eventually(self._idle, "the children end", 30)

    def rewrite(self):
        self._call("BGREWRITEAOF")
        self.wait_idle()
        assert self.server.info()["aof_last_bgrewrite_status"] == "ok", self.server.output()

    def save(self, command):
        before = self.last_numbers()
        reply = self._call(command)
        assert not isinstance(reply, Error), reply
        self.wait_idle()
        assert self.server.info("persistence")["rdb_last_bgsave_status"] == "ok"
        self.saves.append((self.log.position(), before))

    def rewrite_config(self):
        number = 1000 + len(self.markers["config"])
        self._mark("config", number, [["CONFIG", "SET", "slowlog-max-len", str(number)],
                                      ["CONFIG", "REWRITE"]])

    def save_users(self):
        number = 1000 + len(self.markers["acl"])
        self._mark("acl", number, [["ACL", "SETUSER", "marker", "on", "resetkeys", "~m%d" % number],
                                   ["ACL", "SAVE"]])

    def _mark(self, kind, number, calls):
        sent = self.log.position()
        for call in calls:
            assert self._call(*call) == b"OK", call
        self.markers[kind].append((sent, self.log.position(), number))

    def switch_off_and_on(self):
        self.unlogged.append([self.log.position(), float("inf")])
        assert self._call("CONFIG", "SET", "appendonly", "no") == b"OK"
        self.run(0.05)
        assert self._call("CONFIG", "SET", "appendonly", "yes") == b"OK"
        self.wait_idle()
        self.unlogged[-1][1] = self.log.position()

    def last_numbers(self):
        numbers = {}
        for client in self.clients:
            if client.acknowledged:
                numbers[client.number] = client.acknowledged[-1][1]
        return numbers

    def kill(self):
        """kill -9; what the kernel has stays."""
        self.server.kill_all()
        for client in self.clients:
            client.end()
        self.log.resume()

    def start_alone(self):
        """Without clients."""
        self.server.start()

    def start_again(self):
        self.server.start()
        self._begin_clients()

    def naming_moments(self):
        """[(position behind it, kind, path)] of all that has changed names so far."""
        return [(event[0], event[1], event[7].decode().split("\0")[-1]) for event in self.log.events()
                if event[1] in "RLUM" or event[1] == "O" and event[4] & os.O_CREAT]

    def rewind(self, position):
        """After kill: as if the process had been killed at that position of the record. The kernel
        has all that was done by then, on the disk or not."""
        os.truncate(self.log.path, position)
        now = Disk(self.log.initial)
        for event in self.log.events():
            now.apply(event)
        for path in read_tree(self.server.directory):
            full = self.server.file(path)
            if os.path.isfile(full):
                os.unlink(full)
        write_tree(self.server.directory, {**dict.fromkeys(now.directories()), **now.files()})
        for client in self.clients:
            client.acknowledged = [a for a in client.acknowledged if a[0] <= position]
        self.saves = [save for save in self.saves if save[0] <= position]

    # -- what has to be there

    def examine(self):
        """Reads the record: self.moments are the positions between two events."""
        self.moments, self.own_ns, self.last, own, last = [], {0: 0}, {}, 0, None
        for position, kind, _, _, _, _, ns, _ in self.log.events():
            own += min(ns - last, GAP_NS) if last is not None and ns > last else 0
            last = ns
            self.moments.append((position, kind))
            self.own_ns[position] = own

    def choose(self, rng, count, since):
        """Moments: half of them behind what changes names and syncs."""
        rare = [p for p, kind in self.moments if kind in "RLUMOTE" and p >= since]
        chosen = rng.sample(rare, min(len(rare), count // 2))
        rest = [p for p, _ in self.moments if p >= since]
        return sorted(chosen + rng.sample(rest, min(len(rest), count - len(chosen))))

    def _own(self, position):
        """The time that the record shows up to there."""
        while position not in self.own_ns:
            position = self._before(position)
        return self.own_ns[position]

    def _before(self, position):
        lo, hi = 0, len(self.moments)
        while lo < hi:
            mid = (lo + hi) // 2
            if self.moments[mid][0] <= position:
                lo = mid + 1
            else:
                hi = mid
        return self.moments[lo - 1][0] if lo else 0

    def _promised(self, acknowledged, position):
        if acknowledged > position:
            return False
        for begin, end in self.unlogged:
            # While the log is off nothing need be recorded: what is answered then stands at `begin`.
            if begin <= acknowledged <= end and position < end:
                return False
        return self.policy == "always" or \
            self._own(self._last_acknowledged(position)) - self._own(acknowledged) >= EVERYSEC_NS

    def _last_acknowledged(self, position):
        """Replies stop when the disk does not keep up, so what may be lost is counted from there."""
        if position not in self.last:
            self.last[position] = max((at for client in self.clients
                                       for at, _ in client.acknowledged if at <= position), default=0)
        return self.last[position]

    def required(self, position):
        numbers = {**dict.fromkeys(range(self.client_count), 0), **self.first}
        for client in self.clients:
            for acknowledged, number in client.acknowledged:
                if self._promised(acknowledged, position):
                    numbers[client.number] = max(numbers[client.number], number)
        return numbers

    def most(self):
        numbers = {**dict.fromkeys(range(self.client_count), 0), **self.first}
        for client in self.clients:
            numbers[client.number] = max(numbers[client.number], client.sent)
        return numbers

    # -- looking

    def check_states(self, rng, count, kinds=None, since=0):
        """Starts servers on states at `count` moments, from the position `since` on; the last state's
        files."""
        self.examine()
        disk, events = Disk(self.log.initial), self.log.events()
        state = {}
        for position in self.choose(rng, count, since):
            for event in events:
                disk.apply(event)
                if event[0] >= position:
                    break
            names = rng.choice(["all", "first", "some", "none"])
            content = rng.choice(kinds or ["all", "none", "torn", "torn", "zeros"])
            state = disk.state(rng, names, content)
            what = "state %d, position %d of %d, names: %s, content: %s" % (
                self.states, position, self.moments[-1][0], names, content)
            self.check_state(rng, position, state, what)
            self.states += 1
        return state

    def check_state(self, rng, position, state, what):
        server = Restartable(threads=self.threads, options=dict(self.options))
        try:
            write_tree(server.directory, state)
            required = self.required(position)
            self._check_log(server, position, required, what, again=rng.random() < 0.25)
            saves = [numbers for at, numbers in self.saves if at <= position]
            if saves and rng.random() < 0.5:
                self._check_rdb(server, state, saves[-1], what)
        finally:
            if server.process is not None:
                server.kill()
            server.remove()

    def _start(self, server, what):
        try:
            server.start()
        except StartFailed as trouble:
            files = {path: None if c is None else len(c)
                     for path, c in read_tree(server.directory).items()}
            raise AssertionError("%s: %s\n%s" % (what, trouble, files)) from None

    def _check_log(self, server, position, required, what, again):
        self._start(server, what)
        with server.connect() as c:
            found = self._check_numbers(c, required, what)
            self._check_markers(c, position, what)
            if again:
                c.call("SET", "after", "1")
        if again:
            self._check_second_start(server, found, what)
        else:
            server.kill()
        server.process = None

    def _check_second_start(self, server, found, what):
        """What was torn is not in the way of what comes behind it."""
        server.stop()
        self._start(server, what + ", again")
        with server.connect() as c:
            assert self._check_numbers(c, found, what + ", again") == found
            assert c.call("GET", "after") == b"1", what
        server.kill()

    def _check_rdb(self, server, state, saved, what):
        shutil.rmtree(server.directory)
        os.mkdir(server.directory)
        write_tree(server.directory, state)
        server.options["appendonly"] = "no"
        self._start(server, what + ", its RDB file")
        with server.connect() as c:
            self._check_numbers(c, saved, what + ", its RDB file")
        server.kill()
        server.process = None

    def _check_numbers(self, c, required, what):
        found, most = {}, self.most()
        for n in range(self.client_count):
            number = found[n] = int(c.call("GET", "c%d" % n) or 0)
            assert required.get(n, 0) <= number <= most[n], \
                "%s: client %d: %d, of %d that are promised and %d sent" % (
                    what, n, number, required.get(n, 0), most[n])
            padding = c.call("GET", "p%d" % n) or b"0:"
            assert padding == b"%d:%s" % (number, b"x" * (number * 37 % PADDING)), what
            c.ok("SELECT", "1")
            elements = c.call("LRANGE", "l%d" % n, "0", "-1")
            c.ok("SELECT", "0")
            assert elements == [b"%d" % (i + 1) for i in range(number)], what
        return found

    def _check_markers(self, c, position, what):
        seen = {"config": int(c.call("CONFIG", "GET", "slowlog-max-len")[1])}
        users = b"\n".join(c.call("ACL", "LIST")).decode()
        found = re.search(r"user marker .*~m(\d+)", users)
        seen["acl"] = int(found.group(1)) if found else 0
        for kind, marks in self.markers.items():
            least = max([n for _, at, n in marks if at <= position], default=0)
            most = max([n for at, _, n in marks if at <= position], default=None)
            if most is not None and seen[kind] >= 1000:
                assert least <= seen[kind] <= most, "%s: %s" % (what, kind)
            else:
                assert least == 0, "%s: %s is lost" % (what, kind)

    def end(self):
        for client in self.clients:
            client.ended.set()
        if self.server.process is not None:
            self.server.kill_all()
        for client in self.clients:
            client.thread.join(scaled(30))
        self.server.remove()


def kills(r, rng, times):
    """kill -9, perhaps amid a rewrite, and a start on what the kernel has, with writes between."""
    for _ in range(times):
        r.run(0.1)
        if rng.random() < 0.5:
            r._call("BGREWRITEAOF")
            r.run(rng.random() * 0.05)
        r.kill()
        r.start_again()
    r.run(0.1)
