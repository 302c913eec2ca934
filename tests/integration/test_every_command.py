"""Every documented command of the data types, called as its documentation says, with hostile values
in every place, on values of every type and none, with the same key in several places: the server
answers each with one reply, lives, and does not grow."""

import random

import pytest

from lib import documented
from lib.bounds import scaled
from lib.resp import Error
from lib.seeds import seeds
from lib.server import is_redis, parse_info, server_path
from lib.states import NOT_GUESSED, NOT_YET, STATES, choose, names, prepared

pytestmark = [
    pytest.mark.any_threads,
    pytest.mark.skipif(is_redis(server_path()), reason="Redis takes 4 GiB offsets for good"),
]

GROWTH_LIMIT_BYTES = 64 << 20
REPLY_LIMIT_BYTES = 4 << 20


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("state", sorted(STATES))
def test_hostile_values(server, connect, state, seed):
    chance = random.Random("%s/%s" % (seed, state))
    client = connect()
    before = int(parse_info(client.call("INFO", "memory"))["used_memory"])
    commands = names(client)
    assert len(commands) > 200
    for name, fields in commands.items():
        ground = prepared(client, state)
        program = []
        for _ in range(12):
            call = documented.make_call(name, fields, chance)
            words = documented.fill(call, choose(name, call, chance))
            # In a transaction nothing waits.
            program += ground + [["MULTI"], words, ["EXEC"]]
        client.timeout_s = scaled(20.0)
        replies = client.pipeline(program)
        assert len(replies) == len(program), name
        assert all(len(repr(reply)) < REPLY_LIMIT_BYTES for reply in replies), name
        client.call("SELECT", "0")
    client.ok("FLUSHALL")
    assert server.alive()
    after = int(parse_info(client.call("INFO", "memory"))["used_memory"])
    assert after - before < GROWTH_LIMIT_BYTES


def test_the_documentation_makes_calls_that_work(client):
    """What this file stands on: of each command some call goes past the checks of its arguments, on a
    value that suits it."""
    chance = random.Random(1)
    missed = []
    for name, fields in names(client).items():
        if name in NOT_YET | NOT_GUESSED:
            continue
        for attempt in range(600):
            state = sorted(STATES)[attempt % len(STATES)]
            call = documented.fill(documented.make_call(name, fields, chance, ("k",)))
            reply = client.pipeline(prepared(client, state) + [["MULTI"], call, ["EXEC"]])[-1]
            if isinstance(reply, list) and not isinstance(reply[0], Error):
                break
        else:
            missed.append((name, call, reply))
    assert not missed, missed
