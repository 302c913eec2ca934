"""How far consumer groups are (XINFO's entries-read and lag): random histories against a model that
counts, and the cases that Redis gets wrong.  A lag that is told is right; it may be unknown where
entries were deleted (value/stream_lag.h)."""

import struct

import pytest

from lib.payload import listpack, sealed, string
from lib.seeds import generator, seeds
from lib.server import is_redis, server_path

STEPS = 400


def add(c, *ids):
    for i in ids:
        assert c.call("XADD", "s", i, "f", "v") == i.encode()


def read(c, group, count):
    return c.call("XREADGROUP", "GROUP", group, "c", "COUNT", count, "STREAMS", "s", ">")


def progress(c, key="s"):
    """(entries-read, lag) of each group, as GROUPS and FULL show it alike."""
    rows = [dict(zip(r[0::2], r[1::2])) for r in c.call("XINFO", "GROUPS", key)]
    whole = c.call("XINFO", "STREAM", key, "FULL")
    full = [dict(zip(g[0::2], g[1::2])) for g in dict(zip(whole[0::2], whole[1::2]))[b"groups"]]
    told = [{r[b"name"].decode(): (r[b"entries-read"], r[b"lag"]) for r in form} for form in (rows, full)]
    assert told[0] == told[1]
    return told[0]


# ---- what users reported ----


@pytest.mark.any_threads
def test_all_read_and_more_is_deleted(client):
    client.ok("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    add(client, "1-0", "2-0", "3-0", "4-0")
    read(client, "g", 2)
    assert progress(client) == {"g": (2, 2)}
    assert client.call("XDEL", "s", "1-0", "2-0", "3-0") == 3
    assert progress(client) == {"g": (2, 1)}
    read(client, "g", 1)
    assert progress(client) == {"g": (4, 0)}


@pytest.mark.any_threads
def test_reading_past_a_deleted_entry(client):
    client.ok("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    add(client, "1-0", "2-0", "3-0", "4-0")
    read(client, "g", 2)
    client.call("XDEL", "s", "3-0")
    assert progress(client) == {"g": (2, None)}
    read(client, "g", 2)
    assert progress(client) == {"g": (4, 0)}
    add(client, "5-0", "6-0")
    assert progress(client) == {"g": (4, 2)}


@pytest.mark.any_threads
def test_reading_past_trimmed_entries(client):
    add(client, *("%d-0" % i for i in range(1, 7)))
    client.ok("XGROUP", "CREATE", "s", "g", "0")
    read(client, "g", 1)
    assert client.call("XTRIM", "s", "MAXLEN", 2) == 4
    assert progress(client) == {"g": (1, 2)}
    read(client, "g", 1)
    assert progress(client) == {"g": (5, 1)}


@pytest.mark.any_threads
def test_who_deletes_what_is_done_is_told_the_lag(client):
    """In any order, as workers end: what is behind the last one read was not touched."""
    add(client, *("%d-0" % i for i in range(1, 9)))
    client.ok("XGROUP", "CREATE", "s", "g", "0", "ENTRIESREAD", "0")
    read(client, "g", 4)
    for i in (2, 4, 1, 3):
        client.call("XDEL", "s", "%d-0" % i)
        assert progress(client) == {"g": (4, 4)}
    read(client, "g", 1)
    assert progress(client) == {"g": (5, 3)}


@pytest.mark.any_threads
@pytest.mark.parametrize("form", ["CREATE", "SETID"])
def test_entries_read_is_cut(client, form):
    add(client, "1-0", "2-0", "3-0", "4-0")
    client.call("XDEL", "s", "1-0")
    if form == "SETID":
        client.ok("XGROUP", "CREATE", "s", "g", "0")
    for given in (5, 2**63 - 1):
        client.ok("XGROUP", form, "s", "g", "3-0", "ENTRIESREAD", given)
        # What cannot be is not told: more than nothing was read, or an entry is left.
        assert progress(client) == {"g": (4, 0)}
        if form == "CREATE":
            client.call("XGROUP", "DESTROY", "s", "g")
    client.ok("XGROUP", "CREATE", "s", "end", "$", "ENTRIESREAD", "0")
    client.ok("XGROUP", "CREATE", "s", "beyond", "99-0", "ENTRIESREAD", "2")
    assert progress(client)["end"] == (0, 0)
    assert progress(client)["beyond"] == (None, None)
    client.call("DEL", "s")
    client.ok("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM", "ENTRIESREAD", "3")
    assert progress(client) == {"g": (0, 0)}


@pytest.mark.any_threads
def test_a_place_that_claiming_sets(client):
    add(client, "1-0", "2-0", "3-0", "4-0")
    client.ok("XGROUP", "CREATE", "s", "g", "0")
    read(client, "g", 1)
    client.call("XCLAIM", "s", "g", "c", "0", "1-0", "LASTID", "3-0")
    assert progress(client) == {"g": (None, None)}
    client.call("XCLAIM", "s", "g", "c", "0", "1-0", "LASTID", "4-0")
    assert progress(client) == {"g": (4, 0)}


@pytest.mark.any_threads
def test_counters_set_by_hand(client):
    add(client, "1-0", "2-0", "3-0", "5-0")
    client.ok("XGROUP", "CREATE", "s", "g", "0")
    read(client, "g", 2)
    client.ok("XSETID", "s", "9-0", "ENTRIESADDED", "4")
    assert progress(client) == {"g": (2, 2)}
    client.ok("XSETID", "s", "9-0", "ENTRIESADDED", "5")
    assert progress(client) == {"g": (None, None)}
    client.ok("XGROUP", "SETID", "s", "g", "8-0", "ENTRIESREAD", "5")
    assert progress(client) == {"g": (5, 0)}
    client.ok("XSETID", "s", "7-0")
    assert progress(client) == {"g": (None, None)}
    client.ok("XGROUP", "SETID", "s", "g", "3-0", "ENTRIESREAD", "3")
    client.call("XDEL", "s", "2-0")
    assert progress(client) == {"g": (3, 2)}
    client.ok("XSETID", "s", "10-0", "MAXDELETEDID", "1-0")
    assert progress(client) == {"g": (None, None)}
    client.ok("XSETID", "s", "10-0", "ENTRIESADDED", 2**63 - 1)
    client.ok("XGROUP", "SETID", "s", "g", "3-0", "ENTRIESREAD", 2**63 - 2)
    assert progress(client) == {"g": (2**63 - 2, None)}


@pytest.mark.any_threads
def test_the_count_of_entries_stays_at_the_most_there_can_be(client):
    """Redis counts on, from -2**63."""
    def count():
        about = client.call("XINFO", "STREAM", "s")
        return dict(zip(about[::2], about[1::2]))[b"entries-added"]
    add(client, "1-0")
    client.ok("XSETID", "s", "2-0", "ENTRIESADDED", 2**63 - 2)
    add(client, "3-0")
    assert count() == 2**63 - 1
    add(client, "4-0", "5-0")
    assert count() == (-2**63 + 1 if is_redis(server_path()) else 2**63 - 1)


# ---- old files ----

OLD_GROUPS = {"before": b"\x00\x05", "first": b"\x01\x01", "between": b"\x02\x01", "last": b"\x04\x01",
              "top": b"\x07\x00", "beyond": b"\x09\x00"}


def old_stream():
    """A stream as Redis before 7.0 wrote it (type 15): 1-1, 2-1 and 4-1, and 3-1 deleted; last ID 7-0."""
    node = listpack(3, 1, 1, b"f", 0,
                    2, 0, 0, b"v", 4, 2, 1, 0, b"v", 4, 3, 2, 0, b"v", 4, 2, 3, 0, b"v", 4)
    length_and_last = b"\x03" + b"\x07\x00"
    groups = b"".join(string(name.encode()) + last + b"\x00\x00" for name, last in OLD_GROUPS.items())
    body = b"\x0f\x01" + string(struct.pack(">QQ", 1, 1)) + b"\x40" + bytes([len(node)]) + node + \
        length_and_last + bytes([len(OLD_GROUPS)]) + groups
    return sealed(body, 9)


@pytest.mark.any_threads
def test_a_payload_of_old_has_its_counts_estimated(client, oracle):
    with oracle.connect() as other:
        for c in (client, other):
            c.ok("RESTORE", "s", 0, old_stream())
        ours, theirs = progress(client), progress(other)
    assert ours == {"before": (0, 3), "first": (1, 2), "between": (None, None), "last": (None, None),
                    "top": (3, 0), "beyond": (None, None)}
    assert ours == theirs


# ---- random histories ----


class Model:
    """Which IDs were ever added, which are there, and where each group is."""

    def __init__(self):
        self.ever, self.there, self.groups = [], [], {}

    def lag(self, group):
        return sum(i > self.groups[group] for i in self.there)

    def rank(self, group):
        return sum(i <= self.groups[group] for i in self.ever)


def step(c, random, m):
    kind = random.choices(["add", "read", "delete", "trim", "place", "done"], [6, 6, 2, 1, 1, 2])[0]
    if kind == "add":
        m.ever.append((m.ever[-1] if m.ever else 0) + random.choice([1, 1, 3]))
        m.there.append(m.ever[-1])
        more = ["MAXLEN", 10] if random.random() < 0.1 else []
        c.call("XADD", "s", *more, "%d-0" % m.ever[-1], "f", "v")
        m.there = m.there[-10:] if more else m.there
    elif kind == "read":
        group = random.choice(list(m.groups))
        count = random.choice([1, 1, 2, 5])
        got = read(c, group, count)
        new = [i for i in m.there if i > m.groups[group]][:count]
        assert [int(e[0].split(b"-")[0]) for e in (got[0][1] if got else [])] == new
        m.groups[group] = max(new + [m.groups[group]])
    elif kind in ("delete", "done") and m.there:
        read_by_all = [i for i in m.there if i <= min(m.groups.values())]
        some = random.choice(read_by_all or m.there if kind == "done" else m.there)
        assert c.call("XDEL", "s", "%d-0" % some) == 1
        m.there.remove(some)
    elif kind == "trim" and random.random() < 0.4:
        some = random.choice(m.ever or [0])
        c.call("XTRIM", "s", "MINID", "%d-0" % some)
        m.there = [i for i in m.there if i >= some]
    elif kind == "place" and random.random() < 0.4:
        group = random.choice(list(m.groups))
        m.groups[group] = random.choice(m.ever[-12:] or [0])
        read_too = ["ENTRIESREAD", m.rank(group)] if random.random() < 0.5 else []
        c.ok("XGROUP", "SETID", "s", group, "%d-0" % m.groups[group], *read_too)


def check(told, m):
    """How many lags were known."""
    assert set(told) == set(m.groups)
    for group, (count, lag) in told.items():
        assert lag in (None, m.lag(group)), (group, m.there, m.groups)
        if count is not None and m.groups[group] in m.ever:
            assert count == m.rank(group), group
    return sum(lag is not None for _, lag in told.values())


@pytest.mark.parametrize("seed", seeds(4))
def test_lag_is_right_or_unknown(client, seed):
    random = generator(seed, "lag")
    m, known, all_told = Model(), 0, 0
    for group in "gh":
        client.ok("XGROUP", "CREATE", "s", group, "$", "MKSTREAM")
        m.groups[group] = 0
    for n in range(STEPS):
        step(client, random, m)
        told = progress(client)
        known += check(told, m)
        all_told += len(told)
        if n % 100 == 99:
            client.ok("RESTORE", "s", 0, client.call("DUMP", "s"), "REPLACE")
            assert progress(client) == told
    assert known > all_told / 2


def test_replicas_and_logs_count_alike(make_server):
    primary = make_server({"appendonly": "yes", "repl-diskless-sync-delay": "0"},
                          files=["dump.rdb", "appendonlydir"])
    replica = make_server({"replicaof": "127.0.0.1 %d" % primary.port})
    random = generator(1, "lag of copies")
    m = Model()
    with primary.connect() as c, replica.connect() as d:
        for group in "gh":
            c.ok("XGROUP", "CREATE", "s", group, "0", "MKSTREAM")
            m.groups[group] = 0
        for _ in range(150):
            step(c, random, m)
        c.call("XCLAIM", "s", "g", "c", "0", "1-0", "LASTID", "%d-0" % m.ever[-2])
        assert c.call("WAIT", 1, 0) == 1
        told = progress(c)
        assert progress(d) == told
        c.ok("DEBUG", "RELOAD")
        assert progress(c) == told
        c.ok("DEBUG", "LOADAOF")
        assert progress(c) == told
