"""Consumer groups: programs made by hand, where chance seldom comes, against the oracle."""

import pytest

from lib.differences import DIFFERENCES
from lib.differential import Pair

# XAUTOCLAIM looks at ten entries for each one that it may return, and goes on from there.
LOOKS = """
XGROUP CREATE s g 0 MKSTREAM
XGROUP CREATECONSUMER s g d
XREADGROUP GROUP g c STREAMS s >
""" + "".join("""
XAUTOCLAIM s g d 900000 0 COUNT %s
XAUTOCLAIM s g d 900000 (11-1 COUNT %s
""" % (count, count) for count in (1, 2, 3, 4, 5, 100)) + """
XDEL s 3-1 9-1 10-1 11-1 12-1
XCLAIM s g c 0 15-1 18-1 IDLE 1000000
XAUTOCLAIM s g d 900000 5-1 COUNT 1
XAUTOCLAIM s g d 900000 5-1 COUNT 2
XAUTOCLAIM s g d 900000 5-1 COUNT 3
XAUTOCLAIM s g d 900000 5-1 COUNT 4
XPENDING s g
"""

# Where a group's counter is known, lost, and found again.
LAG = """
XGROUP CREATE s g 0
XGROUP CREATE s h 10-1
XGROUP CREATE s i $
XGROUP CREATE s j 99-99 ENTRIESREAD 7
XGROUP CREATE s k 1-1
XINFO GROUPS s
XREADGROUP GROUP g c COUNT 3 STREAMS s >
XREADGROUP GROUP h c COUNT 3 STREAMS s >
XINFO GROUPS s
XDEL s 20-1
XINFO GROUPS s
XREADGROUP GROUP g c COUNT 3 STREAMS s >
XREADGROUP GROUP h c COUNT 20 STREAMS s >
XINFO GROUPS s
XREADGROUP GROUP g c COUNT 30 STREAMS s >
XTRIM s MAXLEN 15
XINFO GROUPS s
XADD s 50-1 a b
XREADGROUP GROUP g c STREAMS s >
XREADGROUP GROUP h c STREAMS s >
XREADGROUP GROUP k c COUNT 1 STREAMS s >
XINFO GROUPS s
XGROUP SETID s g 40-1
XGROUP SETID s h 40-1 ENTRIESREAD 3
XINFO GROUPS s
XTRIM s MAXLEN 0
XINFO GROUPS s
XADD s 60-1 a b
XINFO GROUPS s
XGROUP SETID s h 0 ENTRIESREAD 9223372036854775807
XREADGROUP GROUP g c STREAMS s >
XINFO GROUPS s
XSETID s 100-0 ENTRIESADDED 9223372036854775806 MAXDELETEDID 70-0
XINFO GROUPS s
XGROUP SETID s g 0 ENTRIESREAD 0
XGROUP SETID s i 60-1
XINFO GROUPS s
"""


def program(text):
    lines = ["XADD s %d-1 a b" % i for i in range(1, 46)] + text.split("\n")
    return [[w.encode() for w in line.split()] for line in lines if line]


@pytest.mark.any_threads
@pytest.mark.parametrize("proto", [2, 3], ids=["resp2", "resp3"])
@pytest.mark.parametrize("text", [LOOKS, LAG], ids=["looks", "lag"])
def test_same_replies(server, oracle, proto, text):
    Pair(server, oracle, proto, DIFFERENCES).check(program(text), "by hand")
