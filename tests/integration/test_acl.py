"""ACL: users, what they may do, and what becomes of clients whose user changes."""

import hashlib
import threading
import time

import pytest

from lib.bounds import eventually
from lib.resp import Closed, Error
from lib.seeds import generator, seeds
from lib.server import Server

WRONG = b"WRONGPASS invalid username-password pair or user is disabled."
KEY = b"NOPERM No permissions to access a key"
CHANNEL = b"NOPERM No permissions to access a channel"


def command(user, name):
    return b"NOPERM User %s has no permissions to run the '%s' command" % (user, name)


@pytest.fixture
def admin(server, client, ours_only):
    client.ok("ACL", "LOG", "RESET")
    yield client
    with server.connect() as c:
        for name in c.call("ACL", "USERS"):
            if name != b"default":
                c.call("ACL", "DELUSER", name)
        c.ok("ACL", "SETUSER", "default", "on", "nopass", "clearselectors", "+@all", "~*", "&*")


@pytest.fixture
def login(server, admin):
    clients = []

    def make(name, *rules):
        if rules:
            admin.ok("ACL", "SETUSER", name, *rules)
        c = server.connect()
        clients.append(c)
        c.ok("AUTH", name, "pw")
        return c

    yield make
    for c in clients:
        c.close()


def test_passwords(server, admin):
    admin.ok("ACL", "SETUSER", "joe", "on", ">one", ">two", "+@all")
    with server.connect() as c:
        for wrong in ("", "one ", "on", "onE", "three", "one\x00"):
            assert c.call("AUTH", "joe", wrong) == WRONG
        for right in ("one", "two"):
            c.ok("AUTH", "joe", right)
        assert c.call("ACL", "WHOAMI") == b"joe"
        admin.ok("ACL", "SETUSER", "joe", "<one")
        assert c.call("AUTH", "joe", "one") == WRONG
        admin.ok("ACL", "SETUSER", "joe", "#" + hashlib.sha256(b"four").hexdigest())
        c.ok("AUTH", "joe", "four")
        admin.ok("ACL", "SETUSER", "joe", "off")
        assert c.call("AUTH", "joe", "four") == WRONG
        assert c.call("PING") == b"PONG"
        admin.ok("ACL", "SETUSER", "joe", "on", "nopass")
        c.ok("AUTH", "joe", "whatever")
        admin.ok("ACL", "SETUSER", "joe", "resetpass")
        assert c.call("AUTH", "joe", "") == WRONG
        assert c.call("AUTH", "nobody", "x") == WRONG
        assert c.call("HELLO", "2", "AUTH", "joe", "x") == WRONG


def test_commands_and_subcommands(login, admin):
    c = login("joe", "on", "nopass", "~*", "+@read", "-get", "+client|id", "+select|0")
    assert c.call("GET", "k") == command(b"joe", b"get")
    assert c.call("SET", "k", "v") == command(b"joe", b"set")
    assert c.call("STRLEN", "k") == 0
    assert isinstance(c.call("CLIENT", "ID"), int)
    assert c.call("CLIENT", "LIST") == command(b"joe", b"client|list")
    assert c.call("SELECT", "1") == command(b"joe", b"select")
    c.ok("SELECT", "0")
    assert c.call("ACL", "WHOAMI") == command(b"joe", b"acl|whoami")
    admin.ok("ACL", "SETUSER", "joe", "+@all", "-@dangerous")
    assert c.call("ACL", "WHOAMI") == b"joe"
    assert c.call("FLUSHALL") == command(b"joe", b"flushall")
    c.ok("SET", "k", "v")


def test_keys(login, admin):
    c = login("joe", "on", "nopass", "+@all", "~own:*", "%R~r:*", "%W~w:*")
    c.ok("MSET", "own:1", "a", "own:2", "b")
    assert c.call("MSET", "own:1", "a", "other", "b") == KEY
    assert c.call("GET", "other") == KEY
    assert c.call("GET", "r:1") is None
    assert c.call("SET", "r:1", "x") == KEY
    c.ok("SET", "w:1", "x")
    assert c.call("GET", "w:1") == KEY
    assert c.call("SET", "w:1", "x", "GET") == KEY
    assert c.call("APPEND", "w:1", "y") == 2
    assert c.call("EXISTS", "w:1") == 1     # only its name is looked at
    assert c.call("COPY", "w:1", "own:3") == KEY
    assert c.call("COPY", "r:1", "own:3") == 0
    assert c.call("ZUNIONSTORE", "own:z", 2, "own:1z", "other") == KEY
    assert c.call("SORT", "own:l", "STORE", "other", "STORE", "own:x") == 0
    assert c.call("SORT", "own:l", "STORE", "own:x", "STORE", "other") == KEY
    assert c.call("XREADGROUP", "GROUP", "g", "STREAMS", "STREAMS", "other", ">") == KEY
    admin.ok("ACL", "SETUSER", "joe", "allkeys")
    c.ok("SET", "other", "x")


def test_selectors(login):
    c = login("joe", "on", "nopass", "+get", "~a*", "(+set", "~b*)", "(+@string %R~c*)")
    assert c.call("GET", "a") is None
    assert c.call("SET", "a", "1") == KEY
    c.ok("SET", "b", "1")
    assert c.call("GET", "b") == KEY
    assert c.call("MGET", "c1", "c2") == [None, None]
    assert c.call("MGET", "c1", "a") == KEY
    assert c.call("LLEN", "a") == command(b"joe", b"llen")


def test_sort_patterns_need_all_keys(login, admin):
    c = login("joe", "on", "nopass", "+@all", "~own*")
    c.call("RPUSH", "own", "2", "1")
    by = b"ERR BY option of SORT denied due to insufficient ACL permissions."
    get = b"ERR GET option of SORT denied due to insufficient ACL permissions."
    assert c.call("SORT", "own", "BY", "w*") == by
    assert c.call("SORT", "own", "GET", "w*") == get
    assert c.call("SORT_RO", "own", "GET", "#") == get
    assert c.call("SORT", "own", "BY", "nosort") == [b"2", b"1"]
    admin.ok("ACL", "SETUSER", "joe", "%W~*")
    assert c.call("SORT", "own", "BY", "w*") == by
    admin.ok("ACL", "SETUSER", "joe", "%R~*")
    assert c.call("SORT", "own", "BY", "w*", "GET", "#") == [b"1", b"2"]


def test_channels(login, admin):
    c = login("joe", "on", "nopass", "+@all", "~*", "&news.*")
    assert c.call("PUBLISH", "news.1", "x") == 0
    assert c.call("PUBLISH", "other", "x") == CHANNEL
    assert c.call("SPUBLISH", "other", "x") == CHANNEL
    assert c.call("SUBSCRIBE", "news.1", "other") == CHANNEL
    assert c.call("SSUBSCRIBE", "other") == CHANNEL
    assert c.call("PSUBSCRIBE", "news.1*") == CHANNEL     # not one of the user's patterns
    assert c.call("PSUBSCRIBE", "news.*") == [b"psubscribe", b"news.*", 1]


def test_listeners_are_closed_when_they_may_hear_less(login, admin):
    hears = login("joe", "on", "nopass", "+@all", "&a", "&b*")
    hears.call("SUBSCRIBE", "a")
    quiet = login("joe")
    admin.ok("ACL", "SETUSER", "joe", "&c")
    admin.ok("ACL", "SETUSER", "joe", "resetchannels", "&a")
    assert hears.call("PING") == [b"pong", b""]
    admin.ok("ACL", "SETUSER", "joe", "resetchannels", "&b*")
    eventually(hears.is_closed, "the client is closed")
    assert quiet.call("PING") == b"PONG"


def test_deleted_users_clients_are_closed(login, admin):
    first, second = login("joe", "on", "nopass", "+@all", "~*"), login("joe")
    waits = login("joe")
    waits.send("BLPOP", "list", "0")
    assert admin.call("ACL", "DELUSER", "joe", "nobody") == 1
    for c in (first, second, waits):
        eventually(c.is_closed, "the client is closed")
    assert admin.call("ACL", "DELUSER", "joe") == 0
    assert admin.error("ACL", "DELUSER", "default") == b"ERR The 'default' user cannot be removed"


def test_who_deletes_itself_gets_the_reply(login):
    c = login("joe", "on", "nopass", "+@all")
    assert c.call("ACL", "DELUSER", "joe") == 1
    eventually(c.is_closed, "the client is closed")


def test_rights_are_checked_again_at_exec(login, admin):
    c = login("joe", "on", "nopass", "+@all", "~*", "&*")
    for words, revoke, reason in [
            (("GET", "k"), "-get", b"no permission to execute the command or subcommand"),
            (("STRLEN", "k"), "resetkeys", b"no permission to touch the specified keys"),
            (("PUBLISH", "x", "y"), "resetchannels",
             b"no permission to access one of the channels used as arguments to the command")]:
        c.ok("MULTI")
        assert c.call(*words) == b"QUEUED"
        assert c.call("PING") == b"QUEUED"
        admin.ok("ACL", "SETUSER", "joe", revoke)
        reply = c.call("EXEC")
        assert reply == [b"NOPERM ACLs rules changed between the moment the transaction was "
                         b"accumulated and the EXEC call. This command is no longer allowed for "
                         b"the following reason: " + reason, b"PONG"]
        assert isinstance(reply[0], Error)
    contexts = [entry[5] for entry in admin.call("ACL", "LOG")]
    assert contexts == [b"multi"] * 3


def test_a_denied_command_spoils_the_transaction(login):
    c = login("joe", "on", "nopass", "+multi", "+exec", "+ping")
    c.ok("MULTI")
    assert c.call("GET", "x") == command(b"joe", b"get")
    assert c.call("EXEC") == b"EXECABORT Transaction discarded because of previous errors."


def test_rights_are_checked_again_when_the_waiting_ends(login, admin):
    c = login("joe", "on", "nopass", "+@all", "~*")
    c.send("BLPOP", "list", "0")
    eventually(lambda: b"cmd=blpop" in admin.call("CLIENT", "LIST"), "it waits")
    admin.ok("ACL", "SETUSER", "joe", "resetkeys")
    admin.call("RPUSH", "list", "x")
    assert c.read() == KEY
    assert admin.call("LLEN", "list") == 1


def test_in_one_pipeline_rules_hold_at_once(login):
    c = login("joe", "on", "nopass", "+@all", "~*")
    replies = c.pipeline([("SET", "k", "v"), ("ACL", "SETUSER", "joe", "-get"), ("GET", "k"),
                          ("ACL", "SETUSER", "joe", "+get"), ("GET", "k")])
    assert replies == [b"OK", b"OK", command(b"joe", b"get"), b"OK", b"v"]


def test_log(login, admin):
    c = login("joe", "on", "nopass", "+@read", "~a", "+publish", "+multi")
    c.call("AUTH", "joe2", "x")
    for _ in range(3):
        c.call("SET", "a", "1")
    c.call("GET", "b")
    c.call("PUBLISH", "ch", "x")
    c.call("MULTI")
    c.call("SET", "a", "1")
    entries = [dict(zip(e[0::2], e[1::2])) for e in admin.call("ACL", "LOG")]
    assert [(e[b"reason"], e[b"context"], e[b"object"], e[b"username"], e[b"count"])
            for e in entries] == [
        (b"command", b"multi", b"set", b"joe", 1), (b"channel", b"toplevel", b"ch", b"joe", 1),
        (b"key", b"toplevel", b"b", b"joe", 1), (b"command", b"toplevel", b"set", b"joe", 3),
        (b"auth", b"toplevel", b"AUTH", b"joe2", 1)]
    assert [e[b"entry-id"] for e in entries] == sorted((e[b"entry-id"] for e in entries),
                                                       reverse=True)
    assert b"user=joe" in entries[0][b"client-info"] and b"\n" not in entries[0][b"client-info"]
    for e in entries:
        assert e[b"timestamp-created"] <= e[b"timestamp-last-updated"] <= time.time() * 1000 + 1000
    assert len(admin.call("ACL", "LOG", "2")) == 2
    stats = admin.call("INFO", "stats")
    for field in (b"auth:", b"cmd:", b"key:", b"channel:"):
        assert b"acl_access_denied_" + field + b"0\r" not in stats
    admin.ok("ACL", "LOG", "RESET")
    assert admin.call("ACL", "LOG") == []


def test_log_has_a_bound(login, admin):
    c = login("joe", "on", "nopass", "+@all", "~a")
    admin.ok("CONFIG", "SET", "acllog-max-len", "5")
    for i in range(30):
        c.call("GET", "k%d" % i)
    assert [e[7] for e in admin.call("ACL", "LOG", "100")] == [b"k%d" % i for i in range(29, 24, -1)]
    admin.ok("CONFIG", "SET", "acllog-max-len", "0")
    c.call("GET", "none")
    assert all(e[7] != b"none" for e in admin.call("ACL", "LOG", "100"))


def test_client_list_and_kill_by_user(login, admin):
    c = login("joe", "on", "nopass", "+@all")
    assert b"user=joe" in c.call("CLIENT", "INFO")
    assert admin.error("CLIENT", "KILL", "USER", "jane") == b"ERR No such user 'jane'"
    assert admin.call("CLIENT", "KILL", "USER", "joe") == 1
    eventually(c.is_closed, "the client is closed")
    assert admin.call("PING") == b"PONG"


def test_requirepass_is_the_default_users(server, admin):
    admin.ok("CONFIG", "SET", "requirepass", "first")
    with server.connect() as c:
        assert c.call("GET", "k") == b"NOAUTH Authentication required."
        c.ok("AUTH", "first")
        hashed = hashlib.sha256(b"first").hexdigest().encode()
        assert admin.call("ACL", "GETUSER", "default")[3] == [hashed]
    admin.ok("ACL", "SETUSER", "default", ">second")
    with server.connect() as c:
        c.ok("AUTH", "first")
        c.ok("AUTH", "second")
    admin.ok("CONFIG", "SET", "requirepass", "third")
    with server.connect() as c:
        assert c.call("AUTH", "first") == WRONG
        c.ok("AUTH", "default", "third")
    admin.ok("ACL", "SETUSER", "default", "off")
    with server.connect() as c:
        assert c.call("AUTH", "third") == WRONG
        assert c.call("PING") == b"NOAUTH Authentication required."
    admin.ok("CONFIG", "SET", "requirepass", "")
    with server.connect() as c:
        assert c.call("PING") == b"NOAUTH Authentication required."
    admin.ok("ACL", "SETUSER", "default", "on")


def test_genpass(client, ours_only):
    seen = {client.call("ACL", "GENPASS") for _ in range(50)}
    assert len(seen) == 50 and all(len(p) == 64 for p in seen)
    assert [len(client.call("ACL", "GENPASS", n)) for n in (1, 4, 5, 128, 4096)] == \
        [1, 1, 2, 32, 1024]


# -- files

RULES = ["user a on nopass ~* resetchannels -@all +@read -get +config|get (%R~x resetchannels -@all +set)",
         "user b off skip-sanitize-payload #" + "ab" * 32 + " ~k &c +@all -@admin +select|0",
         "user default on nopass ~* &* +@all", "user w\"'\x01\\ on %W~q\"'y resetchannels -@all"]
NORMAL = [r.replace(" ~k &c", " ~k resetchannels &c").replace(" on nopass", " on nopass sanitize-payload")
          .replace(" on %W", " on sanitize-payload %W") for r in RULES]


def listed(c):
    return [line.decode("latin-1") for line in c.call("ACL", "LIST")]


def with_file(make_server, tmp_path, text):
    path = tmp_path / "users.acl"
    path.write_bytes(text.encode("latin-1"))
    return make_server(options={"aclfile": str(path)}), path


def test_file_round_trip(make_server, tmp_path, ours_only):
    server, path = with_file(make_server, tmp_path, "\n".join(RULES) + "\n")
    with server.connect() as c:
        assert listed(c) == NORMAL
        c.ok("ACL", "SAVE")
        assert path.read_bytes().decode("latin-1").splitlines() == NORMAL
        c.ok("ACL", "LOAD")
        assert listed(c) == NORMAL
        c.ok("ACL", "SETUSER", "c", "on", "(+get ~(x)")
        before = listed(c)
        c.ok("ACL", "SAVE")
        assert c.call("ACL", "DELUSER", "c") == 1
        c.ok("ACL", "LOAD")
        assert listed(c) == before
    assert [p.name for p in tmp_path.iterdir()] == ["users.acl"]


BAD_FILES = [
    ("user", "1 should start with user keyword followed by the username. "),
    ("usr a on", "1 should start with user keyword followed by the username. "),
    ("user a on\nuser a on", "WARNING: Duplicate user 'a' found on line 2. "),
    ("user a foo +@x", "1: Syntax error. {path}:1: Error in applying operation '+@x': Unknown "
     "command or category name in ACL. "),
    ("user a on (x", "1: Unmatched parentheses in selector definition. "),
    ("user a\tb on", "'{path}:1: username 'a\tb' contains invalid characters. "),
    ("user a %R", "1: Syntax error. "), ("user a %~x", "1: Syntax error. "),
    ("user a (", "1: Unmatched parentheses in selector definition. "),
    ("user a (on)", "1: Syntax error. "), ("user a #12", "1: The password hash must be "),
]


def test_bad_files_change_nothing(make_server, tmp_path, ours_only):
    server, path = with_file(make_server, tmp_path, RULES[0] + "\n")
    with server.connect() as c:
        before = listed(c)
        for text, error in BAD_FILES:
            path.write_text(text)
            reply = c.error("ACL", "LOAD").decode()
            assert error.format(path=path) in reply, text
            assert reply.endswith("WARNING: ACL errors detected, no change to the previously "
                                  "active ACL rules was performed")
            assert listed(c) == before
        path.unlink()
        assert b"opening file" in c.error("ACL", "LOAD")
        assert listed(c) == before


@pytest.mark.any_threads
def test_a_bad_file_stops_the_start(make_server, tmp_path, ours_only):
    path = tmp_path / "users.acl"
    path.write_text("user a +nope\n")
    for options, config in (({"aclfile": str(path)}, None),
                            ({"aclfile": str(path)}, "user a on\n"), ({}, "user a +nope\n"),
                            ({}, "user a on\nuser a off\n")):
        failing = Server(options=options, config=config)
        try:
            failing.start_fails()
        finally:
            failing.remove()


def test_load_closes_whom_it_must(make_server, tmp_path, ours_only):
    server, path = with_file(make_server, tmp_path,
                             "".join("user %s on nopass +@all ~* &*\n" % u for u in "abdef"))
    users = "abdef"
    clients = {u: server.connect() for u in users}
    with server.connect() as c, server.connect() as hears:
        for user, client in clients.items():
            client.ok("AUTH", user, "x")
        hears.ok("AUTH", "a", "x")
        hears.call("SUBSCRIBE", "ch")
        # Fewer keys, gone, as before, another password, as before in other words.
        path.write_text("user default on nopass ~* &* +@all -config\nuser a on nopass +@all\n"
                        "user d on nopass +@all ~* &*\nuser e on >x +@all ~* &*\n"
                        "user f on nopass allchannels allkeys allcommands\n")
        c.ok("ACL", "LOAD")
        for closed in clients["a"], clients["b"], clients["e"], hears:
            eventually(closed.is_closed, "the client is closed")
        for kept in clients["d"], clients["f"], c:
            assert kept.call("PING") == b"PONG"
        assert clients["d"].call("ACL", "WHOAMI") == b"d"
        assert c.error("CONFIG", "GET", "*").startswith(b"NOPERM")
        # The caller gets its reply before it goes.
        path.write_text("user d on nopass +@all ~* &*\nuser f on nopass +@all ~a*\n")
        clients["f"].ok("ACL", "LOAD")
        eventually(clients["f"].is_closed, "the client is closed")
        assert clients["d"].call("PING") == b"PONG"
    clients["d"].close()


def test_killed_while_saving(make_server, tmp_path, ours_only):
    """Whenever the server dies, the file is that of one of the saves."""
    for round_number in range(6):
        server, path = with_file(make_server, tmp_path, "user default on nopass ~* &* +@all\n")
        done = threading.Event()

        def save_on(server=server, done=done):
            try:
                with server.connect() as c:
                    for i in range(100000):
                        c.ok("ACL", "SETUSER", "u%d" % (i % 40), "on", "~" + "k" * 200)
                        c.ok("ACL", "SAVE")
                        done.set()
            except (OSError, Closed):
                pass

        thread = threading.Thread(target=save_on)
        thread.start()
        eventually(done.is_set, "a save", 20)
        time.sleep(0.01 * round_number)
        server.process.kill()
        server.wait_exit()
        thread.join()
        text = path.read_text()
        assert text.endswith("\n") and "user default on nopass sanitize-payload ~* &* +@all\n" in text
        again = make_server(options={"aclfile": str(path)})
        with again.connect() as c:
            assert "".join(line + "\n" for line in listed(c)) == text
        for left in tmp_path.iterdir():
            left.unlink()


def test_lines_of_keydb_conf(make_server, ours_only):
    server = make_server(config="# comment\nuser joe on >secret ~a* +get (+set ~b)\nuser default on "
                                "nopass ~* &* +@all\nmaxclients 100\n")
    with server.connect() as c:
        before = listed(c)
        assert len(before) == 2
        c.ok("CONFIG", "REWRITE")
        with open(server.file("server.conf"), encoding="latin-1") as file:
            assert "user joe on >secret ~a* +get (+set ~b)\n" in file.read()
        c.ok("ACL", "SETUSER", "q\"'\x01", "on", "~\"x'\x01")
        c.ok("ACL", "SETUSER", "joe", "+del")
        before = listed(c)
        c.ok("CONFIG", "REWRITE")
        c.ok("CONFIG", "REWRITE")
        assert c.error("CONFIG", "SET", "user", "x on").startswith(b"ERR")
        assert c.error("ACL", "SAVE").startswith(b"ERR This Redis instance is not configured")
    with open(server.file("server.conf"), encoding="latin-1") as file:
        text = file.read()
    assert text.count("\nuser ") == 2 and "secret" not in text and "# comment" in text
    again = make_server(config=text)
    with again.connect() as c:
        assert listed(c) == before
        c.call("ACL", "DELUSER", "joe")
        c.ok("CONFIG", "REWRITE")
        with open(again.file("server.conf"), encoding="latin-1") as file:
            assert "user joe" not in file.read()


PIECES = ["(", ")", "~", "%", "&", "+", "-", "@", "|", "R", "W", "*", "a", "get", "config", "all", " ",
          "\t", "\x00", "\n", "\r", "\"", "'", "\\", "#", "user", "on", "[", "]", "\xff", "<", ">", "!", "reset"]
WHOLE = ["on", "off", "nopass", ">p", "~k*", "%R~r", "&c", "+get", "+config|get", "-@all", "+@read",
         "(+get", "~x)", "(", ")", "()", "(+set ~q)", "allkeys", "resetkeys", "+select|0", "clearselectors"]

# Names and patterns that a line has to spell with care: the one without a byte, quotes, what begins a rule.
ODD = ["", 'q"uote', "a'b", "back\\slash", "#hash", "~t", ">p", '"', "''", "\xff", "on"]


@pytest.mark.parametrize("where", ["aclfile", "keydb.conf"])
def test_odd_names_and_patterns_are_written_as_they_are(make_server, tmp_path, where):
    path = tmp_path / "users.acl"
    path.write_text("user default on nopass ~* &* +@all\n")
    server = make_server(config="# mine\n" + ("aclfile %s\n" % path if where == "aclfile" else ""))
    with server.connect() as c:
        for number, name in enumerate(ODD):
            c.ok("ACL", "SETUSER", name, "off" if number % 2 else "on", ">p", "~k%d" % number)
            c.ok("ACL", "SETUSER", "rule%d" % number, "on", "~" + name, "&" + name, "(+get %R~x" + name + ")")
        wanted = sorted(c.call("ACL", "LIST"))
        c.ok(*(["ACL", "SAVE"] if where == "aclfile" else ["CONFIG", "REWRITE"]))
        if where == "aclfile":
            c.ok("ACL", "LOAD")
            assert sorted(c.call("ACL", "LIST")) == wanted
    server.stop()
    with open(server.file("server.conf"), encoding="utf-8", errors="surrogateescape") as file:
        server.config = file.read()
    server.start()
    with server.connect() as c:
        assert sorted(c.call("ACL", "LIST")) == wanted



@pytest.mark.parametrize("seed", seeds(4))
def test_what_is_saved_is_what_is_loaded(make_server, tmp_path, ours_only, seed):
    """Rules of any bytes: each is refused whole or taken, and a file says exactly what there is."""
    random = generator(seed, "acl file", 0)
    server, _ = with_file(make_server, tmp_path, "user default on nopass ~* &* +@all\n")
    taken = 0

    def word(pieces):
        return "".join(random.choice(pieces) for _ in range(random.randrange(7)))

    with server.connect() as c:
        for _ in range(400):
            name = word(PIECES) if random.random() < 0.2 else random.choice("abc")
            rules = [random.choice(WHOLE) if random.random() < 0.6 else word(PIECES)
                     for _ in range(random.randrange(5))]
            before = listed(c)
            words = [w.encode("latin-1") for w in ["ACL", "SETUSER", name] + rules]
            reply = c.call(*words)
            if name == "default":
                continue
            if isinstance(reply, Error):
                assert listed(c) == before
                continue
            taken += 1
            before = listed(c)
            c.ok("ACL", "SAVE")
            c.ok("ACL", "LOAD")
            assert listed(c) == before, words
    assert taken > 50


# -- many at once

def test_users_change_while_others_run(server, admin):
    """Rules, deletions and clients of all kinds on all threads; ThreadSanitizer looks on."""
    stop = threading.Event()
    faults = []

    def run(number):
        try:
            while not stop.is_set():
                with server.connect() as c:
                    try:
                        c.call("AUTH", "u%d" % (number % 3), "pw")
                        for i in range(30):
                            replies = c.pipeline([("SET", "k%d" % i, "v"), ("GET", "k%d" % i),
                                                  ("MULTI",), ("INCR", "n"), ("EXEC",),
                                                  ("PUBLISH", "ch", "x"), ("ACL", "WHOAMI")])
                            assert replies[6] in (b"u%d" % (number % 3), b"default") \
                                or isinstance(replies[6], Error)
                        c.send("BLPOP", "nolist", "0.01")
                        c.read()
                        c.send("SUBSCRIBE", "ch")
                        c.read()
                    except (OSError, Closed):
                        pass
        except Exception as e:  # pylint: disable=broad-except
            faults.append(repr(e))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(6)]
    for t in threads:
        t.start()
    for i in range(150):
        name = "u%d" % (i % 3)
        admin.ok("ACL", "SETUSER", name, "reset", "on", "nopass", "+@all", "~*", "&*")
        admin.ok("ACL", "SETUSER", name, "-get", "resetkeys", "~k1*", "resetchannels")
        admin.call("ACL", "LOG")
        admin.call("ACL", "LIST")
        if i % 5 == 0:
            admin.call("ACL", "DELUSER", name)
            admin.call("ACL", "LOG", "RESET")
    stop.set()
    for t in threads:
        t.join()
    assert faults == []
    assert admin.call("PING") == b"PONG"
