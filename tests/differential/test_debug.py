"""DEBUG's subcommands that have something of the server to reply, as the oracle replies."""

import pytest

pytestmark = pytest.mark.any_threads

CALLS = [
    ["REPLYBUFFER", "PEAK-RESET-TIME", "100"], ["REPLYBUFFER", "peak-reset-time", "never"],
    ["REPLYBUFFER", "PEAK-RESET-TIME", "RESET"], ["REPLYBUFFER", "PEAK-RESET-TIME", "x"],
    ["REPLYBUFFER", "RESIZING", "0"], ["REPLYBUFFER", "RESIZING", "1"], ["REPLYBUFFER", "x", "1"],
    ["REPLYBUFFER", "RESIZING"], ["JMAP"], ["NOTHING"], ["ERROR", "MINE it is"],
    ["STRINGMATCH-LEN", "a*", "abc"], ["STRINGMATCH-LEN", "a*", "bc"], ["SET-ACTIVE-EXPIRE", "1"],
    ["PAUSE-CRON", "0"], ["CHANGE-REPL-ID"], ["CHANGE-REPL-ID", "x"], ["LOG", "a text"],
    ["SLEEP", "0"], ["PROTOCOL", "bignum"], ["PROTOCOL", "x"],
    ["QUICKLIST-PACKED-THRESHOLD", "100b"], ["QUICKLIST-PACKED-THRESHOLD", "0"],
    ["CONFIG-REWRITE-FORCE-ALL", "x"], ["DIGEST-VALUE", "missing"],
]


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_replies(client, oracle, call):
    if call[0] == "STRINGMATCH-LEN":
        # The oracle's 7.0 has no such subcommand; 7.2's replies an integer.
        assert client.call("DEBUG", *call) == int(call[1][0] == call[2][0])
        return
    with oracle.connect() as other:
        assert client.call("DEBUG", *call) == other.call("DEBUG", *call)


def test_the_id_of_the_stream_changes(client):
    def ids():
        fields = dict(line.split(b":", 1) for line in client.call("INFO", "replication").split(
            b"\r\n") if b":" in line)
        return fields[b"master_replid"], fields[b"master_replid2"]

    before = ids()
    client.ok("DEBUG", "CHANGE-REPL-ID")
    assert ids()[0] != before[0] and ids()[1] == b"0" * 40


def test_no_file_to_force(client, ours_only):
    assert client.call("DEBUG", "CONFIG-REWRITE-FORCE-ALL") == \
        b"ERR CONFIG-REWRITE-FORCE-ALL failed: The server is running without a config file"
