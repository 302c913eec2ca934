"""Bitmaps beyond what the differential programs reach: the limit of offsets, KeyDB's shifts, long
strings."""

import pytest

from lib.seeds import generator, seeds

OFFSET = b"ERR bit offset is not an integer or out of range"


@pytest.mark.any_threads
def test_offsets_end_with_proto_max_bulk_len(client):
    client.ok("CONFIG", "SET", "proto-max-bulk-len", str(2 * 1024 * 1024))
    bits = 8 * 2 * 1024 * 1024
    assert client.call("SETBIT", "k", bits - 1, 1) == 0
    assert client.call("STRLEN", "k") == 2 * 1024 * 1024
    assert client.call("GETBIT", "k", bits - 1) == 1
    for words in (["SETBIT", "k", bits, 1], ["GETBIT", "k", bits],
                  ["BITFIELD", "k", "GET", "u8", bits],
                  ["BITFIELD", "k", "SET", "u8", "#%d" % (bits // 8), 1],
                  ["BITFIELD_RO", "k", "GET", "i64", "#%d" % (2**63 - 1)]):
        assert client.error(*words) == OFFSET
    # A field may begin at the last bit.
    assert client.call("BITFIELD", "k", "GET", "u8", bits - 1) == [128]


@pytest.mark.any_threads
def test_positions_in_a_long_string(client):
    length = 3_000_000
    client.call("SETBIT", "k", length * 8 - 1, 1)
    assert client.call("BITCOUNT", "k") == 1
    assert client.call("BITPOS", "k", 1) == length * 8 - 1
    assert client.call("BITOP", "NOT", "n", "k") == length
    assert client.call("BITCOUNT", "n") == length * 8 - 1
    assert client.call("BITPOS", "n", 0) == length * 8 - 1
    assert client.call("BITOP", "OR", "all", "n", "k", "missing") == length
    assert client.call("BITPOS", "all", 0) == length * 8
    assert client.call("BITPOS", "all", 0, 0, -1) == -1
    assert client.call("BITOP", "AND", "none", "all", "missing") == length
    assert client.call("BITCOUNT", "none") == 0


# ---- KeyDB's shifts, which the oracle does not have


def shifted(value, by):
    """The string as a number whose first byte is the least significant, moved by some bits."""
    number = int.from_bytes(value, "little")
    if by < 0:
        length = max(len(value) - -by // 8, 0)
        return (number >> -by).to_bytes(length, "little")
    return (number << by).to_bytes(len(value) + (by + 7) // 8 if value else 0, "little")


@pytest.mark.any_threads
@pytest.mark.parametrize("seed", seeds(4))
def test_shifts(client, seed, ours_only):
    random = generator(seed)
    for _ in range(200):
        value = random.randbytes(random.choice([0, 1, 2, 9, 100]))
        by = random.choice([0, 1, 4, 7, 8, 9, 64, random.randint(0, 1000)])
        by = -by if random.random() < 0.3 else by
        word = random.choice(["LSHIFT", "rshift"])
        wanted = shifted(value, by if word == "LSHIFT" else -by)
        client.ok("SET", "k", value)
        target = random.choice(["k", "d"])
        assert client.call("BITOP", word, target, "k", by) == len(wanted)
        assert client.call("GET", target) == (wanted or None), (value, word, by)


@pytest.mark.any_threads
def test_shift_errors(client, ours_only):
    client.ok("SET", "k", "abc")
    single = b"ERR BITOP SHIFT must be called with a single source key and an integer shift."
    integer = b"ERR BITOP SHIFT's last parameter must be an integer"
    large = b"ERR BITOP SHIFT value is too large."
    assert client.error("BITOP", "LSHIFT", "d", "k") == single
    assert client.error("BITOP", "RSHIFT", "d", "k", "k", 1) == single
    assert client.error("BITOP", "LSHIFT", "d", "k", "x") == integer
    assert client.error("BITOP", "RSHIFT", "d", "k", "") == integer
    for by in (2**30 + 1, -2**30 - 1, 2**63 - 1, -2**63):
        assert client.error("BITOP", "LSHIFT", "d", "k", by) == large
    assert client.error("BITOP", "LSHIFT", "d", "k", 2**63) == integer
    client.ok("CONFIG", "SET", "proto-max-bulk-len", str(1024 * 1024))
    assert client.error("BITOP", "LSHIFT", "d", "k", 8 * 1024 * 1024) == \
        b"ERR string exceeds maximum allowed size (proto-max-bulk-len)"
    assert client.call("EXISTS", "d") == 0
    assert client.call("BITOP", "RSHIFT", "k", "k", 2**30) == 0
    assert client.call("EXISTS", "k") == 0


@pytest.mark.any_threads
def test_a_fault_in_a_later_operation_undoes_all(client):
    client.error("BITFIELD", "k", "SET", "u8", 0, 1, "SET", "u8", 0, "x")
    client.error("BITFIELD", "k", "SET", "u8", 0, 1, "OVERFLOW", "x")
    client.error("BITFIELD", "k", "SET", "u8", 0, 1, "GET", "u64", 0)
    assert client.call("EXISTS", "k") == 0


@pytest.mark.any_threads
def test_many_operations_in_one_call(client):
    words = []
    for i in range(5000):
        words += ["SET", "u16", "#%d" % i, i]
    assert client.call("BITFIELD", "k", *words) == [0] * 5000
    reads = []
    for i in range(5000):
        reads += ["GET", "u16", "#%d" % i]
    assert client.call("BITFIELD_RO", "k", *reads) == list(range(5000))
