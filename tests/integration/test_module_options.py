"""Options of modules in keydb.conf, at the start and in CONFIG REWRITE."""

from lib.modules import path_of


def test_lines_of_the_configuration(make_server):
    config = "settings.number 42\nloadmodule %s\nsettings.word \"three little words\"\nsettings.flags one four\n"
    server = make_server({"enable-module-command": "yes"}, config=config % path_of("settings"), files=["server.conf"])
    with server.connect() as c:
        assert c.call("CONFIG", "GET", "settings.number")[1] == b"42"
        assert c.call("CONFIG", "GET", "settings.word")[1] == b"three little words"
        assert c.call("CONFIG", "GET", "settings.flags")[1] == b"one four"
        c.ok("CONFIG", "SET", "settings.number", "43", "settings.flag", "no")
        c.ok("CONFIG", "REWRITE")
        text = server.read("server.conf")
        assert "settings.number 43\n" in text and "settings.flag no\n" in text
        assert "settings.word \"three little words\"\n" in text and "settings.memory" not in text
    server.config = text
    server.stop()
    server.start()
    with server.connect() as c:
        assert c.call("CONFIG", "GET", "settings.number")[1] == b"43"
        assert c.call("CONFIG", "GET", "settings.flag")[1] == b"no"
        c.ok("MODULE", "UNLOAD", "settings")
        assert c.call("CONFIG", "GET", "settings.*") == []
        assert b"Unknown option" in c.error("CONFIG", "SET", "settings.number", "1")


def test_lines_that_nobody_wants(make_server):
    for config, word in (("nothing.number 1\n", "nothing.number"),
                         ("loadmodule %s\nsettings.nope 1\n" % path_of("settings"), "settings.nope"),
                         ("loadmodule %s\nsettings.number many\n" % path_of("settings"), "settings.number"),
                         ("loadmodule %s noload\n" % path_of("settings"), "LoadConfigs")):
        server = make_server({}, config=config, start=False)
        text = server.start_fails()
        assert word in text, text
        server.stop()
