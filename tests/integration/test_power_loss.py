"""The power goes: servers are started on what a disk may then hold (lib/disk.py says what that is).
appendfsync always loses nothing that was answered, everysec at most two seconds, and there is never a
set of files that cannot be read; nor is there after a kill -9 and a start before it, or while the log
is rewritten or switched on, RDB files, the configuration or the users are written."""

import os

import pytest

from lib.disk import Disk, File, Recorder
from lib.power import Round
from lib.rounds import rounds
from lib.seeds import generator, seeds
from lib.server import is_redis, server_path

pytestmark = [
    pytest.mark.any_threads,
    pytest.mark.skipif(is_redis(server_path()), reason="looks at our files"),
]

ROUNDS = rounds(1, 40)


@pytest.fixture
def recorder():
    layer = Recorder()
    yield layer
    layer.end()


def administration(r, rng):
    """Everything that writes files, beside the load, in some order."""
    steps = [r.rewrite, lambda: r.save("SAVE"), lambda: r.save("BGSAVE"), r.rewrite_config,
             r.save_users, r.rewrite_config, r.save_users, r.rewrite, r.switch_off_and_on]
    rng.shuffle(steps)
    for step in steps:
        r.run(0.02)
        step()


def one_round(recorder, threads, policy, seed, states, work, options=None, pause_s=0.001):
    r = Round(recorder, threads, policy, options, pause_s=pause_s)
    try:
        r.start()
        work(r, generator(seed, "work", policy))
        r.kill()
        r.check_states(generator(seed, "states", policy), states)
    finally:
        r.end()


@pytest.mark.rounds
@pytest.mark.parametrize("seed", seeds(ROUNDS))
@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_always(recorder, threads, seed, preamble):
    one_round(recorder, threads, "always", seed, 24, administration,
              {"aof-use-rdb-preamble": preamble})


@pytest.mark.rounds
@pytest.mark.parametrize("seed", seeds(ROUNDS))
def test_everysec(recorder, threads, seed):
    def work(r, rng):
        r.run(2.5)
        administration(r, rng)
        r.run(0.5)

    one_round(recorder, threads, "everysec", seed, 24, work, pause_s=0.01)


@pytest.mark.rounds
@pytest.mark.parametrize("seed", seeds(ROUNDS))
def test_after_a_kill(recorder, threads, seed):
    """kill -9, a start on what the kernel has, more writes, and only then the power goes."""
    def work(r, rng):
        for _ in range(3):
            r.run(0.1)
            if rng.random() < 0.5:
                r._call("BGREWRITEAOF")
                r.run(rng.random() * 0.05)
            r.kill()
            r.start_again()
        r.run(0.1)

    one_round(recorder, threads, "always", seed, 16, work)


# ---- the model itself: it knows what it has to

def event(kind, fd=3, flags=0, offset=0, payload=b"", pid=1):
    return (0, kind, pid, fd, flags, offset, 0, payload)


def applied(initial, *events):
    disk = Disk(initial)
    for e in events:
        disk.apply(e)
    return disk


def states(disk, names, content, tries=200):
    found = []
    for n in range(tries):
        state = disk.state(generator(n), names, content)
        if state not in found:
            found.append(state)
    return found


WRITTEN = [event("O", flags=os.O_CREAT, payload=b"f"), event("W", payload=b"a" * 512 + b"b" * 512)]


def test_model_names_and_content_are_apart():
    disk = applied({}, *WRITTEN)
    assert states(disk, "none", "all") == [{}]
    assert states(disk, "all", "none") == [{"f": b""}]
    torn = states(disk, "all", "torn")
    assert {"f": b""} in torn and {"f": b"a" * 512} in torn and len(torn) == 3
    assert {"f": b"a" * 512 + bytes(512)} in states(disk, "all", "zeros")


def test_model_a_sync_keeps_what_was_before_it():
    disk = applied({}, *WRITTEN, event("S"), event("W", offset=1024, payload=b"c"), event("E"))
    synced = b"a" * 512 + b"b" * 512
    assert {s["f"] for s in states(disk, "all", "torn")} == {synced, synced + b"c"}
    assert states(disk, "none", "all") == [{}]  # its name is another matter
    for e in (event("O", fd=4), event("S", fd=4), event("E", fd=4)):
        disk.apply(e)
    assert [len(s["f"]) for s in states(disk, "none", "none")] == [1024]


def test_model_renames():
    disk = applied({"f": b"old", "g": b"new"}, event("R", payload=b"g\0f"))
    assert sorted(map(sorted, states(disk, "some", "all"))) == [["f"], ["f", "g"]]
    disk = applied({"f": b"1", "d": None}, event("R", payload=b"f\0d/f"))
    assert len(states(disk, "some", "all")) == 4  # in one, the other, both, none of the directories


def test_model_a_file_that_is_cut():
    file = File(b"abc")
    file.pending = [(1, 2, None), (2, 2, b"x")]
    assert [file.content(n) for n in range(3)] == [b"abc", b"ab", b"abx"]
    file.sync(1)
    assert bytes(file.durable) == b"ab" and file.content() == b"abx"
