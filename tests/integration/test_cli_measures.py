"""keydb-cli --latency-history, --latency-dist, --intrinsic-latency and --lru-test: what they print has the form of
what redis-cli 7.0.15 prints beside them; the figures are the machine's."""

import re
import signal
import subprocess

import pytest

from lib.bounds import eventually
from lib.cli import CLI, PATIENCE_S, THEIRS, Canned, Prompt, cli

pytestmark = pytest.mark.any_threads
BOTH = pytest.mark.parametrize("program", [THEIRS, CLI], ids=["redis-cli", "keydb-cli"])


@pytest.fixture
def terminal():
    started = []

    def start(program, *args):
        started.append(Prompt(*args, program=program))
        return started[-1]
    yield start
    for each in started:
        each.end()


@BOTH
def test_latency_history_on_a_terminal(oracle, terminal, program):
    p = terminal(program, "-p", oracle.port, "--latency-history", "-i", "0.05")
    sample = rb"\x1b\[0G\x1b\[2Kmin: \d+, max: \d+, avg: \d+\.\d\d \(\d+ samples?\)"
    row = rb"(" + sample + rb")+ -- \d+\.\d\d seconds range\r\n"
    seen = p.expect(row + row)
    assert re.fullmatch(row + row, seen)


LEGEND = [
    b"---------------------------------------------",
    b". - * #          .01 .125 .25 .5 milliseconds",
    b"1,2,3,...,9      from 1 to 9     milliseconds",
    b"A,B,C,D,E        10,20,30,40,50  milliseconds",
    b"F,G,H,I,J        .1,.2,.3,.4,.5       seconds",
    b"K,L,M,N,O,P,Q,?  1,2,4,8,16,30,60,>60 seconds",
]
PALETTE = [0, 233, 234, 235, 237, 239, 241, 243, 245, 247, 144, 143, 142, 184, 226, 214, 208, 202, 196]
GREYS = [0, 233, 234, 235, 237, 239, 241, 243, 245, 247, 249, 251, 253]
SIGNS = b".-*#123456789ABCDEFGHIJKLMNOPQ?"


@BOTH
@pytest.mark.parametrize("options,palette", [([], PALETTE), (["--mono"], GREYS)], ids=["colours", "greys"])
def test_latency_dist(oracle, terminal, program, options, palette):
    """A legend, then rows of one coloured cell for each band; some band has samples."""
    p = terminal(program, "-p", oracle.port, "--latency-dist", "-i", "0.05", *options)
    cells = b"".join(rb"\x1b\[48;5;(\d+)m" + re.escape(bytes([sign])) for sign in SIGNS)
    row = rb"\x1b\[38;5;0m" + cells + rb"\x1b\[0m\r\n"
    seen = p.expect(row + row)
    colors = b"".join(b"\x1b[48;5;%dm " % color for color in palette)
    head = b"\r\n".join(LEGEND + [b"From 0 to 100%: " + colors + b"\x1b[0m", LEGEND[0], b""])
    assert seen.startswith(head)
    for found in re.findall(row, seen[len(head) :]):
        assert {int(color) for color in found} <= set(palette) and any(color != b"0" for color in found)


def test_latency_dist_of_a_server_that_goes():
    server = Canned(b"+PONG\r\n", close=True)
    outcome = cli("-p", server.port, "--latency-dist")
    server.stop()
    assert outcome.status == 1 and outcome.err == b"Error: Server closed the connection\n"


INTRINSIC = (rb"(Max latency so far: \d+ microseconds\.\n)+\n\d+ total runs \(avg latency: \d+\.\d{4} microseconds / "
             rb"\d+\.\d\d nanoseconds per run\)\.\nWorst run took \d+x longer than the average latency\.\n")


@BOTH
def test_intrinsic_latency(program):
    """To its end, and ended by Ctrl-C. It asks no server."""
    done = subprocess.run([program, "--intrinsic-latency", "1"], capture_output=True, check=True, timeout=PATIENCE_S)
    assert re.fullmatch(INTRINSIC, done.stdout)
    flush = ["stdbuf", "-oL"] if program == THEIRS else []
    with subprocess.Popen(flush + [program, "--intrinsic-latency", "600"], stdout=subprocess.PIPE) as process:
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert re.fullmatch(INTRINSIC, first + process.communicate(timeout=PATIENCE_S)[0])
    assert process.returncode == 0


@BOTH
def test_lru_test(make_oracle, terminal, program):
    """A row a second: most reads find their key in the second one, as all keys fit."""
    server = make_oracle()
    p = terminal(program, "-p", server.port, "--lru-test", "1000")
    row = rb"(\d+) Gets/sec \| Hits: (\d+) \((\d+\.\d\d)%\) \| Misses: (\d+) \((\d+\.\d\d)%\)\r\n"
    seen = p.expect(row + row)
    for gets, hits, hits_percent, misses, misses_percent in re.findall(row, seen):
        assert int(gets) > 0 and abs(float(hits_percent) + float(misses_percent) - 100) < 0.02
        assert int(hits) > int(misses)
    with server.connect() as c:
        # Few keys are asked for often: the lowest numbers are all there, of the highest few.
        lowest = ["lru:%d" % n for n in range(1, 51)]
        eventually(lambda: c.call("EXISTS", *lowest) == 50, "the lowest numbers", PATIENCE_S)
        assert len(c.call("GET", "lru:1")) == 5


def test_lru_test_of_a_server_that_refuses():
    server = Canned(b"-NOAUTH Authentication required.\r\n")
    outcome = cli("-p", server.port, "--lru-test", "10")
    server.stop()
    assert (outcome.status, outcome.out, outcome.err) == (1, b"", b"NOAUTH Authentication required.\n")
