"""Whatever values commands leave behind, a file that is saved can be loaded, with the same content: the
greatest and least numbers that each command takes."""

import pytest

LAST_ID = "18446744073709551615-18446744073709551615"
I64_MAX = "9223372036854775807"
GROUP = ["XADD t 8-0 a b", "XGROUP CREATE t g 0", "XREADGROUP GROUP g c STREAMS t >"]

PROGRAMS = {
    "entries added": ["XADD t 1-1 a b", "XSETID t 1-1 ENTRIESADDED " + I64_MAX, "XADD t 2-1 a b",
                      "XGROUP CREATE t g 0", "XREADGROUP GROUP g c STREAMS t >"],
    "last ID": ["XADD t %s a b" % LAST_ID, "XDEL t " + LAST_ID, "XGROUP CREATE t g $"],
    "max deleted ID": ["XADD t 5-0 a b", "XSETID t 7-0 ENTRIESADDED 1 MAXDELETEDID 6-0", "XSETID t 6-0"],
    "entries read": ["XADD t 8-0 a b", "XGROUP CREATE t g 0 ENTRIESREAD " + I64_MAX,
                     "XREADGROUP GROUP g c STREAMS t >"],
    "group ahead": ["XADD t 8-0 a b", "XGROUP CREATE t g 99-1 ENTRIESREAD 5", "XGROUP SETID t g %s" % LAST_ID],
    "delivery count": GROUP + ["XCLAIM t g d 0 8-0 RETRYCOUNT %s TIME %s" % (I64_MAX, I64_MAX),
                               "XREADGROUP GROUP g d STREAMS t 0"],
    "delivery in the past": GROUP + ["XCLAIM t g d 0 8-0 TIME -5"],
    "idle for ever": GROUP + ["XCLAIM t g d 0 8-0 IDLE " + I64_MAX],
    "last ID of a group": GROUP + ["XCLAIM t g d 0 8-0 LASTID " + LAST_ID],
    "pending and trimmed": GROUP + ["XTRIM t MAXLEN 0"],
    "empty stream": ["XGROUP CREATE t g $ MKSTREAM"],
    "expiry": ["SET t v", "PEXPIREAT t " + I64_MAX],
    "field's deadline": ["HSET t f v g w", "HPEXPIREAT t 70368744177663 FIELDS 1 f"],
    "field's deadline by EXPIREMEMBER": ["HSET t f v g w", "PEXPIREMEMBERAT t f " + I64_MAX,
                                         "HPEXPIREAT t 70368744177663 FIELDS 1 g"],
    "set member's deadline": ["SADD t a b", "PEXPIREMEMBERAT t a " + I64_MAX],
    "sorted set member's deadline": ["ZADD t 1 a 2 b", "PEXPIREMEMBERAT t a " + I64_MAX],
    "scores": ["ZADD t inf a -inf b 5e-324 c -0 d 1.7976931348623157e308 e"],
    "nested": ["KEYDB.NHSET t.b.c x y z", "KEYDB.NHSET t.d q"],
    "bit": ["SETBIT t 4294967295 1"],
}


@pytest.mark.any_threads
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_reload(make_server, name):
    server = make_server(files=("dump.rdb",))
    with server.connect() as client:
        for line in PROGRAMS[name]:
            client.call(*line.split())
        assert client.call("EXISTS", "t") == 1

        def state():
            times = [client.call("PTTL", "t", member) for member in ("a", "b", "f", "g")]
            return [client.call("DEBUG", "DIGEST"), client.call("PEXPIRETIME", "t"),
                    [isinstance(t, int) and t > 10**15 for t in times], client.call("DUMP", "t")]
        before = state()
        client.ok("DEBUG", "RELOAD")
        assert state() == before
        payload = before[-1]
        client.ok("RESTORE", "u", 0, payload)
        assert client.call("DUMP", "u") == payload
