"""What modules tell in INFO and learn from it, users and rights, children: the same module in redis-server 7.0.15
and here (tests/modules/told.c)."""

import pytest

from lib.bounds import eventually
from lib.modules import beside_redis
from lib.resp import Error


@pytest.fixture
def both(make_server, make_oracle, connect):
    """both(word, ...): the reply of both servers, which is the same."""
    return beside_redis(make_server, make_oracle, connect, "told")


def told(client, *words):
    """INFO's text from the first section of the module on."""
    text = client.call("INFO", *words).decode()
    at = text.find("# told")
    return text[at:] if at >= 0 else ""


@pytest.mark.parametrize("words", ("modules", "everything", "told", "told_dicts", "TOLD_other", "told_nope", "all",
                                   "default", "told_dicts server", "server", "", "nope told_Other"))
def test_sections(both, words):
    ours, theirs = (told(client, *words.split()) for client in both.clients)
    assert ours == theirs


def test_info_amid_other_things(both):
    ours = both.clients[0]
    ours.ok("MULTI")
    ours.call("SET", "k", "v")
    ours.call("INFO", "told")
    assert b"told_text:plain" in ours.call("EXEC")[1]
    assert b"told_n:7" in ours.call("EVAL", "return redis.call('info', 'told')", 0)
    assert b"told_n:7" in ours.pipeline([("GET", "k"), ("INFO", "told"), ("GET", "k")])[1]


@pytest.mark.parametrize("section", ("-", "server", "told", "everything", "keyspace", "nope"))
def test_fields(both, section):
    both("SET", "k", "v")
    for field in ("told_text", "told_negative", "told_large", "told_double", "told_unsafe", "told_one", "redis_mode",
                  "cluster_enabled", "db0", "nope", "", "# Server", "connected_slaves"):
        ours, theirs = (client.call("T.INFO", section, field) for client in both.clients)
        assert ours[:6] == theirs[:6] and float(ours[6]) == float(theirs[6])


RULES = ("on", "+get", "-@all", "+@read", "~a*", "%R~b*", "&ch*", "nopass", "+nope", "+set", "off", "&*", "reset", "(+set ~s*)",
         "allkeys", "~x")


def user(both, *rules):
    """T.USER. redis-server fails with another word than REDISMODULE_ERR, and has an order of its own."""
    replies = [client.call("T.USER", *rules) for client in both.clients]
    told = [([word if isinstance(word, bytes) else word == 0 for word in reply[:-1]],
             reply[-1] and sorted(reply[-1].split())) for reply in replies]
    assert told[0] == told[1], (rules, replies)


def may(both, *words):
    """T.MAY. Of a channel that is denied redis-server sets no errno, though its documentation has one."""
    ours, theirs = (client.call("T.MAY", *words) for client in both.clients)
    assert ours == theirs or (words[1] == "channel" and (ours, theirs) == (b"EACCES", b"ERR")), (words, ours, theirs)


def test_users(both):
    user(both, "reset")
    for rule in RULES:
        user(both, rule)
        for words in ("command GET a1", "command GET b1", "command SET a1 v", "command SET s1 v", "command NOSUCH x",
                      "command CONFIG GET x", "command MGET a1 c1", "key r a1", "key w a1", "key rw b1", "key r b1",
                      "key pu s1", "key x a1", "channel r ch1", "channel w ch1", "channel rp ch*", "channel u no",
                      "channel x ch1", "channel r no"):
            may(both, "-", *words.split())


def test_users_of_the_server(both):
    both("ACL", "SETUSER", "u", "on", "nopass", "~k*", "+get", "&*")
    both("ACL", "SETUSER", "off-user", "off", "nopass", "~k*", "+get")
    for name in ("u", "default", "off-user", "nobody"):
        for words in ("command GET k1", "command SET k1 v", "key r k1", "key r other", "channel r c"):
            may(both, name, *words.split())
    for reason in range(4):
        both("T.DENIED", "u", reason, "object %d" % reason)
    logs = [[(entry[3], entry[5], entry[7], entry[9]) for entry in client.call("ACL", "LOG")] for client in both.clients]
    assert logs[0] == logs[1]


def test_rules_follow_commands(both):
    user(both, "reset", "on", "+@all", "allkeys")
    both("T.MAY", "-", "command", "T.CHILD")
    user(both, "=-@all +get resetkeys %R~x (+set ~y)", "=+nope", "=(+get")


def test_channels(both):
    both("ACL", "SETUSER", "l", "on", "nopass", "+@all", "~*", "resetchannels", "&ch*", "&exact")
    many = " ".join("s ch%d" % n for n in range(100))
    for words in ("s ch1", "p ch1", "s other", "p other", "s* ch*", "s* ch1", "s* exact", "u other", "s ch1 p other",
                  "s ch1 p exact", "- other", many, many + " s other", "s"):
        words = ("ACL", "DRYRUN", "l", "T.LISTEN", *words.split())
        answers = [[client.call(*words)] + client.pipeline([("GET", "k"), words])[1:] for client in both.clients]
        assert len({(reply == b"OK", other == b"OK") for reply, other in answers}) == 1, (words, answers)
    both("AUTH", "l", "")
    for words in ("s ch1", "s other", "p ch1 s other", "u other"):
        ours, theirs = (client.call("T.LISTEN", *words.split()) for client in both.clients)
        assert ours == theirs or (isinstance(ours, Error) and isinstance(theirs, Error))
    both("AUTH", "default", "")


def test_children(both):
    for status in (0, 3):
        both("T.FORK", status, 0)
        eventually(lambda: [client.call("T.CHILD") for client in both.clients] == [[status, 0]] * 2, "they have ended")
    both("T.FORK", 0, 600)
    both("T.FORK", 0, 0)
    assert all(b"module_fork_in_progress:1" in client.call("INFO", "persistence") for client in both.clients)
    both("T.KILL")
    both("T.KILL")
    both("T.FORK", 5, 0)
    eventually(lambda: [client.call("T.CHILD") for client in both.clients] == [[5, 0]] * 2, "it has ended")
    eventually(lambda: b"module_fork_in_progress:0" in both.clients[0].call("INFO", "persistence"), "no child is left")


def test_slots(both):
    ours = both.clients[0]
    for key, slot in (("foo", 12182), ("{foo}bar", 12182), ("{}foo", 9500), ("a{foo}{bar}", 12182), ("", 0)):
        reply = ours.call("T.SLOT", key)
        assert reply[0] == reply[1] and reply[2] == 1
        if key != "{}foo":
            assert reply[0] == slot


def test_clients(both, connect):
    servers = both.servers
    others = [connect(to=server) for server in servers]
    ids = [(client.call("CLIENT", "ID"), other.call("CLIENT", "ID")) for client, other in zip(both.clients, others)]

    def each(*words):
        """The same of the caller and of another client: `own` and `other` in the words."""
        replies = []
        for client, (own, other) in zip(both.clients, ids):
            replies.append(client.call(*({"own": own, "other": other}.get(word, word) for word in words)))
        assert replies[0] == replies[1], words
        return replies[0]

    for who in ("own", "other", "987654321"):
        each("T.CLIENT", who)
        each("T.NAME", who, "a name")
        each("T.NAME", who, "name-" + who)
        each("T.CLIENT", who)
    for other in others:
        other.ok("SELECT", "3")
        other.ok("MULTI")
    each("T.CLIENT", "other")
    assert each("T.AWAY", "987654321") == 1
    assert each("T.AWAY", "other") == 0
    eventually(lambda: all(client.call("T.CLIENT", other)[0] == 1 for client, (_, other) in zip(both.clients, ids)),
               "it is gone from both")
    each("T.CLIENT", "other")


def test_reset(both):
    for restart in (0, 1):
        for lazily in (0, 1):
            both("SET", "k", "v")
            both("SELECT", 3)
            both("RPUSH", "l", *range(500))
            both("T.RESET", restart, lazily)
            both("DBSIZE")
            both("SELECT", 0)
            both("DBSIZE")


def test_becoming_somebody(both, connect):
    both("ACL", "SETUSER", "u", "on", "nopass", "+acl|whoami", "+t.become", "+reset", "+ping", "+client|id")
    both("ACL", "SETUSER", "off-user", "off", "+@all")
    user(both, "reset", "on", "+ping", "+t.become", "+acl|whoami", "+client|id")
    others = [connect(to=server) for server in both.servers]
    ids = [other.call("CLIENT", "ID") for other in others]

    def other(*words):
        replies = [client.call(*words) for client in others]
        ours, theirs = (reply.split()[0] if isinstance(reply, Error) else reply for reply in replies)
        assert ours == theirs, words
        return replies[0]

    told = [[], []]

    def changed(times=1):
        """Whether both servers have told so many ends of the other client, and nothing else."""
        for replies, client in zip(told, both.clients):
            replies.append(client.call("T.CHANGED"))
        return [[reply for reply in replies if reply] for replies in told] == [[i] * times for i in ids]

    for name in ("nobody", "off-user"):
        other("T.BECOME", name)
    assert other("T.BECOME", "u") == [0, 1]
    assert other("ACL", "WHOAMI") == b"u"
    assert changed(0)
    assert other("GET", "k").startswith(b"NOPERM")
    other("T.BECOME", "-")
    other("ACL", "WHOAMI")
    assert changed()
    other("GET", "k")
    other("PING")
    for client in others:
        client.close()
    eventually(lambda: changed(2), "they are told of the end")
