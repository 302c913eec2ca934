"""Sets beside the oracle where the generator cannot go: what chance decides (SPOP, SRANDMEMBER), events, and long walks."""

import pytest

from lib.differential import Pair
from lib.differences import DIFFERENCES
from lib.resp import Error, Set
from lib.seeds import generator, seeds

INTEGERS = [str(i) for i in range(-20, 80)]
TEXTS = ["m%d" % i for i in range(100)]
CONTENTS = {
    "intset": INTEGERS,
    "listpack": TEXTS,
    "table of integers": [str(i) for i in range(1000)],
    "table of texts": ["m%d" % i for i in range(1000)],
    "table of long ones": ["x" * 70 + str(i) for i in range(50)],
    "one": ["only"],
}
WRONG = [("SET", "wrong", "x")]


def program(text):
    return [line.strip().encode().split(b" ") for line in text.strip().split("\n")]


def fill(client, key, members):
    client.call("DEL", key)
    for at in range(0, len(members), 100):
        client.call("SADD", key, *members[at:at + 100])


@pytest.mark.parametrize("proto", [2, 3])
@pytest.mark.any_threads
def test_replies_that_chance_does_not_change(server, oracle, proto):
    text = """
        SPOP
        SPOP missing
        SPOP missing 3
        SPOP missing -1
        SPOP missing x
        SPOP missing 3 4
        SPOP wrong
        SPOP wrong 3
        SPOP wrong -1
        SRANDMEMBER
        SRANDMEMBER missing
        SRANDMEMBER missing 3
        SRANDMEMBER missing -3
        SRANDMEMBER missing x
        SRANDMEMBER missing 1 2
        SRANDMEMBER wrong
        SRANDMEMBER wrong 3
        SRANDMEMBER wrong -9223372036854775808
        SRANDMEMBER wrong 9223372036854775807
        SRANDMEMBER wrong 9223372036854775808
        SADD one only
        SRANDMEMBER one
        SRANDMEMBER one 0
        SRANDMEMBER one 1
        SRANDMEMBER one 9223372036854775807
        SRANDMEMBER one -4
        SRANDMEMBER one -9223372036854775808
        SRANDMEMBER one 1.5
        SPOP one 0
        SPOP one -1
        SPOP one 9223372036854775808
        SPOP one x
        SCARD one
        SPOP one 9223372036854775807
        EXISTS one
        SADD one only
        SPOP one
        EXISTS one
        SADD one only
        SPOP one 1
        EXISTS one
        SINTERCARD 0 one
        SINTERCARD -1 one
        SINTERCARD x one
        SINTERCARD 2 one
        SINTERCARD 9223372036854775807 one
        SINTERCARD 1 one LIMIT
        SINTERCARD 1 one LIMIT -1
        SINTERCARD 1 one LIMIT x
        SINTERCARD 1 one LIMIT 1 LIMIT 2
        SINTERCARD 1 one NOPE 1
        SINTERCARD 1 wrong LIMIT -1
        SINTERCARD 2 missing wrong
        SINTER missing wrong
        SINTER wrong missing
        SDIFF missing wrong
        SUNION missing wrong
        SINTERSTORE to missing wrong
        SUNIONSTORE wrong missing
        EXISTS wrong
        SSCAN missing 0 NOPE
        SSCAN missing x
        SSCAN missing 18446744073709551615
        SSCAN missing 18446744073709551616
        SMOVE missing wrong m
        SADD set m
        SET wrong x
        SMOVE set wrong m
        SMOVE wrong set m
        SMOVE set set m
        SMOVE set set n
        SMOVE set other n
        EXISTS other
        SMOVE set other m
        EXISTS set
    """
    Pair(server, oracle, proto, DIFFERENCES, WRONG).check(program(text), 0, pipelined=False)


@pytest.mark.parametrize("name", sorted(CONTENTS))
@pytest.mark.parametrize("proto", [2, 3])
@pytest.mark.any_threads
def test_random_members(server, oracle, name, proto):
    """Both give members, as many as asked for, different ones where they have to be."""
    members = CONTENTS[name]
    for side in (server, oracle):
        with side.connect() as client:
            client.ok("FLUSHALL")
            if proto == 3:
                client.hello(3)
            fill(client, "s", members)
            all_of_it = {m.encode() for m in members}
            for count in (1, 2, len(members) // 4, len(members) // 2, len(members) - 1,
                          len(members), len(members) + 1, 2**62):
                got = client.call("SRANDMEMBER", "s", count)
                assert type(got) is list
                assert len(got) == len(set(got)) == min(count, len(members))
                assert set(got) <= all_of_it
                got = client.call("SRANDMEMBER", "s", -min(count, 5000))
                assert type(got) is list
                assert len(got) == min(count, 5000) and set(got) <= all_of_it
            assert client.call("SRANDMEMBER", "s") in all_of_it
            assert client.call("SCARD", "s") == len(members)


@pytest.mark.parametrize("name", sorted(CONTENTS))
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.99, 1])
@pytest.mark.any_threads
def test_popped_members_are_gone_and_no_others(server, oracle, name, part):
    members = CONTENTS[name]
    encodings = []
    for side in (server, oracle):
        with side.connect() as client:
            client.ok("FLUSHALL")
            client.hello(3)
            fill(client, "s", members)
            client.call("EXPIRE", "s", 100000)
            count = max(int(len(members) * part), 1)
            got = client.call("SPOP", "s", count)
            assert type(got) is Set
            left = client.call("SMEMBERS", "s")
            assert len(got) == count
            assert sorted(got + left) == sorted(m.encode() for m in members)
            assert (client.call("TTL", "s") > 0) == bool(left)
            if left:
                one = client.call("SPOP", "s")
                assert one in left and client.call("SCARD", "s") == len(left) - 1
            encodings.append(client.call("OBJECT", "ENCODING", "s"))
    ours, theirs = encodings
    if isinstance(ours, Error):
        assert ours == theirs
    else:
        # 7.0 has no listpacks; what is left of a set of integers is an intset or not at both.
        assert (ours == b"intset") == (theirs == b"intset") or ours == b"listpack"


@pytest.mark.any_threads
def test_chance_reaches_every_member(server, ours_only):
    for members in CONTENTS.values():
        members = members[:50]
        with server.connect() as client:
            fill(client, "s", members)
            seen = set()
            for _ in range(100):
                seen |= set(client.call("SRANDMEMBER", "s", -20))
                seen |= set(client.call("SRANDMEMBER", "s", 3))
            assert seen == {m.encode() for m in members}


@pytest.mark.any_threads
def test_a_count_reserves_nothing(server, ours_only):
    """A huge negative count is refused, not begun."""
    with server.connect() as client:
        client.call("SADD", "s", "a", "b")
        for count in (-2**62, -2**63 + 1, -10**12):
            reply = client.call("SRANDMEMBER", "s", count)
            assert isinstance(reply, Error) and reply == b"ERR value is out of range"
        client.call("DEL", "s")
        client.call("SADD", "s", "x" * 1_000_000)
        assert isinstance(client.call("SRANDMEMBER", "s", -100_000), Error)
        assert len(client.call("SRANDMEMBER", "s", -3)) == 3
        assert client.call("PING") == b"PONG"


@pytest.mark.parametrize("change", ["none", "grow", "shrink"])
@pytest.mark.any_threads
def test_sscan_shows_what_stays_exactly_once(server, ours_only, change):
    staying = {b"s%d" % i for i in range(2000)}
    going = [b"g%d" % i for i in range(6000)]
    with server.connect() as client:
        fill(client, "s", sorted(staying))
        if change == "shrink":
            fill_more(client, going)
        cursor, seen, step = b"0", [], 0
        while True:
            cursor, members = client.call("SSCAN", "s", cursor, "COUNT", 50)
            seen += members
            some = going[step * 150:(step + 1) * 150]
            if some and change != "none":
                client.call("SADD" if change == "grow" else "SREM", "s", *some)
            step += 1
            if cursor == b"0":
                break
        met = [m for m in seen if m in staying]
        assert len(met) == len(set(met)) and set(met) == staying


def fill_more(client, members):
    for at in range(0, len(members), 500):
        client.call("SADD", "s", *members[at:at + 500])


@pytest.mark.any_threads
def test_sscan_matches_and_skips(server, ours_only):
    with server.connect() as client:
        fill(client, "s", CONTENTS["table of texts"])
        cursor, seen = b"0", []
        while True:
            cursor, members = client.call("SSCAN", "s", cursor, "MATCH", "m99*")
            seen += members
            if cursor == b"0":
                break
        assert sorted(seen) == sorted(m.encode() for m in CONTENTS["table of texts"]
                                      if m.startswith("m99"))
        assert client.call("SSCAN", "s", 2**48) == [b"0", []]
        assert client.call("SSCAN", "s", 2**64 - 1) == [b"0", []]


@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.any_threads
def test_encodings_follow_the_options(make_server, ours_only, reduced):
    """As Redis 7.2 has them; the oracle is older."""
    limits = (4, 3, 5) if reduced else (512, 128, 64)
    private = make_server(options={"set-max-intset-entries": str(limits[0]),
                                   "set-max-listpack-entries": str(limits[1]),
                                   "set-max-listpack-value": str(limits[2])})
    integers, entries, value = limits
    with private.connect() as client:
        def encoding(*members):
            client.call("DEL", "s")
            for m in members:
                client.call("SADD", "s", m)
            return client.call("OBJECT", "ENCODING", "s")

        assert encoding(*range(integers)) == b"intset"
        assert encoding(*range(integers + 1)) == b"hashtable"
        assert encoding(*["m%d" % i for i in range(entries)]) == b"listpack"
        assert encoding(*["m%d" % i for i in range(entries + 1)]) == b"hashtable"
        assert encoding("a", "b" * value) == b"listpack"
        assert encoding("a", "b" * (value + 1)) == b"hashtable"
        assert encoding(*range(entries - 1), "m") == b"listpack"
        assert encoding(*range(entries), "m") == b"hashtable"
        assert encoding(1, "b" * (value + 1)) == b"hashtable"
        # Many arguments at once are a table even where some are there twice.
        client.call("DEL", "s")
        client.call("SADD", "s", *([1] * (integers + 1)))
        assert client.call("OBJECT", "ENCODING", "s") == b"hashtable"
        # Results of algebra are as small as their content lets them be.
        fill(client, "a", [str(i) for i in range(integers + 100)])
        fill(client, "b", ["0", "1", "m"])
        client.call("SINTERSTORE", "s", "a", "b")
        assert client.call("OBJECT", "ENCODING", "s") == b"intset"
        client.call("SDIFFSTORE", "s", "b", "a")
        assert client.call("OBJECT", "ENCODING", "s") == b"listpack"
        client.call("SUNIONSTORE", "s", "b", "a")
        assert client.call("OBJECT", "ENCODING", "s") == b"hashtable"


def drawn_set(random):
    """Integers, texts or both, with all lengths around those at which packed sets are indexed together."""
    size = random.choice([0, 1, 3, 15, 16, 17, 40, 100, 127, 128, 129, 255, 257, 300])
    kind = random.choice(["integers", "texts", "both"])
    members = set()
    while len(members) < size:
        n = random.randrange(-size, size * 2)
        members.add(str(n) if kind == "integers" or (kind == "both" and n % 3) else "m%d" % n)
    return members


@pytest.mark.any_threads
@pytest.mark.parametrize("seed", seeds(4))
def test_algebra_of_small_sets(server, oracle, seed):
    """Any number of sets of any encoding, the same one twice among them, give what Python's sets give."""
    random = generator(seed)
    whole = {"SINTER": set.intersection, "SUNION": set.union, "SDIFF": set.difference}
    for _ in range(40):
        sets = [drawn_set(random) for _ in range(random.choice([1, 2, 2, 3, 5, 8]))]
        names = ["s%d" % random.randrange(n + 1) for n in range(len(sets))]
        limit = random.choice([0, 1, 20, 1000])
        for side in (server, oracle):
            with side.connect() as client:
                client.ok("FLUSHALL")
                for n, members in enumerate(sets):
                    for at in range(0, len(members), 100):
                        client.call("SADD", "s%d" % n, *sorted(members)[at:at + 100])
                chosen = [sets[int(name[1:])] for name in names]
                for command, operation in whole.items():
                    right = sorted(m.encode() for m in operation(*chosen))
                    assert sorted(client.call(command, *names)) == right
                    into = random.choice(["to", names[-1]])
                    assert client.call("COPY", into, "kept") == (into != "to" and len(sets[int(into[1:])]) > 0)
                    assert client.call(command + "STORE", into, *names) == len(right)
                    assert sorted(client.call("SMEMBERS", into)) == right
                    client.call("DEL", into)
                    client.call("RENAME", "kept", into)
                shared = len(set.intersection(*chosen))
                assert client.call("SINTERCARD", len(names), *names, "LIMIT", limit) == \
                    (min(shared, limit) if limit else shared)
