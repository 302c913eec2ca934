"""The power goes at one node of a pair while both write, and while data sets are merged: started on what its disk may then
hold (lib/disk.py) it has what it had acknowledged, a peer's transactions whole, and gets back from the peer what is missing:
nothing is lost, and nothing is done twice, whatever the disk says of positions and dots."""

import threading
import time

import pytest

from lib.active import OPTIONS, call, digest, is_up
from lib.bounds import BoundPassed, eventually
from lib.power import Round, kills
from lib.replication import replication
from lib.rounds import rounds
from lib.seeds import generator, seeds
from lib.server import Server, is_redis, server_path

pytestmark = [
    pytest.mark.any_threads,
    pytest.mark.skipif(is_redis(server_path()), reason="looks at our files"),
]

ROUNDS = rounds(1, 20)


class PeerWriter:
    """Counts on the peer, each number in a transaction."""

    def __init__(self, peer, pause_s):
        self.peer, self.pause_s, self.last, self.trouble = peer, pause_s, 0, None
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        try:
            with self.peer.connect() as c:
                while not self.ended.is_set():
                    replies = c.pipeline([["MULTI"], ["INCR", "peer"], ["SELECT", "1"], ["RPUSH", "peer:list", self.last + 1],
                                          ["SELECT", "0"], ["EXEC"]])
                    self.last += 1
                    assert replies[-1][0] == self.last, replies
                    time.sleep(self.pause_s)
        except Exception as trouble:  # told by end()
            self.trouble = trouble

    def end(self):
        self.ended.set()
        self.thread.join()
        if self.trouble:
            raise self.trouble


class ActiveRound(Round):
    """A node that is recorded, and its peer, whose power stays; both have clients. `apart`: they meet only when the test
    says so."""

    def __init__(self, recorder, threads, policy, options=None, apart=False, pause_s=0.001):
        active = {**OPTIONS, "repl-backlog-size": "64kb" if apart else "64mb"}
        super().__init__(recorder, threads, policy, {**active, **(options or {})}, clients=2, pause_s=pause_s)
        self.peer = Server(threads=threads, options=active)
        self.peer.expected_files.add("active-node")
        self.apart, self.writer, self.after = apart, None, 0

    # -- while it runs

    def start(self):
        self.peer.start()
        super().start()
        if not self.apart:
            self.meet()

    def meet(self):
        self.link(self.server)
        self.writer = self.writer or PeerWriter(self.peer, self.pause_s)

    def start_again(self):
        """What was told to the peer and not answered comes back before clients go on counting."""
        self.server.start()
        self.link(self.server)
        eventually(lambda: self._counts(self.server) == self._counts(self.peer), "what came back", 30)
        self._begin_clients()

    def _counts(self, node):
        return call(node, "MGET", *["c%d" % n for n in range(self.client_count)])

    def kill(self):
        self.unlink(self.server)
        super().kill()

    def link(self, server):
        """Both pull from one another."""
        for one, other in ((self.peer, server), (server, self.peer)):
            call(one, "REPLICAOF", "127.0.0.1", other.address()[1])
        eventually(lambda: is_up(self.peer, 1) and is_up(server, 1), "links", 30)

    def unlink(self, server):
        call(self.peer, "REPLICAOF", "REMOVE", "127.0.0.1", server.address()[1])

    # -- looking

    def check_states(self, rng, count, kinds=None, since=0):
        if self.writer:
            self.writer.end()
        return super().check_states(rng, count, kinds, since)

    def _check_log(self, server, position, required, what, again):
        self._start(server, what)
        with server.connect() as c:
            self._check_numbers(c, required, what)
            self._check_peers(c, what)
        self._check_together(server, what)

    def _check_rdb(self, server, state, saved, what):
        super()._check_rdb(server, state, saved, what)
        self._start(server, what + ", from its RDB file")
        self._check_together(server, what + ", from its RDB file")

    def _check_peers(self, c, what):
        """A write of the peer is there whole, and with all before it."""
        number = int(c.call("GET", "peer") or 0)
        c.ok("SELECT", "1")
        elements = c.call("LRANGE", "peer:list", "0", "-1")
        c.ok("SELECT", "0")
        assert elements == [b"%d" % (i + 1) for i in range(number)], what

    def _check_together(self, server, what):
        """They come to agree, with what the peer has; a write on each counts once."""
        try:
            self.link(server)
            self._agree(server, what)
            for node in (server, self.peer):
                self.after += 1
                assert call(node, "INCR", "after") == self.after, what
                self._agree(server, what)
            assert int(call(self.peer, "GET", "peer") or 0) == (self.writer.last if self.writer else 0), what
        finally:
            self.unlink(server)
            server.kill()
            server.process = None

    def _agree(self, server, what):
        try:
            eventually(lambda: digest(server) == digest(self.peer), "equal content", 30, 0.05)
        except BoundPassed as trouble:
            raise AssertionError("%s: %s\n%s\n%s" % (what, trouble, replication(server), server.output()[-3000:])) from None

    def end(self):
        if self.writer:
            self.writer.ended.set()
            self.writer.thread.join()
        super().end()
        self.peer.kill_all()
        self.peer.remove()


def one_round(recorder, threads, policy, seed, states, work, options=None, **more):
    r = ActiveRound(recorder, threads, policy, options, **more)
    try:
        r.start()
        begun = r.log.position() if not r.apart else 0
        work(r, generator(seed, "work", policy))
        r.kill()
        r.check_states(generator(seed, "states", policy), states, since=begun)
    finally:
        r.end()


def files_are_written(r, rng):
    """Rewrites and RDB files beside the load."""
    steps = [r.rewrite, lambda: r.save("SAVE"), lambda: r.save("BGSAVE"), r.rewrite]
    rng.shuffle(steps)
    for step in steps:
        r.run(0.05)
        step()
    r.run(0.05)


@pytest.mark.rounds
@pytest.mark.parametrize("seed", seeds(ROUNDS))
@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_always(recorder, threads, seed, preamble):
    one_round(recorder, threads, "always", seed, 8, files_are_written, {"aof-use-rdb-preamble": preamble})


@pytest.mark.rounds
@pytest.mark.parametrize("seed", seeds(ROUNDS))
def test_everysec(recorder, threads, seed):
    """The peer has heard of writes that the disk has not: they come back."""
    def work(r, rng):
        r.run(1.2)
        files_are_written(r, rng)

    one_round(recorder, threads, "everysec", seed, 6, work, pause_s=0.01)


@pytest.mark.rounds
@pytest.mark.parametrize("seed", seeds(ROUNDS))
def test_after_a_kill(recorder, threads, seed):
    """Several epochs, whose beginnings the disk may know or not."""
    one_round(recorder, threads, "always", seed, 8, lambda r, rng: kills(r, rng, 2))


@pytest.mark.rounds
@pytest.mark.parametrize("seed", seeds(ROUNDS))
def test_while_data_sets_are_merged(recorder, threads, seed):
    """Two that never met, both filled: the log says how far the file aside is merged."""
    def work(r, rng):
        with r.peer.connect() as c, r.server.connect() as d:
            c.pipeline([["SET", "filled:%d" % n, "x" * rng.randrange(100)] for n in range(2000)])
            for n in range(300):
                d.pipeline([["SET", "filled:%d" % (n * 7), "y" * rng.randrange(100)], ["HSET", "own:%d" % n, "f", n]])
        r.merged_from = r.log.position()
        r.meet()
        r.run(0.3)

    r = ActiveRound(recorder, threads, "always", apart=True)
    try:
        r.start()
        work(r, generator(seed, "work"))
        r.kill()
        r.check_states(generator(seed, "states"), 8, since=r.merged_from)
    finally:
        r.end()
