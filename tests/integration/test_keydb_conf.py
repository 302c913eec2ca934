"""keydb.conf, the file that comes with the server: it names every option that exists and no other,
with the built-in default, and the server starts with it as it is."""

import os
import re
import shlex

import pytest

from lib.server import REPOSITORY

# "name value" is set; "#name value" shows an option that is not set, its value is an example.
LINE = re.compile(r"#?([a-z][a-z0-9_-]*) (.*)")

# What the file sets otherwise than the program does by itself, and why.
SET_OTHERWISE = {
    "bind": "an installed server is reached from its own machine only, until somebody says more",
    "enable-debug-command": "users of KeyDB run test suites that need it, from the same machine",
}

# What the harness starts every server with.
OF_THE_HARNESS = {"port", "bind", "server-threads", "min-clients-per-thread", "unixsocket",
                  "enable-debug-command"}


def options_of_the_file():
    """name -> (set, list of the values of its lines)"""
    found = {}
    with open(os.path.join(REPOSITORY, "keydb.conf"), encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            text = text.rstrip("\n")
            if not text or text == "#" or text.startswith(("# ", "##")):
                continue
            match = LINE.fullmatch(text)
            assert match, "line %d is neither comment nor option: %s" % (number, text)
            value = " ".join(shlex.split(match.group(2)))
            found.setdefault(match.group(1), (not text.startswith("#"), []))[1].append(value)
    return found


@pytest.fixture
def shown(client):
    flat = client.call("CONFIG", "GET", "*")
    return {n.decode(): v.decode() for n, v in zip(flat[0::2], flat[1::2])}


@pytest.mark.any_threads
def test_every_option_is_in_the_file(shown, ours_only):
    aliases = {"io-threads", "lua-time-limit"} | {n for n in shown if "-ziplist-" in n or "slave" in n}
    assert sorted(set(shown) - aliases - set(options_of_the_file())) == []


@pytest.mark.any_threads
def test_every_option_of_the_file_exists(client, ours_only):
    unknown = [n for n in options_of_the_file()
               if n != "include" and not client.call("CONFIG", "GET", n)]
    assert unknown == []


@pytest.mark.any_threads
def test_the_file_shows_the_defaults(make_server, ours_only):
    plain = make_server(options={"enable-debug-command": None, "server-threads": None,
                                 "min-clients-per-thread": None})
    with plain.connect() as client:
        flat = client.call("CONFIG", "GET", "*")
    built_in = {n.decode(): v.decode() for n, v in zip(flat[0::2], flat[1::2])}
    with_file = make_server(config=read_file(), options={
        "enable-debug-command": None, "server-threads": None, "min-clients-per-thread": None})
    with with_file.connect() as client:
        flat = client.call("CONFIG", "GET", "*")
    from_file = {n.decode(): v.decode() for n, v in zip(flat[0::2], flat[1::2])}
    own_to_each = {"port", "bind", "dir", "pidfile"}
    different = {n: (built_in[n], from_file.get(n)) for n in built_in
                 if n not in own_to_each and built_in[n] != from_file.get(n)}
    assert set(different) <= set(SET_OTHERWISE), different


def read_file():
    with open(os.path.join(REPOSITORY, "keydb.conf"), encoding="utf-8") as file:
        return file.read()


@pytest.mark.any_threads
def test_options_that_are_only_shown_are_empty_by_default(shown, ours_only):
    """A line that is not set must be one whose default no line can say."""
    for name, (is_set, _) in options_of_the_file().items():
        if not is_set and name in shown and name not in OF_THE_HARNESS:
            assert shown[name] in ("", "0"), name
