"""HyperLogLog values byte for byte as the oracle makes them, and values that nobody made."""

import threading

import pytest

from lib.seeds import generator, seeds


def both(client, other, *words):
    ours, theirs = client.call_raw(*words), other.call_raw(*words)
    assert ours == theirs, words
    return ours


@pytest.mark.any_threads
@pytest.mark.parametrize("seed", seeds(3))
@pytest.mark.parametrize("sparse_max", [0, 18, 19, 20, 100, 3000, 16000])
def test_same_bytes_after_the_same_additions(client, oracle, sparse_max, seed):
    random = generator(seed, sparse_max)
    with oracle.connect() as other:
        both(client, other, "CONFIG", "SET", "hll-sparse-max-bytes", str(sparse_max))
        for step in range(400):
            size = random.choice([0, 1, 1, 2, 10, 60])
            elements = [str(random.randrange(10**6)) for _ in range(size)]
            both(client, other, "PFADD", "k", *elements)
            if step < 50 or step % 20 == 0:
                both(client, other, "GET", "k")
                both(client, other, "PFCOUNT", "k")
        both(client, other, "PFDEBUG", "ENCODING", "k")


@pytest.mark.any_threads
@pytest.mark.parametrize("seed", seeds(3))
def test_same_bytes_after_the_same_merges(client, oracle, seed):
    random = generator(seed)
    keys = ["k%d" % i for i in range(6)]
    with oracle.connect() as other:
        for _ in range(60):
            key = random.choice(keys)
            size = random.choice([0, 1, 5, 50, 400])
            both(client, other, "PFADD", key, *[str(random.random()) for _ in range(size)])
            sources = random.sample(keys, random.randint(0, 3))
            target = random.choice(keys + sources)
            both(client, other, "PFMERGE", target, *sources)
            both(client, other, "GET", target)
            both(client, other, "PFCOUNT", target, *sources, "missing")
            if random.random() < 0.05:
                both(client, other, "DEL", random.choice(keys))


@pytest.mark.any_threads
def test_all_lengths_of_elements(client, oracle):
    with oracle.connect() as other:
        for length in list(range(70)) + [1000, 100_000]:
            both(client, other, "PFADD", "k", bytes(i * 37 % 256 for i in range(length)))
            both(client, other, "GET", "k")


@pytest.mark.any_threads
def test_a_cached_cardinality_is_used_until_a_change(client, oracle):
    """A value counted by Redis is read by us, and the other way round."""
    with oracle.connect() as other:
        other.call("PFADD", "k", "a", "b", "c")
        assert other.call("PFCOUNT", "k") == 3
        value = other.call("GET", "k")
        assert value[15] < 0x80
        client.ok("SET", "k", value)
        assert client.call("PFCOUNT", "k") == 3
        lying = value[:8] + (77).to_bytes(8, "little") + value[16:]
        client.ok("SET", "k", lying)
        assert client.call("PFCOUNT", "k") == 77
        assert client.call("PFCOUNT", "k", "missing") == 3
        assert client.call("PFADD", "k", "a") == 0
        assert client.call("PFCOUNT", "k") == 77
        assert client.call("PFADD", "k", "d") == 1
        assert client.call("PFCOUNT", "k") == 4
        other.ok("SET", "k", client.call("GET", "k"))
        assert other.call("PFCOUNT", "k") == 4


COUNTING = {
    "alone": [("PFCOUNT", "k")],
    "transaction": [("MULTI",), ("PFCOUNT", "k"), ("STRLEN", "k"), ("EXEC",)],
    "script": [("EVAL", "return redis.call('pfcount', KEYS[1])", "1", "k")],
    "watched": [("WATCH", "k"), ("PFCOUNT", "k"), ("MULTI",), ("EXEC",)],
    "two keys": [("PFCOUNT", "k", "missing")],
}


@pytest.mark.parametrize("elements", [5, 20000])
@pytest.mark.parametrize("words", COUNTING.values(), ids=list(COUNTING))
def test_a_count_is_kept(client, oracle, elements, words):
    """In the value, as the oracle keeps it: every byte is the same afterwards, sparse and dense."""
    with oracle.connect() as other:
        for first in range(0, elements, 1000):
            both(client, other, "PFADD", "k", *range(first, min(first + 1000, elements)))
        for _ in range(2):
            for call in words:
                both(client, other, *call)
            both(client, other, "GET", "k")
        both(client, other, "PFADD", "k", "another")
        both(client, other, "GET", "k")


def test_what_is_counted_changes_under_way(client, server):
    """Counts of a value that others change all the time are of a state that it had; what is kept is right in the end."""
    stop, counts = threading.Event(), [[], []]

    def count(found):
        with server.connect() as reader:
            while not stop.is_set():
                found.append(reader.call("PFCOUNT", "k"))
    client.call("PFADD", "k", "first")
    readers = [threading.Thread(target=count, args=(found,)) for found in counts]
    for reader in readers:
        reader.start()
    for number in range(3000):
        client.call("PFADD", "k", number)
    stop.set()
    for reader in readers:
        reader.join()
    assert all(found == sorted(found) for found in counts)  # nothing but additions
    kept = client.call("PFCOUNT", "k")
    client.ok("SET", "copy", client.call("GET", "k"))
    assert kept == client.call("PFCOUNT", "k", "missing") == client.call("PFCOUNT", "copy", "missing")


CORRUPT = b"INVALIDOBJ Corrupted HLL object detected"
NOT_ONE = b"WRONGTYPE Key is not a valid HyperLogLog string value."
HEAD = b"HYLL\1\0\0\0" + b"\0" * 7 + b"\x80"


@pytest.mark.any_threads
@pytest.mark.parametrize("value,error", [
    (b"", NOT_ONE), (b"12345", NOT_ONE), (b"HYLL", NOT_ONE), (HEAD[:15], NOT_ONE),
    (b"hyll" + HEAD[4:] + b"\x7f\xff", NOT_ONE), (b"HYLL\2" + HEAD[5:] + b"\x7f\xff", NOT_ONE),
    (b"HYLL\0" + HEAD[5:] + b"\0" * 12287, NOT_ONE),
    (b"HYLL\0" + HEAD[5:] + b"\0" * 12289, NOT_ONE),
    (HEAD, CORRUPT), (HEAD + b"\x7f", CORRUPT), (HEAD + b"\x7f\xfe", CORRUPT),
    (HEAD + b"\x7f\xff\x7f\xff", CORRUPT), (HEAD + b"\x7f\xff" * 200_000, CORRUPT),
    (HEAD + b"\x80" * 16385, CORRUPT), (b"HYLL\0" + HEAD[5:] + b"\xff" * 12288, CORRUPT),
])
def test_refused_values(client, value, error, ours_only):
    client.ok("SET", "k", value)
    client.call("PFADD", "good", "a")
    before = client.call("GET", "good")
    calls = [("PFCOUNT", "k"), ("PFCOUNT", "good", "k"), ("PFMERGE", "good", "k"),
             ("PFMERGE", "k", "good"), ("PFMERGE", "k")]
    if value[4:5] != b"\0" or error == NOT_ONE:  # what a dense one holds is not looked at to add
        calls += [("PFADD", "k", "a"), ("PFADD", "k"), ("PFDEBUG", "TODENSE", "k"),
                  ("PFDEBUG", "DECODE", "k"), ("PFDEBUG", "GETREG", "k")]
    for words in calls:
        assert client.error(*words) == error, words
    assert client.call("GET", "k") == value
    assert client.call("GET", "good") == before


def mutated(random, value):
    value = bytearray(value)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(16, len(value)) if random.random() < 0.8 and len(value) > 16 \
            else random.randrange(len(value))
        kind = random.randrange(5)
        if kind == 0:
            value[at] = random.randrange(256)
        elif kind == 1:
            value[at] ^= 1 << random.randrange(8)
        elif kind == 2:
            del value[at:at + random.choice([1, 1, 2, 500])]
        elif kind == 3:
            value[at:at] = random.choice([b"\x7f\xff", b"\x40", b"\xff", b"\0", b"\x7f\xff" * 50])
        elif len(value) > 15:
            value[15] ^= 0x80
        if not value:
            return b"H"
    return bytes(value)


@pytest.mark.parametrize("seed", seeds(4))
def test_mutated_values_never_crash(client, seed):
    """Whatever the bytes are, each command answers, with a number or one of the two errors."""
    random = generator(seed)
    client.call("PFADD", "other", *range(50))
    for _ in range(300):
        client.call("DEL", "k")
        client.call("PFADD", "k", *[random.random() for _ in range(random.choice([0, 3, 40]))])
        if random.random() < 0.1:
            client.call("PFDEBUG", "TODENSE", "k")
        value = mutated(random, client.call("GET", "k"))
        for words in [("PFCOUNT", "k"), ("PFCOUNT", "other", "k"), ("PFDEBUG", "DECODE", "k"),
                      ("PFADD", "k", *[random.random() for _ in range(20)]), ("PFADD", "k", "x"),
                      ("PFMERGE", "to", "other", "k"), ("PFMERGE", "k", "other"),
                      ("PFDEBUG", "GETREG", "k"), ("PFDEBUG", "TODENSE", "k"), ("PFCOUNT", "k")]:
            if random.random() < 0.5:
                client.ok("SET", "k", value)
            raw = client.call_raw(*words)
            assert raw[:1] in b":+*$" or raw[1:-2] in (
                CORRUPT, NOT_ONE, b"ERR HLL encoding is not sparse"), (words, raw)
        client.call("DEL", "to")


@pytest.mark.any_threads
def test_selftest(client):
    client.ok("PFSELFTEST")
