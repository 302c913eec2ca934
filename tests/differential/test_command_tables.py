"""What COMMAND says of each command, against the oracle: arity, flags, key positions, ACL
categories, tips, key specifications, subcommands; and the keys it finds in a call."""

import pytest

from lib import commands
from lib.resp import Error

# Flags of 7.2 that 7.0 does not show: it has no such flag, or hides it where there is no Sentinel.
FLAGS_OF_7_2 = {b"sentinel", b"protected", b"touches_arbitrary_keys"}
# The category that KeyDB has and Redis has not.
CATEGORY_OF_KEYDB = b"@replication"

# field -> command -> why the oracle is not followed
EXCEPTIONS = {
    "arity": {
        "COMMAND|GETKEYS": "7.2 takes commands without arguments: -3, was -4",
        "COMMAND|GETKEYSANDFLAGS": "as COMMAND|GETKEYS",
        "PERSIST": "KeyDB's takes a member",
        "PTTL": "KeyDB's takes a member",
        "TTL": "KeyDB's takes a member",
        "ZRANK": "7.2 takes WITHSCORE",
        "ZREVRANK": "7.2 takes WITHSCORE",
    },
    "tips": {
        "CLIENT|SETNAME": "7.2 added request and response policy",
        "CONFIG|RESETSTAT": "7.2 added request and response policy",
        "CONFIG|REWRITE": "7.2 added request and response policy",
        "LATENCY|RESET": "7.2 sums the counts of all nodes",
        "MSETNX": "7.2 took the policy back, as the command cannot be split",
        "RANDOMKEY": "7.2: response_policy:special",
        "SCAN": "7.2: response_policy:special",
    },
    "subcommands": {
        "CLIENT": "7.2 has NO-TOUCH and SETINFO",
        "OBJECT": "KeyDB has LASTMODIFIED",
    },
}


def info(client, name):
    return client.call("COMMAND", "INFO", name)[0]


def words(items):
    return sorted(items)


def specification(spec):
    """A key specification as nested dicts, without the notes for people."""
    if isinstance(spec, list) and len(spec) % 2 == 0 and all(
            isinstance(k, bytes) for k in spec[0::2]):
        return {k: sorted(v) if k == b"flags" else specification(v)
                for k, v in zip(spec[0::2], spec[1::2]) if k != b"notes"}
    return spec


def described(entry):
    flags = set(entry[2]) - FLAGS_OF_7_2
    return {
        "name": entry[0], "arity": entry[1], "flags": words(flags), "first key": entry[3],
        "last key": entry[4], "key step": entry[5], "ACL categories": words(set(entry[6]) - {CATEGORY_OF_KEYDB}),
        "tips": words(entry[7]), "key specifications": [specification(s) for s in entry[8]],
        "subcommands": words(s[0] for s in entry[9]),
    }


@pytest.mark.any_threads
@pytest.mark.parametrize("name", sorted(commands.ALL))
def test_command_info(client, oracle, name):
    with oracle.connect() as other:
        ours, theirs = info(client, name), described(info(other, name))
    assert ours is not None, "unknown command"
    ours = described(ours)
    different = {field: (ours[field], theirs[field]) for field in theirs
                 if ours[field] != theirs[field] and name not in EXCEPTIONS.get(field, {})}
    assert not different, "ours, oracle"


@pytest.mark.any_threads
@pytest.mark.parametrize("name", sorted(commands.SINCE_7_2))
def test_commands_since_7_2(client, name, ours_only):
    ours = described(info(client, name))
    assert ours["name"] == name.lower().encode()
    assert ours["arity"] == commands.SINCE_7_2[name]
    assert b"noscript" in ours["flags"] and b"@connection" in ours["ACL categories"]


@pytest.mark.any_threads
def test_command_info_is_the_same_in_resp3(connect):
    two, three = connect(2), connect(3)
    for name in sorted(commands.ALL):
        a, b = info(two, name), info(three, name)
        assert a[:2] == b[:2] and words(a[2]) == words(b[2]), name
        assert a[3:6] == b[3:6] and words(a[6]) == words(b[6]), name


@pytest.mark.any_threads
@pytest.mark.parametrize("question", ["GETKEYS", "GETKEYSANDFLAGS"])
def test_keys_of_a_call(client, oracle, question):
    different = {}
    with oracle.connect() as other:
        for name in sorted(commands.ALL):
            call = commands.call_of(name)
            if len(call) == 1:
                continue  # the oracle wants an argument, 7.2 does not
            ours, theirs = (c.call("COMMAND", question, *call) for c in (client, other))
            if question == "GETKEYSANDFLAGS" and not isinstance(theirs, Error):
                theirs = [[key, sorted(flags)] for key, flags in theirs]
                if not isinstance(ours, Error):
                    ours = [[key, sorted(flags)] for key, flags in ours]
            if ours != theirs:
                different[name] = (ours, theirs)
    assert not different


@pytest.mark.any_threads
def test_keys_of_broken_calls(client, oracle):
    """Never reads past the last argument; errors as the oracle's."""
    calls = [["GETKEYS", "MSET", "a"], ["GETKEYS", "MSET", "a", "1", "b"],
             ["GETKEYS", "nope", "x"], ["GETKEYS", "SET", "a"], ["GETKEYS", "OBJECT", "x", "k"],
             ["GETKEYS", "MEMORY", "USAGE", "k"], ["GETKEYS", "CONFIG", "GET", "x"],
             ["GETKEYS", "GET", "a", "b"], ["GETKEYS"], ["GETKEYSANDFLAGS"],
             ["GETKEYSANDFLAGS", "SET", "k", "v", "GET"], ["GETKEYSANDFLAGS", "SET", "k", "v"],
             ["GETKEYSANDFLAGS", "SET", "k", "v", "EX", "GET"], ["GETKEYS", "", ""],
             ["GETKEYSANDFLAGS", "SET", "k"], ["GETKEYS", "COMMAND", "GETKEYS", "GET", "k"]]
    with oracle.connect() as other:
        for call in calls:
            assert client.call("COMMAND", *call) == other.call("COMMAND", *call), call


@pytest.mark.any_threads
def test_keys_of_calls_without_arguments(client, ours_only):
    """Redis 7.2 takes them, the oracle does not yet."""
    for question in ("GETKEYS", "GETKEYSANDFLAGS"):
        assert client.error("COMMAND", question, "PING") == \
            b"ERR The command has no key arguments"
        assert client.error("COMMAND", question, "GET") == \
            b"ERR Invalid number of arguments specified for command"
        assert client.error("COMMAND", question, "NOPE") == b"ERR Invalid command specified"


@pytest.mark.any_threads
def test_count_and_list_agree(client):
    listed = client.call("COMMAND", "LIST")
    assert len(listed) == len(set(listed))
    top = client.call("COMMAND")
    assert client.call("COMMAND", "COUNT") == len(top)
    assert {entry[0] for entry in top} <= set(listed)


@pytest.mark.any_threads
def test_list_filters(client):
    listed = set(client.call("COMMAND", "LIST"))
    found = client.call("COMMAND", "LIST", "FILTERBY", "PATTERN", "g*e*")
    assert set(found) == {n for n in listed if n.startswith(b"g") and b"e" in n[1:]}
    writes = set(client.call("COMMAND", "LIST", "FILTERBY", "ACLCAT", "write"))
    assert {b"set", b"del", b"append"} <= writes and b"get" not in writes
    assert client.call("COMMAND", "LIST", "FILTERBY", "MODULE", "x") == []


@pytest.mark.any_threads
def test_docs(connect, oracle):
    client = connect(3)
    docs = client.call("COMMAND", "DOCS").as_dict()
    with oracle.connect(3) as other:
        theirs = other.call("COMMAND", "DOCS").as_dict()
    for name in sorted(n for n in commands.ALL if "|" not in n):
        key = name.lower().encode()
        ours, wanted = docs[key].as_dict(), theirs[key].as_dict()
        for field in (b"since", b"group", b"complexity", b"summary"):
            assert ours.get(field) or not wanted.get(field), (name, field)
        assert ours[b"group"] == wanted[b"group"], name
        assert ours[b"since"] == wanted[b"since"], name
        assert (b"arguments" in ours) == (b"arguments" in wanted), name
        assert (b"subcommands" in ours) == (b"subcommands" in wanted), name


@pytest.mark.any_threads
def test_docs_in_resp2_is_the_flat_map(client):
    flat = client.call("COMMAND", "DOCS", "get", "nothing", "set")
    assert flat[0::2] == [b"get", b"set"]
    assert b"summary" in flat[1][0::2]


@pytest.mark.any_threads
def test_help_of_every_container(client, oracle):
    with oracle.connect() as other:
        for name in ("CLIENT", "COMMAND", "CONFIG", "LATENCY", "MEMORY", "OBJECT", "SLOWLOG"):
            ours, theirs = client.call(name, "HELP"), other.call(name, "HELP")
            assert ours[0] == theirs[0], name
            assert ours[-2:] == theirs[-2:], name
            assert all(type(line) is type(theirs[0]) for line in ours), name
            subcommands = {line.split()[0] for line in theirs[1:] if not line.startswith(b" ")}
            missing = subcommands - {line.split()[0] for line in ours if line.strip()}
            assert not missing, name
