"""What the commands about the server itself promise beyond their replies' form."""

import pytest

from lib.bounds import eventually
from lib.resp import Error


@pytest.fixture
def local_debug(make_server):
    def make(who):
        return make_server(options={"enable-debug-command": who})
    return make


@pytest.mark.any_threads
@pytest.mark.parametrize("who,allowed", [("no", False), ("local", True), ("yes", True)])
def test_debug_is_for_those_the_option_names(local_debug, who, allowed):
    with local_debug(who).connect() as client:
        reply = client.call("DEBUG", "DIGEST")
        assert isinstance(reply, Error) != allowed
        if not allowed:
            assert reply.startswith(b"ERR DEBUG command not allowed.")


def test_populate(client):
    client.ok("SET", "key:1", "mine")
    client.ok("DEBUG", "POPULATE", "1000")
    client.ok("DEBUG", "POPULATE", "10", "short", "3")
    client.ok("DEBUG", "POPULATE", "10", "long", "100")
    assert client.call("DBSIZE") == 1020
    assert client.call("MGET", "key:0", "key:1", "key:999", "short:9", "long:9") == \
        [b"value:0", b"mine", b"value:999", b"val", b"value:9".ljust(100, b"\0")]
    for bad in ("-1", "x", ""):
        assert client.error("DEBUG", "POPULATE", bad) == \
            b"ERR value is out of range, must be positive"
    assert isinstance(client.call("DEBUG", "POPULATE", "1", "k", str(1 << 40)), Error)


def test_tables_are_whole_after_much_was_done(client):
    for step in range(5):
        client.ok("DEBUG", "POPULATE", "20000", "step%d" % step)
        client.ok("DEBUG", "CHECK")
    for step in range(5):
        assert client.call("DEL", *["step%d:%d" % (step, i) for i in range(0, 20000)]) == 20000
        client.ok("DEBUG", "CHECK")
    text = client.call("DEBUG", "HTSTATS", "0")
    assert b" number of elements: 0\n" in text
    assert client.error("DEBUG", "HTSTATS", "16") == b"ERR Out of range database"


def test_digest_knows_database_type_and_expiry(client):
    client.ok("SET", "k", "1")
    plain = client.call("DEBUG", "DIGEST")
    client.call("EXPIRE", "k", "1000")
    expiring = client.call("DEBUG", "DIGEST")
    client.call("EXPIRE", "k", "2000")
    assert client.call("DEBUG", "DIGEST") == expiring != plain
    client.call("PERSIST", "k")
    assert client.call("DEBUG", "DIGEST") == plain
    client.ok("SWAPDB", "0", "1")
    assert client.call("DEBUG", "DIGEST") not in (plain, b"0" * 40)
    client.ok("SWAPDB", "0", "1")
    # How the text is kept does not matter, only what it says.
    client.call("APPEND", "k", "2")
    one = client.call("DEBUG", "DIGEST")
    client.ok("SET", "k", "12")
    assert client.call("DEBUG", "DIGEST") == one


def test_config_get_shows_each_option_once(client):
    flat = client.call("CONFIG", "GET", "SLOWLOG-MAX-LEN", "*", "slow*", "slowlog-max-len")
    assert len(flat[0::2]) == len({name.lower() for name in flat[0::2]})
    # A name comes back as it was spelled.
    assert client.call("CONFIG", "GET", "SLOWLOG-max-len")[0] == b"SLOWLOG-max-len"


@pytest.mark.any_threads
@pytest.mark.parametrize("words", [["SAVE", "NOSAVE"], ["ABORT", "NOW"], ["NOW", "ABORT"], ["x"],
                                   ["NOSAVE", "x"], [""]], ids=" ".join)
def test_shutdown_with_senseless_arguments(client, words):
    assert client.error("SHUTDOWN", *words) == b"ERR syntax error"
    assert client.call("PING") == b"PONG"


@pytest.mark.any_threads
def test_shutdown_abort_without_a_shutdown(client):
    assert client.error("SHUTDOWN", "ABORT") == b"ERR No shutdown in progress."


@pytest.mark.parametrize("words", [["NOSAVE"], ["NOW"], ["NOSAVE", "NOW", "FORCE"]], ids=" ".join)
def test_shutdown_ends_the_server(make_server, words):
    server = make_server()
    with server.connect() as client:
        client.send("SHUTDOWN", *words)
        assert client.is_closed()
    assert server.wait_exit() == 0


def test_lolwut_ends_with_the_version(client, ours_only):
    for words in ([], ["VERSION", "5"], ["VERSION", "6", "1", "2"], ["nothing"]):
        text = client.call("LOLWUT", *words)
        assert text.endswith(b"\nRedis ver. 7.2.6\n")
    assert client.error("LOLWUT", "VERSION", "x") == b"ERR value is not an integer or out of range"


def test_rates_rise_and_fall(client, connect):
    """Rates are of the last two seconds: work shows, and rest shows."""
    worker = connect()

    def busy():
        worker.pipeline([["PING"]] * 200)
        return rate(client) > 50

    eventually(busy, "a rate of more than the INFOs themselves", bound_s=30)
    eventually(lambda: rate(client) < 25, "the rate falls", bound_s=30, pause_s=0.5)


def rate(client):
    for line in client.call("INFO", "stats").split(b"\r\n"):
        if line.startswith(b"instantaneous_ops_per_sec:"):
            return int(line.split(b":")[1])
    raise AssertionError("no rate")


def test_dataset_grows_with_the_data(client):
    def dataset():
        stats = client.call("MEMORY", "STATS")
        return dict(zip(stats[0::2], stats[1::2]))[b"dataset.bytes"]

    before = dataset()
    client.ok("DEBUG", "POPULATE", "10000", "k", "1000")
    assert dataset() - before > 10_000_000


def test_what_reads_the_keyspace_itself_runs_between_writes(client):
    """INFO and MEMORY look at all databases: also in a hold that the client's writes take."""
    for sizes in (["INFO"], ["INFO", "keyspace"], ["MEMORY", "STATS"], ["MEMORY", "DOCTOR"]):
        for other in (["SET", "a", "1"], ["GET", "a"], ["PING"]):
            replies = client.pipeline([other, sizes, other])
            assert len(replies) == 3 and not isinstance(replies[1], Error)
