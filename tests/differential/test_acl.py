"""ACL rules to our server and to the oracle: random sequences of ACL SETUSER, their replies, and then
what the user looks like and may do.

The oracle (7.0) tells commands by a smallest set of rules that it works out, 7.2 by the rules that were
given: the field `commands` is not compared, but all that follows from it is, by ACL DRYRUN. Since 7.2 every
new user says sanitize-payload."""

import re

import pytest

from lib.seeds import generator, seeds

NAMES = ["joe", "jane"]
RULES = ["on", "off", "nopass", "resetpass", ">a", ">b", "<a", "<b", "#" + "ab" * 32, "!" + "ab" * 32,
         "#12", "#" + "AB" * 32, "allkeys", "resetkeys", "~*", "~k*", "~a", "~x?", "%R~x*", "%W~x*",
         "%RW~r", "%r~q", "%w~q", "~", "~[ab]", "&*", "&c1", "&c*", "&", "allchannels",
         "resetchannels", "+@all", "-@all", "allcommands", "nocommands", "reset", "clearselectors",
         "sanitize-payload", "skip-sanitize-payload", "bad", "", "ON", "AllKeys", "~a b", "(", "(on)",
         "()", "(+get ~x*)", "(~q +@read -get)", "(+@string", "~a)", "(+@all ~* &*)", "(bad)",
         "(%R~q +get +set)", "+get|a|b", "+nope", "-nope", "+@nope", "+config|nope", "+config|",
         "+select|0", "+get|k1", "-get|k1", "+|", "+", "-", "+@", "@read"]
CATEGORIES = ["keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap",
              "hyperloglog", "geo", "stream", "pubsub", "admin", "fast", "slow", "blocking",
              "dangerous", "connection", "transaction", "READ"]
COMMANDS = ["get", "set", "del", "GETRANGE", "config", "config|get", "CONFIG|SET", "client",
            "client|id", "client|kill", "publish", "subscribe", "psubscribe", "sort", "sort_ro",
            "mget", "mset", "lpush", "xadd", "flushall", "object|encoding", "object", "select"]
# No 0: with no source keys ("ZDIFFSTORE a 0") the oracle checks no key at all, we the destination.
WORDS = ["x1", "a", "k1", "c1", "q", "r", "1", "2", "zz"]


def random_rule(random):
    chance = random.random()
    if chance < 0.3:
        return random.choice("+-") + "@" + random.choice(CATEGORIES)
    if chance < 0.6:
        return random.choice("+-") + random.choice(COMMANDS)
    return random.choice(RULES)


def steps(random, length):
    for _ in range(length):
        rules = [random_rule(random) for _ in range(random.choice([0, 1, 1, 1, 2, 4]))]
        # The oracle forgets a selector that is open when another one opens; we refuse the rules.
        while sum(r.startswith("(") and not r.endswith(")") for r in rules) > 1:
            rules.pop()
        yield ["ACL", "SETUSER", random.choice(NAMES)] + rules


def flatten(client, reply):
    """GETUSER as a list without the fields `commands`."""
    if isinstance(reply, dict):
        reply = [word for pair in reply.items() for word in pair]
    if not isinstance(reply, list):
        return reply
    out, skip = [], False
    for item in reply:
        out.append(b"?" if skip else flatten(client, item))
        skip = item == b"commands"
    return out


def as_in_7_2(reply):
    """The oracle's LIST or GETUSER with what a new user says since 7.2: sanitize-payload."""
    if isinstance(reply, bytes) and reply.startswith(b"user ") and b"sanitize-payload" not in reply:
        return re.sub(rb"^(user \S+ (?:on|off)(?: nopass)?) ", rb"\1 sanitize-payload ", reply)
    if isinstance(reply, list) and reply[:1] == [b"flags"]:
        said = any(flag.endswith(b"sanitize-payload") for flag in reply[1])
        return [reply[0], reply[1] + ([] if said else [b"sanitize-payload"])] + reply[2:]
    return [as_in_7_2(item) for item in reply] if isinstance(reply, list) else reply


def rows_of(entries):
    """name -> (arity, categories) of commands and subcommands."""
    rows = {}
    for entry in entries:
        for row in [entry] + entry[9] if entry else []:
            rows[row[0]] = (row[1], frozenset(row[6]))
    return rows


def requests_of(ours, oracle):
    """Requests of all commands that are alike in both (7.2 has moved a few, like WAIT, to other
    categories), of the right length."""
    mine, theirs = rows_of(ours.call("COMMAND")), rows_of(oracle.call("COMMAND"))
    alike = sorted(name for name in theirs if mine.get(name) == theirs[name])
    assert len(alike) > 150
    return [(name.split(b"|"), abs(theirs[name][0]) + (theirs[name][0] < 0)) for name in alike]


def verdict(reply):
    for prefix in (b"This user", b"User joe", b"User jane"):
        if reply.startswith(prefix):
            return b"This user" + reply[len(prefix):]
    return reply


def check(server, oracle, seed):
    random = generator(seed, "acl", 0)
    with server.connect() as ours, oracle.connect() as theirs:
        sides = (ours, theirs)
        try:
            done = []
            for words in steps(random, 60):
                done.append(words)
                replies = [c.call(*words) for c in sides]
                shown = [flatten(c, c.call("ACL", "GETUSER", words[2])) for c in sides]
                assert replies[0] == replies[1], (words, replies)
                assert shown[0] == as_in_7_2(shown[1]), (words, shown)
            programs = []
            for names, length in requests_of(ours, theirs):
                for user in NAMES:
                    arguments = [random.choice(WORDS) for _ in range(length - len(names))]
                    programs.append(["ACL", "DRYRUN", user] + names + arguments)
            answers = [[verdict(a) for a in c.pipeline(programs)] for c in sides]
            for program, mine, oracles in zip(programs, *answers):
                assert mine == oracles, (mine, oracles, program, " ; ".join(" ".join(w[3:]) for w in done if w[2] == program[2]))
        finally:
            for c in sides:
                c.call("ACL", "DELUSER", *NAMES)


@pytest.mark.parametrize("seed", seeds(12))
def test_same_rules(server, oracle, seed):
    check(server, oracle, seed)


@pytest.mark.slow
def test_same_rules_many_seeds(server, oracle):
    for seed in seeds(300, base=1000):
        check(server, oracle, seed)


ONCE = [
    ["ACL", "LIST"], ["ACL", "USERS"], ["ACL", "WHOAMI"], ["ACL", "GETUSER", "nobody"],
    ["ACL", "GETUSER", "default"], ["ACL", "SETUSER", "a b"], ["ACL", "SETUSER", "a\x00"],
    ["ACL", "DELUSER", "default"], ["ACL", "DELUSER", "nobody", "none"],
    ["ACL", "DELUSER", "nobody", "default"], ["ACL", "CAT", "nope"], ["ACL", "CAT", "a", "b"],
    ["ACL", "GENPASS", "0"], ["ACL", "GENPASS", "-1"], ["ACL", "GENPASS", "x"],
    ["ACL", "GENPASS", "4097"], ["ACL", "GENPASS", "1", "2"], ["ACL", "LOG", "RESET"], ["ACL", "LOG"],
    ["ACL", "LOG", "x"], ["ACL", "LOG", "-1"], ["ACL", "LOG", "RESET", "x"], ["ACL", "NOPE"], ["ACL"],
    ["ACL", "DRYRUN", "nobody", "get", "x"], ["ACL", "DRYRUN", "default", "nope"],
    ["ACL", "DRYRUN", "default", "get"], ["ACL", "DRYRUN", "default", "config", "nope"],
    ["ACL", "DRYRUN", "default", "config"], ["ACL", "DRYRUN", "default", "get", "x"],
    ["ACL", "SETUSER"], ["ACL", "GETUSER"], ["ACL", "WHOAMI", "x"], ["AUTH", "nobody", "x"],
    ["AUTH", "x"], ["AUTH", "default", "x"], ["AUTH", "a", "b", "c"], ["HELLO", "3", "AUTH", "a", "b"],
    ["CLIENT", "KILL", "USER", "nobody"], ["ACL", "LOAD", "x"], ["CONFIG", "GET", "aclfile"], ["CONFIG", "GET", "acllog-max-len"],
    ["CONFIG", "GET", "acl-pubsub-default"],
    ["CONFIG", "SET", "acl-pubsub-default", "x"], ["CONFIG", "SET", "acl-pubsub-default",
                                                   "resetchannels"],
]


def test_same_replies(server, oracle):
    for words in ONCE:
        with server.connect() as ours, oracle.connect() as theirs:
            if words != ["ACL", "DRYRUN", "default", "config", "nope"]:
                assert ours.call(*words) == as_in_7_2(theirs.call(*words)), words


def test_new_users_channels(server, oracle):
    shown = []
    for s in (server, oracle):
        with s.connect() as c:
            c.ok("CONFIG", "SET", "acl-pubsub-default", "allchannels")
            c.ok("ACL", "SETUSER", "joe", "on", "(+get)")
            shown.append([flatten(c, c.call("ACL", "GETUSER", "joe"))])
            c.ok("CONFIG", "SET", "acl-pubsub-default", "resetchannels")
            c.ok("ACL", "SETUSER", "joe", "reset")
            shown[-1].append(c.call("ACL", "LIST"))
            c.call("ACL", "DELUSER", "joe")
    assert shown[0] == as_in_7_2(shown[1])


def test_same_categories(server, oracle):
    with server.connect() as ours, oracle.connect() as theirs:
        assert ours.call("ACL", "CAT") == theirs.call("ACL", "CAT") + [b"replication"]  # KeyDB's
        known = set(ours.call("COMMAND", "LIST"))
        for category in theirs.call("ACL", "CAT"):
            want = {n for n in theirs.call("ACL", "CAT", category) if n.split(b"|")[0] in known}
            missing = {n for n in want - set(ours.call("ACL", "CAT", category))
                       if ours.call("COMMAND", "INFO", n)[0]}
            assert missing == set(), category
