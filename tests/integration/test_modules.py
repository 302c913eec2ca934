"""Modules: loading and unloading, what their commands tell the logs and other clients, several threads."""

import os
import shutil
import threading

import pytest

from lib.active import check_equal, check_quiet, digest, follow, make_node, together
from lib.bounds import eventually
from lib.modules import in_threads, path_of
from lib.replication import everything
from lib.resp import Error
from lib.server import free_port

__all__ = ["make_node"]  # fixtures


@pytest.fixture
def with_example(make_server):
    """with_example(options={...}, files=(...)): a server with the module `example`."""

    def make(options=None, **more):
        return make_server({"loadmodule": [path_of("example")], "enable-module-command": "yes", **(options or {})},
                           **more)

    return make


# ---- loading

def test_a_module_that_cannot_be_loaded_stops_the_start(make_server):
    for words, why in ((["/nonexistent.so"], "cannot open shared object file"),
                       ([path_of("example"), "fail"], "its OnLoad refused"),
                       ([__file__], "execute" if not os.access(__file__, os.X_OK) else "invalid ELF")):
        server = make_server({"loadmodule": words}, start=False)
        text = server.start_fails()
        assert why in text and words[0] in text, text
        server.stop()


def test_a_library_that_is_no_module(make_server):
    library = next(path for path in ("/lib/x86_64-linux-gnu/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6",
                                     "/lib64/libm.so.6") if os.path.exists(path))
    server = make_server({"enable-module-command": "yes"})
    copy = server.file("plain.so")
    shutil.copy(library, copy)
    os.chmod(copy, 0o755)
    with server.connect() as c:
        assert b"no RedisModule_OnLoad" in c.error("MODULE", "LOAD", copy)
        assert c.call("MODULE", "LIST") == []
    os.unlink(copy)


REFUSED = b"ERR Error loading the extension. Please check the server logs."


@pytest.mark.parametrize("words, why", [
    (["example"], "a module of the name 'example' is there already"),
    (["taken", "command", "GET"], "the command 'GET' is there already"),
    (["taken", "command", "ex.set"], "the command 'ex.set' is there already"),
    (["taken", "command", "two words"], "the command 'two words' cannot be: its name, flags or keys"),
    (["taken", "subcommand", "one"], "the command 'one' is there already"),
    (["taken", "type", "testboxes"], "the type of values 'testboxes' is there already"),
    (["taken", "type", "short"], "the type of values 'short' cannot be: its name, encver or methods"),
    (["taken", "option", "flag"], "the option 'taken.flag' is there already"),
    (["taken", "function", "shares.twice"], "the shared function 'shares.twice' is there already"),
    (["taken", "category", "string"], "the ACL category 'string' is there already"),
])
def test_what_was_taken_is_told(with_example, words, why):
    server = with_example()
    with server.connect() as c:
        c.ok("MODULE", "LOAD", path_of("types"))
        c.ok("MODULE", "LOAD", path_of("shares"), "gives")
        modules = c.call("MODULE", "LIST")
        error = c.error("MODULE", "LOAD", path_of("taken"), *words)
        told = "its OnLoad refused, after it was told that " + why
        assert error.startswith(REFUSED) and told.encode() in error and told in server.output()
        assert c.call("MODULE", "LIST") == modules
        c.ok("MODULE", "LOAD", path_of("taken"), "taken", "command", "unheardof")


def test_the_whole_interface_is_there(make_server):
    """A name that is none leaves the module's variable NULL, and the log tells whoever wants to know."""
    server = make_server({"loadmodule": path_of("needs"), "loglevel": "verbose"})
    with server.connect() as c:
        assert c.call("NEEDS.LACKS") == []
        assert c.call("NEEDS.HAS", "RedisModule_Alloc") == 1
        for name in ("RedisModule_NoSuch", "Alloc", "RedisModule_", ""):
            assert c.call("NEEDS.HAS", name) == 0
    assert "A module asks for RedisModule_OfAnotherDay" in server.output()


def test_who_may_load(make_server):
    server = make_server()
    with server.connect() as c:
        for words in (("LOAD", path_of("example")), ("LOADEX", path_of("example")), ("UNLOAD", "example")):
            assert b"MODULE command not allowed" in c.error("MODULE", *words)
        assert c.call("MODULE", "LIST") == []
        assert c.call("CONFIG", "GET", "enable-module-command") == [b"enable-module-command", b"no"]


def test_a_failed_load_leaves_nothing(make_server):
    server = make_server({"enable-module-command": "yes"})
    with server.connect() as c:
        for more in (b"\0", b"\0.so", b"\0/none"):
            for word in ("LOAD", "LOADEX"):
                assert b"NUL byte" in c.error("MODULE", word, path_of("example").encode() + more)
        assert b"NUL byte" in c.error("MODULE", "LOAD", b"\0")
        before = c.call("COMMAND", "COUNT")
        for _ in range(3):
            assert b"its OnLoad refused" in c.error("MODULE", "LOAD", path_of("example"), "fail")
        assert c.call("COMMAND", "COUNT") == before
        assert c.call("MODULE", "LIST") == []
        c.ok("MODULE", "LOAD", path_of("example"))
        assert b"its OnLoad refused" in c.error("MODULE", "LOAD", path_of("example"))
        assert c.call("EX.REPLY", "integer") == -42
        assert b"module:name=example,ver=3,api=1" in c.call("INFO", "modules")
        assert b"module:name=example" in c.call("INFO", "everything")
        c.hello(3)
        hello = c.call("HELLO", "3").as_dict()
        assert hello[b"modules"][0].as_dict()[b"name"] == b"example"


def test_rewrite(make_server):
    server = make_server({"enable-module-command": "yes"}, config="loadmodule %s one 'two words'\n" % path_of("example"),
                         files=["server.conf"])
    with server.connect() as c:
        c.ok("CONFIG", "REWRITE")
        assert server.read("server.conf").count("loadmodule") == 1
        c.ok("MODULE", "UNLOAD", "example")
        c.ok("CONFIG", "REWRITE")
        assert "loadmodule" not in server.read("server.conf")
        c.ok("MODULE", "LOAD", path_of("example"), "with blanks", "")
        c.ok("CONFIG", "REWRITE")
        assert "loadmodule %s \"with blanks\" \"\"" % path_of("example") in server.read("server.conf")
    server.config = server.read("server.conf")
    server.stop()
    server.start()
    with server.connect() as c:
        assert c.call("MODULE", "LIST")[0][-1] == [b"with blanks", b""]


def test_commands_that_are_gone(with_example):
    """Who has a command in its memory, or queued, is told that it is unknown."""
    server = with_example()
    with server.connect() as admin, server.connect() as other, server.connect() as queue:
        assert other.call("EX.REPLY", "integer") == -42
        queue.ok("MULTI")
        assert queue.call("EX.REPLY", "integer") == b"QUEUED"
        assert queue.call("EX.BOX", "get", "k") == b"QUEUED"
        admin.ok("MODULE", "UNLOAD", "example")
        unknown = b"ERR unknown command 'EX.REPLY', with args beginning with: 'integer' "
        assert other.error("EX.REPLY", "integer") == unknown
        replies = queue.call("EXEC")
        assert replies[0] == unknown and isinstance(replies[1], Error)
        admin.ok("MODULE", "LOAD", path_of("example"))
        assert other.call("EX.REPLY", "integer") == -42
        assert b"cmdstat_ex.reply" in admin.call("INFO", "commandstats")


def test_rights_follow_commands(with_example):
    """What rules say of commands and categories holds for those that come later."""
    server = with_example()
    with server.connect() as c, server.connect() as user:
        c.ok("ACL", "SETUSER", "u", "on", "nopass", "~*", "+@all", "-ex.set")
        c.ok("MODULE", "UNLOAD", "example")
        assert b"-ex.set" in c.call("ACL", "GETUSER", "u")[5]
        c.ok("MODULE", "LOAD", path_of("example"))
        user.ok("AUTH", "u", "x")
        assert user.call("EX.GET", "k") is None
        assert user.error("EX.SET", "k", "v").startswith(b"NOPERM")


@pytest.mark.parametrize("where", ("aclfile", "keydb.conf"))
def test_users_of_files_may_name_commands_of_modules(make_server, tmp_path, where, ours_only):
    users = "user u on nopass ~* &* -@all +ex.set +ex.box|get (+ex.get ~k) -get\n"
    config = "loadmodule %s\n" % path_of("example")
    if where == "aclfile":
        (tmp_path / "users.acl").write_text(users)
        config += "aclfile %s\n" % (tmp_path / "users.acl")
    else:
        config = users + config
    server = make_server(config=config)
    with server.connect() as c, server.connect() as user:
        user.ok("AUTH", "u", "x")
        user.ok("EX.SET", "k", "v")
        assert user.call("EX.GET", "k") == b"v"
        assert user.error("EX.GET", "other").startswith(b"NOPERM")
        assert user.error("EX.DEL", "k").startswith(b"NOPERM")
        assert user.call("EX.BOX", "get", "k") == [b"EX.BOX", b"get", b"k"]
        assert b"+ex.set" in c.call("ACL", "GETUSER", "u")[5]
    failing = make_server(config=config.replace("loadmodule", "#"), start=False)
    assert "+ex.set" in failing.start_fails() or "ex.set" in failing.output()


# ---- what commands do

def test_what_logs_are_told(with_example):
    server = with_example({"appendonly": "yes"}, files=["appendonlydir"])
    with server.connect() as c:
        c.ok("EX.SET", "k", "v")
        c.call("EX.CALL", "forward", "-", "SET", "untold", "v")
        c.call("EX.TELL", "1")
        c.call("EX.TELL", "3")
        c.call("EX.CALL", "forward", "!", "SET", "told", "v")
        c.call("EX.CALL", "forward", "!A", "SET", "not in the file", "v")
        log = server.file("appendonlydir")

        def text():
            return b"".join(open(os.path.join(log, name), "rb").read() for name in sorted(os.listdir(log)) if name.endswith(".aof"))

        eventually(lambda: b"\r\ntold\r\n$1\r\nv\r\n" in text(), "the log is written")
        words = [word for word in text().split(b"\r\n") if word and word[0] not in b"*$"]
        told = words[words.index(b"EX.SET"):]  # verbatim
        incr = [[b"INCRBY", b"ex:told", b"%d" % n] for n in (1, 2, 3)]
        assert [told[:3]] == [[told[0], b"k", b"v"]]
        rest = [incr[0], [b"MULTI"], *incr, [b"EXEC"], [b"SET", b"told", b"v"]]
        assert told[3:] == [word for command in rest for word in command]
        c.ok("DEBUG", "LOADAOF")
        assert c.call("MGET", "k", "told", "untold", "ex:told") == [b"v", b"v", None, b"7"]


def test_replicas_are_told(with_example):
    server = with_example({"repl-diskless-sync-delay": "0"})
    replica = with_example({"replicaof": "127.0.0.1 %d" % server.port}, files=["dump.rdb"])
    with server.connect() as c, replica.connect() as r:
        eventually(lambda: b"master_link_status:up" in r.call("INFO", "replication"), "the link")
        c.ok("EX.SET", "k", "v")
        c.call("EX.FILL", "f", 5, "x")
        c.call("EX.CALL", "forward", "!R", "SET", "kept back", "v")
        c.call("EX.TELL", "3")
        eventually(lambda: r.call("GET", "ex:told") == b"6", "the replica has it")
        assert r.call("MGET", "k", "f", "kept back") == [b"v", b"xxxxx", None]
        assert r.error("EX.SET", "k", "w").startswith(b"READONLY")


def test_who_looks_at_keys_is_told(with_example):
    """WATCH, client-side caching, and who waits for a key."""
    server = with_example()
    with server.connect() as c, server.connect() as watching, server.connect(3) as tracking, \
            server.connect() as waiting:
        watching.ok("WATCH", "k")
        tracking.ok("CLIENT", "TRACKING", "ON")
        tracking.call("GET", "k")
        waiting.send("BLPOP", "ex:parts", "0")
        eventually(lambda: b"blocked_clients:1" in c.call("INFO", "clients"), "it waits")
        c.ok("EX.SET", "k", "v")
        watching.ok("MULTI")
        watching.call("GET", "k")
        assert watching.call("EXEC") is None
        assert tracking.read_frame()[1] == [b"invalidate", [b"k"]]
        c.call("EX.PARTS")
        assert waiting.read() == [b"ex:parts", b"c"]


def test_calls_that_stop_the_world(with_example):
    """At first between two holds, from then on in the world from the start."""
    server = with_example()
    with server.connect() as c:
        for length in ("77", "78"):
            c.ok("EX.CALL", "forward", "-", "CONFIG", "SET", "slowlog-max-len", length)
            assert c.call("CONFIG", "GET", "slowlog-max-len")[1] == length.encode()
        c.ok("MULTI")
        c.call("EX.CALL", "forward", "!", "SET", "k", "v")
        c.call("EX.CALL", "forward", "-", "CONFIG", "SET", "slowlog-max-len", "79")
        c.call("EX.CALL", "forward", "!", "APPEND", "k", "w")
        assert c.call("EXEC") == [b"OK", b"OK", 2]
        assert c.call("EX.CALL", "forward", "E", "SUBSCRIBE", "ch").startswith(b"ERR modules cannot call")
        assert c.call("EX.CALL", "forward", "-", "MULTI") == b"ENOTSUP"
        assert c.call("EX.CALL", "forward", "-", "MODULE", "UNLOAD", "example").endswith(b"the module is running")
        c.ok("MODULE", "UNLOAD", "example")


def in_transaction(c, *words):
    c.ok("MULTI")
    c.call("SET", "k", "v")
    c.call(*words)
    c.call("APPEND", "k", "w")
    replies = c.call("EXEC")
    assert [replies[0], replies[2]] == [b"OK", 2]
    return replies[1]


def test_calls_that_stop_the_world_in_transactions(with_example):
    """Of a command that was not tried yet it is not known whether it needs that; of one that was, once it has asked in vain.
    Scripts: test_module_scripts.py."""
    set_length = ["EX.CALL", "forward", "E", "CONFIG", "SET", "slowlog-max-len"]
    server = with_example()
    with server.connect() as c:
        assert in_transaction(c, *set_length, "77") == b"OK"
        assert c.call("CONFIG", "GET", "slowlog-max-len")[1] == b"77"
        assert c.call("EVAL", "return redis.call('EX.CALL', 'forward', '-', 'GET', KEYS[1])", 1, "k") == b"vw"
        assert in_transaction(c, *set_length, "78") == b"OK"
        c.ok("MODULE", "UNLOAD", "example")
        c.ok("MODULE", "LOAD", path_of("example"))
        assert c.call("EX.CALL", "forward", "-", "GET", "k") == b"vw"
        assert b"stops all threads" in in_transaction(c, *set_length, "79")
        for length in (b"80", b"81"):
            assert in_transaction(c, *set_length, length) == b"OK"
            assert c.call("CONFIG", "GET", "slowlog-max-len")[1] == length


def test_who_calls(with_example):
    """A call is nobody's, unless it is made for the client."""
    server = with_example()
    with server.connect() as c:
        assert c.call("EX.CALL", "forward", "-", "ACL", "WHOAMI") is None
        assert c.call("EX.CALL", "forward", "C", "ACL", "WHOAMI") == b"default"


def test_asked_for_keys_amid_reads(with_example):
    server = with_example()
    with server.connect() as c:
        c.ok("ACL", "SETUSER", "u", "+@all", "~a*")
        for _ in range(20):
            replies = c.pipeline([("GET", "k"), ("COMMAND", "GETKEYS", "EX.PAIRS", "2", "a", "b"), ("GET", "k"),
                                  ("ACL", "DRYRUN", "u", "EX.PAIRS", "1", "a"), ("EX.PAIRS", "2", "a", "b")])
            assert replies == [None, [b"a", b"b"], None, b"OK", 2]


def test_asked_for_keys_beside_a_script(with_example):
    server = with_example({"busy-reply-threshold": "20"})
    with server.connect() as c, server.connect() as scripted:
        clients = [server.connect() for _ in range(6)]
        c.ok("ACL", "SETUSER", "u", "on", "nopass", "+@all", "~a*", "~b*")
        for client in clients:
            client.ok("AUTH", "u", "")  # whose rights depend on the keys
        scripted.send("EVAL", "while true do end", 0)
        eventually(lambda: isinstance(c.call("PING"), Error), "the script takes long")
        for client in clients:  # of which the script's thread has some
            assert client.error("EX.PAIRS", "2", "a", "b").startswith(b"BUSY")
        c.ok("SCRIPT", "KILL")
        assert isinstance(scripted.read(), Error)
        for client in clients:
            assert client.call("EX.PAIRS", "2", "a", "b") == 2
            client.close()


def test_log_and_slow_log(with_example):
    server = with_example()
    with server.connect() as c:
        c.ok("EX.LOG", "warning", "something")
        eventually(lambda: "<example> says something" in server.output(), "the log has it")
        c.ok("CONFIG", "SET", "slowlog-log-slower-than", "0")
        c.call("EX.FILL", "k", 10, "x")
        assert any(entry[3][0] == b"EX.FILL" for entry in c.call("SLOWLOG", "GET", "10"))


def test_a_command_is_alone_on_all_threads(with_example):
    """Each command of the module adds one twice, by a call and beside it: nobody sees an odd number."""
    server = with_example()
    rounds, faults = 150, []

    def add():
        with server.connect() as c:
            for _ in range(rounds):
                c.call("EX.TELL", "2")

    def look():
        with server.connect() as c:
            for _ in range(rounds):
                value = int(c.call("GET", "ex:told") or 0)
                # 1 by the first call and 2 by the second: in between it would not divide by 3.
                if value % 3:
                    faults.append(value)
                c.call("EX.SET", "own", "v")
                c.call("EX.STRINGS", "12")

    tasks = [threading.Thread(target=task) for task in (add, look) * 4]
    for task in tasks:
        task.start()
    for task in tasks:
        task.join()
    assert not faults
    with server.connect() as c:
        assert c.call("GET", "ex:told") == b"%d" % (4 * rounds * 3)


def test_coming_and_going_beside_clients(with_example):
    server = with_example()
    ended = threading.Event()

    def use():
        with server.connect() as c:
            while not ended.is_set():
                replies = c.pipeline([["EX.REPLY", "integer"], ["SET", "k", "v"], ["EX.SET", "k", "w"],
                                      ["EX.PAIRS", "1", "k"], ["EX.BOX", "get", "k"], ["GET", "k"]])
                assert replies[1] == b"OK" and replies[5] in (b"v", b"w")
                for reply in (replies[0], replies[2], replies[3], replies[4]):
                    assert not isinstance(reply, Error) or b"unknown command" in reply, reply

    def toggle():
        try:
            with server.connect() as c:
                for _ in range(25):
                    c.ok("MODULE", "UNLOAD", "example")
                    c.ok("MODULE", "LOAD", path_of("example"))
        finally:
            ended.set()

    in_threads(toggle, use, use, use, use)


def test_calls_that_stop_the_world_from_all_threads(with_example):
    server = with_example()

    def stop():
        with server.connect() as c:
            for length in range(40):
                c.ok("EX.CALL", "forward", "!", "CONFIG", "SET", "slowlog-max-len", str(100 + length))
                c.ok("SET", "k", "v")

    def add():
        with server.connect() as c:
            for _ in range(200):
                c.call("EX.TELL", "2")

    in_threads(stop, stop, add, add, stop)
    with server.connect() as c:
        assert c.call("GET", "ex:told") == b"%d" % (2 * 200 * 3)
        assert c.call("CONFIG", "GET", "slowlog-max-len")[1] == b"139"


def test_what_modules_offer_one_another(make_server):
    server = make_server({"enable-module-command": "yes"})
    # One library has one set of variables, however often it is loaded: two modules are two files.
    taker = server.file("takes.so")
    shutil.copy(path_of("shares"), taker)
    with server.connect() as c:
        c.ok("MODULE", "LOAD", taker, "takes")
        assert b"nobody offers it" in c.error("SHARES.TWICE", "4")
        c.ok("MODULE", "LOAD", path_of("shares"), "gives")
        assert c.call("SHARES.TWICE", "4") == 8
        lines = c.call("INFO", "modules")
        assert b"name=gives,ver=1,api=1,filters=0,usedby=[takes],using=[]" in lines
        assert b"name=takes,ver=1,api=1,filters=0,usedby=[],using=[gives]" in lines
        assert b"used by other modules" in c.error("MODULE", "UNLOAD", "gives")
        c.ok("MODULE", "UNLOAD", "takes")
        c.ok("MODULE", "UNLOAD", "gives")
        assert c.call("MODULE", "LIST") == []
    os.unlink(taker)


# ---- active replicas

def test_a_peer_needs_no_module(make_node):
    """What the module tells in words of its own is told to peers as the keys that it has written."""
    a = make_node(loadmodule=[path_of("example")], appendonly="yes", files=["appendonlydir"], port=str(free_port()))
    b = make_node()
    together(a, b)
    with a.connect() as ca, b.connect() as cb:
        ca.ok("EX.SET", "k", "v")
        assert ca.call("EX.FILL", "filled", 100, "x") == 100
        assert ca.call("EX.TELL", 4) == 4
        ca.ok("SET", "gone", "v")
        assert ca.call("EX.DEL", "gone") == 0
        ca.call("EVAL", "redis.call('EX.SET', KEYS[1], 'script') redis.call('APPEND', KEYS[1], '!')", 1, "s")
        check_equal([a, b], "a pair")
        assert cb.call("MGET", "k", "ex:told", "gone", "s") == [b"v", b"10", None, b"script!"]
        cb.ok("SET", "k", "theirs")
        cb.call("INCR", "ex:told")
    check_equal([a, b], "both write")
    check_quiet([a, b])
    before = everything(a)
    a.stop()
    a.start()
    assert everything(a) == before
    follow(a, b)
    with a.connect() as c:
        c.ok("EX.SET", "k", "again")
    eventually(lambda: digest(a) == digest(b), "they go on", 30)
