"""The page of the metrics' port: that it keeps to itself, its data, the walk for large keys, and all of it in a browser
where there is one."""

import base64
import hashlib
import re

import pytest

from lib.bounds import eventually
from lib.browser import Browser, find
from lib.metrics import ask, start_metered
from lib.server import free_port

pytestmark = pytest.mark.usefixtures("ours_only")


@pytest.fixture
def metered(make_server):
    return start_metered(make_server, {"slowlog-log-slower-than": "0"})


def hash_of(page, tag):
    contents = re.findall("<%s>(.*?)</%s>" % (tag, tag), page, re.DOTALL)
    assert len(contents) == 1
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(contents[0].encode()).digest()).decode()


def test_page(metered):
    answer = ask(metered.metrics_port, "/")
    page = answer.body.decode("utf-8")
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";"))
    assert policy == {"default-src": "'none'", "script-src": hash_of(page, "script"), "style-src": hash_of(page, "style"),
                      "connect-src": "'self'", "img-src": "data:", "base-uri": "'none'", "form-action": "'none'",
                      "frame-ancestors": "'none'"}
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    # Nothing from elsewhere, nothing that the policy would stop.
    assert not re.search(r"(src|href)=\"(?!data:,\")", page)
    assert not re.search(r"\sstyle=|\son\w+=\"|innerHTML|@import|url\(", page)
    assert [found for found in re.findall(r"https?://[^\"' ]+", page)] == ["http://www.w3.org/2000/svg"]


def test_status(metered):
    with metered.connect() as c:
        c.ok("SET", b'a"<\\\xff', "x")
        c.call("GET", "nothing")
        status = ask(metered.metrics_port, "/status.json").json()
        info = metered.info("everything")
    assert status["whole"] is True and status["sees_keys"] is True
    for section, field in (("server", "run_id"), ("memory", "maxmemory"), ("stats", "keyspace_misses"),
                           ("replication", "role"), ("persistence", "loading"), ("keyspace", "db0")):
        assert status["info"][section][field] == info[field]
    assert "thread_0" in status["info"]["threads"] and "latencystats" not in status["info"]
    edges = [edge for edge, _ in status["latency"]]
    assert edges == sorted(set(edges)) and sum(calls for _, calls in status["latency"]) >= 2
    assert ['SET', 'a"<\\\u00ff', 'x'] in [entry["words"] for entry in status["slowlog"]]
    assert [entry["id"] for entry in status["slowlog"]] == sorted((e["id"] for e in status["slowlog"]), reverse=True)


def test_status_of_a_fresh_server(metered):
    """No keys, no calls yet but those of the start."""
    with metered.connect() as c:
        c.ok("CONFIG", "RESETSTAT")
        c.ok("SLOWLOG", "RESET")
    status = ask(metered.metrics_port, "/status.json").json()
    assert "db0" not in status["info"].get("keyspace", {})


def walk(port):
    assert ask(port, "/big-keys.json?start").json()["state"] == "walking"
    return eventually(lambda: (lambda got: got["state"] != "walking" and got)(ask(port, "/big-keys.json").json()), "the end")


def test_big_keys(metered):
    port = metered.metrics_port
    assert ask(port, "/big-keys.json").json() == {"state": "none", "seen": 0, "total": 0, "keys": []}
    assert walk(port) == {"state": "done", "seen": 0, "total": 0, "keys": []}
    with metered.connect() as c:
        c.call("DEBUG", "POPULATE", 20000)
        for n in range(40):
            c.call("RPUSH", "list:%d" % n, *["x" * 100] * (10 + n))
        c.ok("SELECT", 7)
        c.ok("SET", "k" * 300, "y" * 100000)
        c.ok("SET", "gone", "y" * 200000, "PX", 1)
        eventually(lambda: c.call("EXISTS", "gone") == 0 and c.call("DBSIZE") == 1, "gone")
        found = walk(port)
        assert found["state"] == "done" and found["seen"] == 20041
        keys = found["keys"]
        assert len(keys) == 32 and (keys[0]["db"], keys[0]["key"], keys[0]["type"]) == (7, "k" * 128, "string")
        assert {k["key"] for k in keys[1:]} <= {"list:%d" % n for n in range(40)} and keys[1]["type"] == "list"
        sizes = [k["bytes"] for k in keys]
        assert sizes == sorted(sizes, reverse=True) and sizes[0] > 100000
        c.call("SELECT", 0)
        assert abs(c.call("MEMORY", "USAGE", keys[1]["key"]) - keys[1]["bytes"]) < 200


def test_big_keys_beside_a_script(make_server):
    """The walk waits for a script that takes long, and others are answered meanwhile."""
    port = free_port()
    server = make_server({"metrics-port": str(port), "busy-reply-threshold": "10"})
    with server.connect() as c, server.connect() as other:
        c.ok("SET", "a", "b")
        c.send("EVAL", "while true do end", 0)
        eventually(lambda: str(other.call("PING"))[2:6] == "BUSY", "busy")
        assert ask(port, "/big-keys.json?start").json()["state"] == "walking"
        assert ask(port).status == 200
        assert ask(port, "/big-keys.json").json() == {"state": "walking", "seen": 0, "total": 0, "keys": []}
        other.ok("SCRIPT", "KILL")
        c.read()
        eventually(lambda: ask(port, "/big-keys.json").json()["state"] == "done", "the end")
        assert ask(port, "/big-keys.json").json()["seen"] == 1


@pytest.mark.skipif(not find(), reason="no Chromium")
@pytest.mark.slow
@pytest.mark.parametrize("width,scheme", [(1180, "light"), (390, "dark")])
def test_in_a_browser(metered, tmp_path, width, scheme):
    port = metered.metrics_port
    with metered.connect() as c, Browser(find()) as browser:
        c.ok("SET", "<b>key</b>", "x" * 5000)
        browser.show(width, 900, scheme)
        browser.open("http://127.0.0.1:%d/" % port)
        eventually(lambda: browser.text("state") == "live", "the first look", bound_s=30)
        for _ in range(200):
            c.call("GET", "<b>key</b>")
        eventually(lambda: browser.value("curves.ops.filter(isFinite).length") >= 2, "two looks more", bound_s=30)
        assert browser.text("ops") != "-" and browser.text("p99") != "-" and browser.text("memory") != "-"
        assert "get" in browser.text("commands") and browser.text("databases").split("\n")[1].split()[:2] == ["0", "1"]
        assert browser.value("document.querySelectorAll('#ops-chart path.curve').length") == 1
        assert browser.value("document.querySelectorAll('#latency-chart path.curve').length") == 3
        browser.value("byId('walk').click()")
        eventually(lambda: "<b>key</b>" in browser.text("keys"), "the largest key", bound_s=30)
        assert browser.value("document.querySelectorAll('b').length") == \
            browser.value("document.querySelectorAll('.legend b').length"), "a key is a text"
        assert browser.value("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"
        dark = browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(15, 19, 24)"
        assert dark == (scheme == "dark")
        browser.picture(str(tmp_path / "page.png"))
        assert not browser.complaints, browser.complaints


@pytest.mark.skipif(not find(), reason="no Chromium")
@pytest.mark.slow
def test_a_browser_with_a_password(make_server):
    """The page's own requests carry what the page was opened with; without it there is a word on the page's state."""
    port = free_port()
    server = make_server({"metrics-port": str(port), "requirepass": "p"}, password="p")
    with Browser(find()) as browser:
        browser.open("http://127.0.0.1:%d/" % port,
                     headers={"Authorization": "Basic " + base64.b64encode(b"default:p").decode()})
        eventually(lambda: browser.text("state") == "live", "the first look", bound_s=30)
        with server.connect() as c:
            c.ok("CONFIG", "SET", "requirepass", "other")
            eventually(lambda: browser.text("state").startswith("no answer"), "refused", bound_s=30)
            c.ok("CONFIG", "SET", "requirepass", "p")
        eventually(lambda: browser.text("state") == "live", "again", bound_s=30)
