"""The server's metrics by HTTP: asking, and a strict reader of Prometheus's text format 0.0.4 and of OpenMetrics 1.0.
What breaks a rule of the format is an AssertionError."""

import base64
import http.client
import json
import re

from lib.bounds import scaled
from lib.server import free_port

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"')
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count"), "gauge": ("",)}


def start_metered(make_server, options=None, **more):
    """A server with metrics, on .metrics_port."""
    server = make_server({"metrics-port": str(free_port()), **(options or {})}, start=False, **more)
    server.drawn_ports.add("metrics-port")
    server.start()
    server.metrics_port = int(server.options["metrics-port"])
    return server


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body.decode("utf-8"))


def ask(port, path="/metrics", method="GET", user=None, token=None, headers=(), body=None, host="127.0.0.1"):
    """One request. user: (name, password)."""
    headers = dict(headers)
    if user:
        headers["Authorization"] = "Basic " + base64.b64encode(":".join(user).encode()).decode()
    if token:
        headers["Authorization"] = "Bearer " + token
    connection = http.client.HTTPConnection(host, port, timeout=scaled(20))
    try:
        connection.request(method, path, body=body, headers=headers)
        got = connection.getresponse()
        return Answer(got.status, dict(got.getheaders()), got.read())
    finally:
        connection.close()


class Family:
    def __init__(self, name, help_text):
        self.name, self.help, self.type = name, help_text, None
        self.samples = {}  # (name, ((label, value), ...)): text of the value


def read_sample(line):
    """name, labels, value."""
    name = NAME.match(line)
    assert name, line
    rest, labels = line[name.end():], []
    if rest.startswith("{"):
        rest = rest[1:]
        while not rest.startswith("}"):
            label = LABEL.match(rest)
            assert label, line
            text = re.sub(r"\\(.)", lambda found: "\n" if found.group(1) == "n" else found.group(1), label.group(2))
            labels.append((label.group(1), text))
            rest = rest[label.end():]
            if rest.startswith(","):
                rest = rest[1:]
                assert rest[0] != "}", line
        rest = rest[1:]
    assert rest.startswith(" ") and rest.count(" ") == 1, line
    float(rest[1:])
    assert len({name for name, _ in labels}) == len(labels), line
    return name.group(), tuple(labels), rest[1:]


def belongs(name, family, is_open):
    if family.type == "counter":
        return name == family.name + ("_total" if is_open else "")
    return any(name == family.name + suffix for suffix in SUFFIXES[family.type])


def parse(text, is_open=False):
    """Families by name."""
    families, current = {}, None
    assert text.endswith("\n") and "\r" not in text
    lines = text[:-1].split("\n")
    if is_open:
        assert lines.pop() == "# EOF"
    for line in lines:
        if line.startswith("# HELP "):
            name, _, help_text = line[7:].partition(" ")
            assert NAME.fullmatch(name) and name not in families, line
            assert current is None or current.samples, "a family without samples: " + current.name
            current = families[name] = Family(name, help_text)
        elif line.startswith("# TYPE "):
            name, _, kind = line[7:].partition(" ")
            assert name == current.name and current.type is None and not current.samples, line
            assert kind in ("counter", "gauge", "histogram", "summary"), line
            current.type = kind
        else:
            name, labels, value = read_sample(line)
            assert current.type and belongs(name, current, is_open), line
            assert (name, labels) not in current.samples, line
            current.samples[name, labels] = value
    for family in families.values():
        if family.type == "histogram":
            check_histogram(family)
    return families


def check_histogram(family):
    """Steps rise, none is missing, the last one is the count."""
    series = {}
    for (name, labels), value in family.samples.items():
        others = tuple(pair for pair in labels if pair[0] != "le")
        kind = name[len(family.name):]
        if kind == "_bucket":
            series.setdefault(others, {"steps": []})["steps"].append((dict(labels)["le"], int(value)))
        else:
            series[others][kind] = float(value)
    edges = {tuple(edge for edge, _ in one["steps"]) for one in series.values()}
    assert len(edges) == 1, "not all have the same steps"
    for others, one in series.items():
        assert one["steps"][-1][0] == "+Inf" and one["steps"][-1][1] == one["_count"], others
        bounds, counts = [float(edge) for edge, _ in one["steps"]], [count for _, count in one["steps"]]
        assert bounds == sorted(set(bounds)) and counts == sorted(counts) and "_sum" in one, others


def scrape(port, **more):
    answer = ask(port, **more)
    assert answer.status == 200, (answer.status, answer.body)
    assert answer.headers["Content-Type"] == PROMETHEUS
    return parse(answer.body.decode("utf-8"))


def value(families, name, **labels):
    """Of the one sample that has these labels."""
    found = [float(text) for (_, pairs), text in families[name].samples.items() if labels.items() <= dict(pairs).items()]
    assert len(found) == 1, (name, labels, found)
    return found[0]
