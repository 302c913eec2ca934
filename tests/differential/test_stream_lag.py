"""How far consumer groups are, beside the oracle: where nothing was deleted and no counter made up, its
numbers are right and ours are the same, also where it has none.  integration/test_stream_lag.py has
the rest."""

import pytest

from lib.seeds import generator, seeds


def history(random, length):
    """Groups that read, that are set back and on, with counts and without."""
    added, program = 0, [["XGROUP", "CREATE", "s", g, "$", "MKSTREAM"] for g in "gh"]
    program += [["XGROUP", "CREATECONSUMER", "s", g, "c"] for g in "gh"]
    for _ in range(length):
        kind = random.choices(["add", "read", "place", "copy"], [5, 5, 1, 1])[0]
        group = random.choice("gh")
        if kind == "add":
            added += 1
            program.append(["XADD", "s", "%d-0" % added, "f", "v"])
        elif kind == "read":
            program.append(["XREADGROUP", "GROUP", group, "c", "COUNT", random.choice("1124"), "STREAMS",
                            "s", ">"])
        elif kind == "copy":
            program.append(["COPY", "s", random.choice("st"), "REPLACE"])
        else:
            place = random.randint(0, added)
            counted = ["ENTRIESREAD", str(place)] if random.random() < 0.5 else []
            program.append(["XGROUP", "SETID", "s", group, "%d-0" % place] + counted)
        program += [["XINFO", "GROUPS", "s"]] if added else []
    return program


@pytest.mark.any_threads
@pytest.mark.parametrize("proto", [2, 3], ids=["resp2", "resp3"])
@pytest.mark.parametrize("seed", seeds(3))
def test_same_progress(server, oracle, proto, seed):
    with server.connect(proto) as ours, oracle.connect(proto) as theirs:
        program = history(generator(seed, "progress"), 250)
        for n, words in enumerate(program):
            assert ours.call(*words) == theirs.call(*words), program[:n + 1]
