"""The power goes: servers are started on what a disk may then hold (lib/disk.py says what that is).
appendfsync always loses nothing that was answered, everysec at most two seconds, and there is never a
set of files that cannot be read; nor is there after a kill -9 and a start before it, or while the log
is rewritten or switched on, RDB files, the configuration or the users are written."""

import os

import pytest

from lib.disk import Disk, File
from lib.power import Round, kills
from lib.resp import encode
from lib.rounds import rounds
from lib.seeds import generator, seeds
from lib.server import is_redis, server_path

pytestmark = [
    pytest.mark.any_threads,
    pytest.mark.skipif(is_redis(server_path()), reason="looks at our files"),
]

ROUNDS = rounds(1, 40)


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
    one_round(recorder, threads, "always", seed, 16, lambda r, rng: kills(r, rng, 3))


def death_at(recorder, threads, seed, choose, states):
    """A server dies behind the naming of a file that choose(its naming moments) picks, before it could
    sync that; the next one starts on what the kernel has and acknowledges more; the power goes."""
    r = Round(recorder, threads, "always")
    try:
        r.start()
        r.run(0.05)
        r.rewrite()
        r.kill()
        position, kind, path = choose(r.naming_moments())
        r.rewind(position)
        r.start_again()
        r.run(0.1)
        r.kill()
        print("death behind", kind, path)
        r.check_states(generator(seed, "states"), states, since=position)
    finally:
        r.end()


@pytest.mark.rounds
@pytest.mark.parametrize("seed", seeds(ROUNDS))
def test_death_before_a_sync_of_names(recorder, threads, seed):
    death_at(recorder, threads, seed, generator(seed, "moment").choice, 8)


@pytest.mark.parametrize("which", [0, 1, 2, 3])
def test_death_behind_the_name_of_a_manifest(recorder, threads, which):
    """That of a new log, of a rewrite's beginning, of its end, and without history."""
    def manifest(moments):
        return [m for m in moments if m[1] == "R" and m[2].endswith(".manifest")][which]

    death_at(recorder, threads, which, manifest, 12)


OLD_LOG = [["SELECT", "0"], ["INCR", "c0"], ["SET", "p0", "1:" + "x" * 37], ["SELECT", "1"],
           ["RPUSH", "l0", "1"]]


@pytest.mark.parametrize("dies", [False, True])
def test_an_old_log_moves(recorder, threads, dies):
    """A single AOF becomes the base of one with several files; with death at each step of it."""
    log = b"".join(encode(*command) for command in OLD_LOG)
    r = Round(recorder, threads, "always", log=log)
    try:
        r.start_alone()
        r.kill()
        rng = generator(1, "states")
        moments = r.naming_moments() if dies else [(0, "", "")]
        for position, kind, path in reversed(moments):
            if dies:
                print("death behind", kind, path)
                r.rewind(position)
                r.start_again()
                r.run(0.05)
                r.kill()
            r.check_states(rng, 4 if dies else 24, since=position)
    finally:
        r.end()


@pytest.mark.rounds
@pytest.mark.parametrize("seed", seeds(ROUNDS))
def test_on_the_moment_it_is_on(recorder, threads, seed):
    """When the log says that it is on again, it holds what was answered before it was."""
    r = Round(recorder, threads, "always")
    try:
        r.start()
        r.run(0.05)
        r.switch_off_and_on()
        r.kill()
        r.check_states(generator(seed, "states"), 12, ["none", "torn"], r.unlogged[0][1])
    finally:
        r.end()


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


def test_model_a_second_name():
    disk = applied({"f": b"1", "d": None}, event("L", payload=b"f\0d/f"))
    assert states(disk, "none", "all") == [{"f": b"1", "d": None}]
    assert states(disk, "all", "all") == [{"f": b"1", "d": None, "d/f": b"1"}]


def test_model_a_kill_between_a_rename_and_its_record(recorder, tmp_path):
    """The file is the one that was synced under its old name."""
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / "g").write_bytes(b"new")
    log = recorder.log(str(tmp_path))
    os.rename(tmp_path / "g", tmp_path / "f")
    log.resume()
    disk = applied(log.initial, *log.events())
    assert states(disk, "all", "none") == [{"f": b"new"}]
    assert {"f": b"old", "g": b"new"} in states(disk, "none", "none")


@pytest.mark.parametrize("now", [b"durable, and more", b"durab", b"durxyz and more", b"durxy"])
def test_model_a_kill_between_a_write_and_its_record(recorder, tmp_path, now):
    """What was durable before and still stands there is durable."""
    (tmp_path / "f").write_bytes(b"durable")
    log = recorder.log(str(tmp_path))
    (tmp_path / "f").write_bytes(now)
    log.resume()
    disk = applied(log.initial, *log.events())
    assert disk.files() == {"f": now}
    assert states(disk, "none", "none") == [{"f": b"durable"}]
    for state in states(disk, "none", "torn") + states(disk, "none", "zeros"):
        assert state["f"][:3] == b"dur"


def test_model_a_file_that_is_cut():
    file = File(b"abc")
    file.pending = [(1, 2, None), (2, 2, b"x")]
    assert [file.content(n) for n in range(3)] == [b"abc", b"ab", b"abx"]
    file.sync(1)
    assert bytes(file.durable) == b"ab" and file.content() == b"abx"
