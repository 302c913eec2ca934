"""tls-rotation: certificates that are replaced under a server are read anew by itself."""

import contextlib
import os
import shutil
import threading
import time

import pytest

from lib.bounds import eventually
from lib.server import free_port
from lib.tls import TlsConnection, context, make_pki

pytestmark = [pytest.mark.any_threads, pytest.mark.usefixtures("ours_only")]

ANEW = "TLS: the files have changed and were read anew"
IN_VAIN = "TLS: the files have changed and can't be used"
# What a look at the files takes at most on a quiet machine, and some more: to see that nothing
# happens. More looks only make the test stricter.
LOOKS_S = 3.5


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    made = make_pki(str(tmp_path_factory.mktemp("pki")))
    made.make("second")
    made.make("third")
    return made


def put_whole(source, target):
    """At no moment has the target a part of it."""
    shutil.copy(source, target + ".new")
    os.rename(target + ".new", target)


class Rotated:
    """A server whose certificate lies in files of its own."""

    def __init__(self, make_server, pki, directory, **more):
        self.pki, self.directory, self.port = pki, str(directory), free_port()
        self.cert, self.key, self.server = self.path("s.crt"), self.path("s.key"), None
        self.put("server")
        options = dict({"tls-rotation": "yes"}, **{k.replace("_", "-"): v for k, v in more.items()})
        self.server = make_server(pki.options(
            tls_port=str(self.port), tls_cert_file=self.cert, tls_key_file=self.key, **options))
        self.clients = []

    def path(self, name):
        return os.path.join(self.directory, name)

    def put(self, name):
        """As certificate managers do: each file whole, one after the other. The server, if it runs, does not look
        between the two: which lines it has logged would be up to that."""
        with self.server.standing_still() if self.server else contextlib.nullcontext():
            for source, target in ((self.pki.cert(name), self.cert), (self.pki.key(name), self.key)):
                put_whole(source, target)

    def connect(self, name="client"):
        made = TlsConnection(("127.0.0.1", self.port), context(
            self.pki.cert("ca"), self.pki.cert(name), self.pki.key(name)))
        self.clients.append(made)
        return made

    def subject(self):
        with TlsConnection(("127.0.0.1", self.port), context(
                self.pki.cert("ca"), self.pki.cert("client"), self.pki.key("client"))) as c:
            assert c.call("PING") == b"PONG"
            return dict(pair[0] for pair in c.sock.getpeercert()["subject"])["commonName"]

    def shows(self, name):
        eventually(lambda: self.subject() == name, "the certificate of " + name)

    def logged(self, text):
        return self.server.output().count(text)


@pytest.fixture
def rotated(make_server, pki, tmp_path):
    made = []

    def start(**more):
        made.append(Rotated(make_server, pki, tmp_path, **more))
        return made[-1]

    yield start
    for server in made:
        for client in server.clients:
            client.close()


def test_a_new_certificate_is_shown(rotated):
    """And whoever is connected stays, in the middle of work too."""
    tls = rotated()
    assert tls.subject() == "server"
    stop, failures, done = threading.Event(), [], [0]
    lasting = tls.connect()

    def work():
        try:
            while not stop.is_set():
                assert lasting.pipeline([["SET", "k", "x" * 5000], ["GET", "k"]])[1] == b"x" * 5000
                done[0] += 1
        except Exception as error:
            failures.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for name in ("second", "third", "server"):
            tls.put(name)
            tls.shows(name)
            before = done[0]
            eventually(lambda: failures or done[0] > before, "work")
    finally:
        stop.set()
        worker.join()
    assert not failures and tls.logged(ANEW) == 3 and tls.logged(IN_VAIN) == 0
    assert lasting.call("PING") == b"PONG"


def test_a_bad_file_changes_nothing_and_is_told_once(rotated):
    tls = rotated()
    with open(tls.path("none"), "w", encoding="utf-8") as out:
        out.write("no certificate\n")
    put_whole(tls.path("none"), tls.cert)
    eventually(lambda: tls.logged(IN_VAIN) == 1, "a line in the log")
    time.sleep(LOOKS_S)
    assert tls.logged(IN_VAIN) == 1 and tls.logged("Can't load the certificate") == 1
    assert tls.subject() == "server"
    os.remove(tls.cert)
    eventually(lambda: tls.logged(IN_VAIN) == 2, "another line in the log")
    assert tls.subject() == "server" and tls.logged(ANEW) == 0
    tls.put("second")
    tls.shows("second")
    # A certificate without its key.
    put_whole(tls.pki.cert("third"), tls.cert)
    eventually(lambda: tls.logged(IN_VAIN) == 3, "a third line in the log")
    assert tls.subject() == "second"
    put_whole(tls.pki.key("third"), tls.key)
    tls.shows("third")


def test_trust_is_rotated_too(rotated):
    tls = rotated()
    trusted = tls.path("trusted.crt")
    shutil.copy(tls.pki.cert("ca"), trusted)
    with tls.server.connect() as c:
        c.ok("CONFIG", "SET", "tls-ca-cert-file", trusted)
    stranger = context(tls.pki.cert("ca"), tls.pki.stranger.cert("client"),
                       tls.pki.stranger.key("client"))

    def lets_in():
        try:
            with TlsConnection(("127.0.0.1", tls.port), stranger) as c:
                return c.call("PING") == b"PONG"
        except Exception:
            return False

    assert not lets_in()
    with open(trusted, "ab") as out, open(tls.pki.stranger.cert("stranger"), "rb") as more:
        out.write(more.read())
    eventually(lets_in, "the new authority to be trusted")


def test_links(rotated, tmp_path):
    """A key of its own for links is looked at as well."""
    own = {name: str(tmp_path / name) for name in ("l.crt", "l.key")}
    tls = rotated()

    def put(name):
        shutil.copy(tls.pki.cert(name), own["l.crt"])
        shutil.copy(tls.pki.key(name), own["l.key"])

    put("client")
    with tls.server.connect() as c:
        c.ok("CONFIG", "SET", "tls-client-cert-file", own["l.crt"], "tls-client-key-file",
             own["l.key"])
    with open(own["l.key"], "w", encoding="utf-8") as out:
        out.write("no key\n")
    eventually(lambda: tls.logged("Can't load the private key " + own["l.key"]) == 1, "a line")
    put("second")
    eventually(lambda: tls.logged(ANEW) == 1, "another line")


def test_only_when_it_is_asked_for(rotated):
    tls = rotated(tls_rotation="no")
    tls.put("second")
    time.sleep(LOOKS_S)
    assert tls.subject() == "server"
    with tls.server.connect() as c:
        assert c.call("CONFIG", "GET", "tls-rotation") == [b"tls-rotation", b"no"]
        # What has changed before counts.
        c.ok("CONFIG", "SET", "tls-rotation", "yes")
        tls.shows("second")
        c.ok("CONFIG", "SET", "tls-rotation", "no")
        # By hand, as ever; and then there is nothing left to do.
        tls.put("third")
        c.ok("CONFIG", "SET", "tls-cert-file", tls.cert)
        assert tls.subject() == "third"
        c.ok("CONFIG", "SET", "tls-rotation", "yes")
        time.sleep(LOOKS_S)
    assert tls.logged(ANEW) == 1


def test_without_a_port_nothing_is_looked_at(make_server):
    server = make_server({"tls-rotation": "yes", "tls-cert-file": "/nonexistent"})
    time.sleep(LOOKS_S)
    assert "TLS" not in server.output()
