"""repl-backlog-disk-reserve: a replica that was away for longer than memory keeps goes on where it was, ours and
Redis's; whatever becomes of the file costs a full transfer at most."""

import resource

import pytest

from lib.bounds import eventually
from lib.replication import Load, check_equal, replication
from lib.reserve import cut_off, damage, names_left, reserve_files
from lib.resp import Error
from lib.seeds import generator
from lib.server import is_redis, server_path

SHORT = {"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "3600", "repl-backlog-size": "16kb"}
ON_DISK = dict(SHORT, **{"repl-backlog-disk-reserve": "64mb"})
VALUE = "x" * 1000


@pytest.fixture(autouse=True)
def ours():
    if is_redis(server_path()):
        pytest.skip("Redis has no such option")


# What it is sent from the disk is the same stream: the first tests show that Redis takes it, the others with Redis are long.
BOTH, OURS_FIRST = ["ours", "redis"], ["ours", pytest.param("redis", marks=pytest.mark.long)]


@pytest.fixture(params=OURS_FIRST)
def replica(request, make_server, make_oracle):
    return make_server(SHORT) if request.param == "ours" else make_oracle(SHORT)


def follow(replica, primary):
    with replica.connect() as c:
        c.ok("REPLICAOF", "127.0.0.1", primary.port)


def up(replica):
    eventually(lambda: replication(replica).get("master_link_status") == "up", "link", 60)


def leave(replica, primary):
    """It looks for its primary where nobody is, and keeps what it knows of the stream."""
    with replica.connect() as c:
        c.ok("REPLICAOF", "127.0.0.1", "1")
    eventually(lambda: replication(primary)["connected_slaves"] == "0", "gone")


def written(count, name="key"):
    """Few keys, so that contents are compared quickly, and a list that shows each write that is missing."""
    for i in range(count):
        yield ["SET", "%s:%d" % (name, i % 100), VALUE + str(i)]
        yield ["RPUSH", name + ":all", str(i)]


def write(primary, count, name="key"):
    commands = list(written(count, name))
    with primary.connect() as c:
        for at in range(0, len(commands), 1000):
            c.pipeline(commands[at:at + 1000])


def transfers(primary):
    about = primary.info("stats")
    return int(about["sync_full"]), int(about["sync_partial_ok"])


def state(primary):
    return replication(primary).get("repl_backlog_disk_state")


@pytest.mark.parametrize("replica", BOTH, indirect=True)
def test_away_longer_than_memory_keeps(make_server, replica):
    primary = make_server(ON_DISK)
    follow(replica, primary)
    up(replica)
    eventually(lambda: state(primary) == "ready", "file")
    for round_number in range(2):
        leave(replica, primary)
        write(primary, 4000, "round%d" % round_number)
        assert int(replication(primary)["repl_backlog_histlen"]) < 64 * 1024
        assert int(replication(primary)["repl_backlog_disk_histlen"]) > 4000 * 1000
        follow(replica, primary)
        up(replica)
        check_equal(primary, replica)
        assert transfers(primary) == (1, round_number + 1)
    about = replication(primary)
    assert about["repl_backlog_disk_faults"] == "0" and about["repl_backlog_disk_reserve"] == str(64 << 20)
    first, kept = int(about["repl_backlog_disk_first_byte_offset"]), int(about["repl_backlog_disk_histlen"])
    assert first + kept - 1 == int(about["master_repl_offset"])


@pytest.mark.parametrize("replica", BOTH, indirect=True)
def test_under_load(make_server, replica):
    """Cuts while clients write all the time: it overtakes what goes to the disk, and reads on from memory."""
    primary = make_server(ON_DISK)
    with Load(primary, [generator(2, n) for n in range(3)]) as load:
        follow(replica, primary)
        up(replica)
        for _ in range(4):
            leave(replica, primary)
            begun = load.commands
            eventually(lambda at=begun: load.commands > at + 1000 or load.errors, "load", 60)
            follow(replica, primary)
            up(replica)
    check_equal(primary, replica)
    assert transfers(primary)[0] == 1


def test_longer_than_the_disk_keeps(make_server, replica):
    primary = make_server(dict(SHORT, **{"repl-backlog-disk-reserve": "2mb"}))
    follow(replica, primary)
    up(replica)
    leave(replica, primary)
    write(primary, 6000)
    eventually(lambda: int(replication(primary)["repl_backlog_disk_histlen"]) < 3 << 20 or write(primary, 500),
               "it has been written round", 30)
    follow(replica, primary)
    up(replica)
    check_equal(primary, replica)
    assert transfers(primary) == (2, 0)


def test_what_is_on_disk_is_no_buffer(make_server, replica):
    """The output limit of replicas is for memory: who is far behind, on disk, is not closed for it."""
    primary = make_server(dict(ON_DISK, **{"client-output-buffer-limit": ["replica", "1mb", "1mb", "1"]}))
    follow(replica, primary)
    up(replica)
    leave(replica, primary)
    write(primary, 8000)
    follow(replica, primary)
    up(replica)
    check_equal(primary, replica)
    assert transfers(primary) == (1, 1)


@pytest.mark.parametrize("harm", [damage, cut_off])
def test_harm_to_the_file(make_server, replica, harm):
    primary = make_server(ON_DISK)
    follow(replica, primary)
    up(replica)
    leave(replica, primary)
    write(primary, 4000)
    eventually(lambda: len(reserve_files(primary)) == 1, "its file", 30)
    harm(primary)
    follow(replica, primary)
    up(replica)
    check_equal(primary, replica)
    assert transfers(primary)[0] == 2
    assert state(primary) == "broken" and replication(primary)["repl_backlog_disk_faults"] == "1"
    assert "it is damaged" in primary.output()
    write(primary, 4000)
    check_equal(primary, replica)
    eventually(lambda: reserve_files(primary) == [], "it is closed", 30)
    assert names_left(primary) == []


def test_no_room(make_server, replica):
    """As on a full disk: no file can be so long. Nothing but the reserve is lost."""
    primary = make_server(ON_DISK)
    limit = resource.prlimit(primary.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(primary.pid, resource.RLIMIT_FSIZE, (1 << 20, limit[1]))
    follow(replica, primary)
    up(replica)
    eventually(lambda: state(primary) == "broken", "broken")
    leave(replica, primary)
    write(primary, 4000)
    follow(replica, primary)
    up(replica)
    check_equal(primary, replica)
    assert transfers(primary) == (2, 0)
    assert "can't be made" in primary.output()


def test_killed(make_server):
    primary, replica = make_server(ON_DISK), make_server(SHORT)
    follow(replica, primary)
    up(replica)
    write(primary, 4000)
    primary.kill_all()
    assert names_left(primary) == []
    primary.start()
    write(primary, 100)
    follow(replica, primary)
    up(replica)
    check_equal(primary, replica)


def test_another_history(make_server, replica):
    """What the disk keeps is of one history: it goes with it."""
    first, second = make_server(ON_DISK), make_server(ON_DISK)
    write(second, 10, "second")
    follow(replica, first)
    up(replica)
    write(first, 3000)
    check_equal(first, replica)
    follow(first, second)  # it forgets its own, and has second's from here on
    up(first)
    up(replica)
    write(second, 3000, "third")
    check_equal(second, first)
    check_equal(first, replica)
    leave(replica, first)
    write(second, 3000, "fourth")
    check_equal(second, first)
    follow(replica, first)
    up(replica)
    check_equal(first, replica)
    assert int(first.info("stats")["sync_partial_ok"]) >= 1


def test_promoted(make_server, replica):
    """A replica's own reserve serves the others when it is promoted (the old id is the second)."""
    first, second = make_server(ON_DISK), make_server(ON_DISK)
    follow(second, first)
    up(second)
    follow(replica, first)
    up(replica)
    with replica.connect() as c:
        c.ok("REPLICAOF", "127.0.0.1", "1")
    write(first, 3000)
    check_equal(first, second)
    with second.connect() as c:
        c.ok("REPLICAOF", "NO", "ONE")
    write(second, 3000, "after")
    follow(replica, second)
    up(replica)
    check_equal(second, replica)
    assert transfers(second) == (0, 1)


def test_truncated_while_it_is_read(make_server, play):
    """DEBUG TRUNCATE-REPL-BACKLOG is for who comes later: who reads from the disk reads on."""
    primary = make_server(ON_DISK)
    first = play(primary, ("capa", "eof"), ("capa", "psync2"))
    identity, offset, _ = first.full()
    large = [["SET", "large", "x" * 20000 + str(i)] for i in range(1000)]  # more than sockets take
    with primary.connect() as c:
        c.pipeline(large)
    first.close()
    reader = play(primary, ("capa", "eof"), ("capa", "psync2"))
    reader.c.send("PSYNC", identity, offset + 1)
    assert reader.line() == b"+CONTINUE " + identity.encode()
    assert reader.command() == [b"SELECT", b"0"]
    with primary.connect() as c:
        c.ok("DEBUG", "TRUNCATE-REPL-BACKLOG")
    assert "has been sent what the disk kept" not in primary.output()
    assert int(replication(primary)["repl_backlog_disk_histlen"]) < 100
    write(primary, 1, "behind")
    for command in [*large, *written(1, "behind")]:
        assert reader.command() == [word.encode() for word in command]
    late = play(primary)
    late.c.send("PSYNC", identity, offset + 1)
    assert late.line().startswith(b"+FULLRESYNC")


def test_only_at_the_start(make_server):
    server = make_server(SHORT)
    with server.connect() as c:
        assert c.call("CONFIG", "GET", "repl-backlog-disk-reserve") == [b"repl-backlog-disk-reserve", b"0"]
        assert isinstance(c.call("CONFIG", "SET", "repl-backlog-disk-reserve", "1mb"), Error)
    assert "repl_backlog_disk_state" not in replication(server)
    assert reserve_files(server) == []
