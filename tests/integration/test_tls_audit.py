"""tls-auditlog-blocklist: the log tells what clients do whose certificate has none of its names."""

import re

import pytest

from lib.bounds import eventually
from lib.server import free_port
from lib.tls import TlsConnection, context, make_pki

pytestmark = [pytest.mark.any_threads, pytest.mark.usefixtures("ours_only")]


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    made = make_pki(str(tmp_path_factory.mktemp("pki")))  # its client is worker.example
    made.make("trusted", "backup", san="DNS:db.trusted.example,email:me@x.org")
    made.make("odd", 'a "b" c', san=None)
    made.make("nameless", "/O=x", san="URI:spiffe://x/y")
    return made


class Audited:
    def __init__(self, make_server, pki, listed, **more):
        self.pki, self.port = pki, free_port()
        self.server = make_server(pki.options(tls_port=str(self.port),
                                              tls_auditlog_blocklist=listed, **more))
        self.clients = []

    def connect(self, name="client"):
        made = TlsConnection(("127.0.0.1", self.port), context(
            self.pki.cert("ca"), name and self.pki.cert(name), name and self.pki.key(name)))
        self.clients.append(made)
        return made

    def lines(self):
        """What was told: (certificate's name, user, command with its keys)."""
        return re.findall(r" \* Audit Log: (.*) at 127\.0\.0\.1:\d+ as (\S+): (.*)\n",
                          self.server.output())

    def told(self, *commands, name='"worker.example"', user="default"):
        wanted = [(name, user, c) for c in commands]
        eventually(lambda: len(self.lines()) >= len(wanted), "lines")
        assert self.lines() == wanted


@pytest.fixture
def audited(make_server, pki):
    made = []

    def start(listed="nobody", **more):
        made.append(Audited(make_server, pki, listed, **more))
        return made[-1]

    yield start
    for server in made:
        for client in server.clients:
            client.close()


def test_commands_and_their_keys(audited):
    tls = audited()
    c = tls.connect()
    c.ok("SET", "k", "secret")
    c.pipeline([["MGET", "a b", "b\n\xff"], ["CONFIG", "GET", "save"], ["NOSUCH", "x"], ["GET"],
                ["EVAL", "return 1", "1", "e", "secret"], ["AUTH", "secret"]])
    c.pipeline([["MULTI"], ["INCR", "n"], ["EXEC"], ["XREAD", "STREAMS", "s", "t", "0", "0"]])
    tls.told('set, keys: "k"', 'mget, keys: "a b" "b\\n\\xc3\\xbf"', "config|get", '"NOSUCH"', "get",
             'eval, keys: "e"', "auth", "multi", 'incr, keys: "n"', "exec",
             'xread, keys: "s" "t"')
    assert "secret" not in tls.server.output()


def test_who_is_listed_is_left_alone(audited):
    tls = audited(listed=["*.trusted.example", "nobody"])
    assert tls.connect("trusted").call("PING") == b"PONG"
    with tls.server.connect() as plain:
        plain.ok("SET", "plain", "x")
    assert tls.connect().call("PING") == b"PONG"
    tls.told("ping")


@pytest.mark.parametrize("listed,exempt", [("back*", True), ("me@x.org", True), ("backup.x", False),
                                           ("DB.trusted.example", True)])
def test_names_match_as_those_of_the_allowlist(audited, listed, exempt):
    tls = audited(listed=listed)
    assert tls.connect("trusted").call("PING") == b"PONG"
    assert tls.connect().call("PING") == b"PONG"
    eventually(lambda: len(tls.lines()) >= (1 if exempt else 2), "what is told")
    assert len([line for line in tls.lines() if line[0] == '"backup"']) == (0 if exempt else 1)


def test_whoever_has_no_name(audited):
    tls = audited(tls_auth_clients="optional")
    assert tls.connect(None).call("PING") == b"PONG"
    tls.told("ping", name="nobody")


def test_other_names(audited):
    tls = audited()
    assert tls.connect("odd").call("PING") == b"PONG"
    eventually(lambda: len(tls.lines()) == 1, "a line")
    assert tls.connect("nameless").call("PING") == b"PONG"
    eventually(lambda: len(tls.lines()) == 2, "two lines")
    assert [line[0] for line in tls.lines()] == ['"a \\"b\\" c"', '"spiffe://x/y"']


def test_what_is_refused_is_told_too(audited):
    tls = audited()
    with tls.server.connect() as admin:
        admin.ok("ACL", "SETUSER", "joe", "on", ">p", "~a:*", "+@all")
    c = tls.connect()
    c.ok("AUTH", "joe", "p")
    assert b"NOPERM" in c.error("GET", "b:1")
    eventually(lambda: len(tls.lines()) == 2, "two lines")
    assert tls.lines()[1][1:] == ("joe", 'get, keys: "b:1"')


def test_many_keys_are_counted(audited):
    tls = audited()
    c = tls.connect()
    c.call("MGET", *["k%d" % n for n in range(100)])
    c.call("MGET", "x" * 5000)
    eventually(lambda: len(tls.lines()) == 2, "lines")
    many, long = [line[2] for line in tls.lines()]
    assert many.startswith('mget, keys: "k0" "k1"') and many.endswith('"k15" and 84 more')
    assert long.endswith('xxx" (5000 bytes)') and len(long) < 200


def test_held_requests_are_told_once(audited):
    """A request that a pause holds back is looked at twice."""
    tls = audited()
    c = tls.connect()
    with tls.server.connect() as admin:
        admin.ok("CLIENT", "PAUSE", "60000", "WRITE")
        c.send("SET", "k", "v")
        eventually(lambda: any(b"cmd=set" in line for line in
                               admin.call("CLIENT", "LIST").split(b"\n")), "the request")
        admin.ok("CLIENT", "UNPAUSE")
    assert c.read() == b"OK"
    tls.told('set, keys: "k"')


def test_it_goes_on_and_off(audited):
    tls = audited(listed="")
    c = tls.connect()
    assert c.call("PING") == b"PONG"
    with tls.server.connect() as admin:
        assert admin.call("CONFIG", "GET", "tls-auditlog-blocklist")[1] == b""
        admin.ok("CONFIG", "SET", "tls-auditlog-blocklist", "a b*")
        assert admin.call("CONFIG", "GET", "tls-auditlog-blocklist")[1] == b"a b*"
        c.call("GET", "on")
        assert admin.error("CONFIG", "SET", "tls-auditlog-blocklist", '"" x')
        c.call("GET", "still on")
        admin.ok("CONFIG", "SET", "tls-auditlog-blocklist", "x worker.*")
        c.call("GET", "off")
        admin.ok("CONFIG", "SET", "tls-auditlog-blocklist", "x")
        c.call("GET", "on again")
        admin.ok("CONFIG", "SET", "tls-auditlog-blocklist", "")
        c.call("GET", "off again")
        # Refused as a whole: as before.
        assert admin.error("CONFIG", "SET", "tls-auditlog-blocklist", "x", "tls-ciphers", "foo")
        c.call("GET", "still off")
    tls.told('get, keys: "on"', 'get, keys: "still on"', 'get, keys: "on again"')


def test_plain_clients_never(make_server):
    server = make_server({"tls-auditlog-blocklist": "x"})
    with server.connect() as c:
        c.ok("SET", "a", "b")
    assert "Audit" not in server.output()
