"""SORT where the oracle cannot be asked: numbers out of range, the order of sets, the locale, large
sources, and what STORE leaves of what was there."""

import shutil
import subprocess

import pytest

from lib.resp import Error
from lib.seeds import generator, seeds

NO_NUMBER = b"ERR One or more scores can't be converted into double"


@pytest.mark.any_threads
def test_numbers_out_of_range_are_refused_and_forgotten(client):
    for odd in ("1e400", "-1e400", "1e-400", "nan", "1x", "x"):
        client.call("DEL", "l")
        client.call("RPUSH", "l", odd, "1")
        answer = client.call("SORT", "l")
        assert isinstance(answer, Error) and answer == NO_NUMBER, odd
        client.call("DEL", "l")
        client.call("RPUSH", "l", "01", "2e0", " 1.5")
        assert client.call("SORT", "l") == [b"01", b" 1.5", b"2e0"]


@pytest.mark.any_threads
def test_long_numbers(client):
    long_one = "0" * 5000 + "3"
    client.call("RPUSH", "l", long_one, "4", "2")
    assert client.call("SORT", "l") == [b"2", long_one.encode(), b"4"]


@pytest.mark.any_threads
def test_what_is_stored_of_a_set_has_one_order(client):
    """Members that weigh the same come by their bytes, and so does what is not sorted."""
    members = [b"m%02d" % i for i in range(60)]
    client.call("SADD", "s", *members)
    for by in ("nosort", "none_*"):
        assert client.call("SORT", "s", "BY", by, "STORE", "d") == 60
        assert client.call("LRANGE", "d", "0", "-1") == members
    assert client.call("SORT", "s", "BY", "none_*", "ALPHA", "STORE", "d") == 60
    assert client.call("LRANGE", "d", "0", "-1") == members


@pytest.mark.any_threads
def test_store_replaces_all_that_was_there(client):
    client.call("RPUSH", "l", "2", "1")
    client.ok("SET", "d", "string", "EX", "1000")
    assert client.call("SORT", "l", "STORE", "d") == 2
    assert client.call("TYPE", "d") == b"list"
    assert client.call("TTL", "d") == -1
    assert client.call("SORT", "l", "STORE", "l") == 2
    assert client.call("LRANGE", "l", "0", "-1") == [b"1", b"2"]
    assert client.call("SORT", "l", "LIMIT", "5", "1", "STORE", "d") == 0
    assert client.call("EXISTS", "d") == 0
    client.call("RPUSH", "l", "x")
    client.ok("SET", "d", "kept")
    assert client.call("SORT", "l", "STORE", "d") == NO_NUMBER
    assert client.call("GET", "d") == b"kept"


@pytest.mark.any_threads
def test_expired_keys_weigh_nothing(client):
    client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    client.call("RPUSH", "l", "1", "2", "3")
    client.ok("SET", "w_1", "10", "PX", "1")
    client.ok("SET", "w_2", "-1")
    client.ok("SET", "w_3", "5")
    client.call("DEBUG", "SLEEP", "0.01")
    assert client.call("SORT_RO", "l", "BY", "w_*", "GET", "#", "GET", "w_*") == [
        b"2", b"-1", b"1", None, b"3", b"5"]
    client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "1")


@pytest.mark.any_threads
def test_large_values_of_other_keys(client):
    big = b"v" * 100_000
    client.call("RPUSH", "l", "1", "2")
    client.ok("SET", "big_1", big)
    client.call("HSET", "hash_1", "f", big, "n", "12")
    assert client.call("SORT", "l", "GET", "big_*", "GET", "hash_*->f", "GET", "hash_*->n") == [
        big, big, b"12", None, None, None]
    assert client.call("SORT", "l", "GET", "big_*", "GET", "hash_*->f", "STORE", "d") == 4
    assert client.call("LRANGE", "d", "0", "-1") == [big, big, b"", b""]


@pytest.mark.slow
@pytest.mark.any_threads
def test_one_value_many_times(client, ours_only):
    """A result that would take 30 GB of a value of 30 MB is refused, and nothing stays behind."""
    client.ok("SET", "w_1", "x" * 30_000_000)
    client.call("RPUSH", "l", *["1"] * 1000)
    client.ok("SET", "d", "kept")
    assert client.error("SORT", "l", "GET", "w_*", "STORE", "d") == \
        b"ERR the result is larger than 4gb"
    assert client.call("GET", "d") == b"kept"


@pytest.mark.parametrize("seed", seeds(2))
def test_parts_of_large_sources(client, seed):
    """Whatever part LIMIT takes, it is that part of the whole."""
    random = generator(seed, "sort")
    numbers = [random.randrange(-10**6, 10**6) for _ in range(20_000)]
    for i in range(0, len(numbers), 1000):
        client.call("RPUSH", "l", *map(str, numbers[i:i + 1000]))
        client.call("SADD", "s", *map(str, numbers[i:i + 1000]))
    for key, whole in (("l", sorted(numbers)), ("s", sorted(set(numbers)))):
        whole = [b"%d" % n for n in whole]
        assert client.call("SORT", key) == whole
        assert client.call("SORT", key, "DESC") == whole[::-1]
        texts = sorted(whole)
        for _ in range(20):
            start, count = random.randrange(len(whole)), random.choice([1, 10, 100, 9000])
            limit = ("LIMIT", str(start), str(count))
            assert client.call("SORT", key, *limit) == whole[start:start + count]
            assert client.call("SORT", key, "DESC", *limit) == whole[::-1][start:start + count]
            assert client.call("SORT", key, "ALPHA", *limit) == texts[start:start + count]


@pytest.mark.any_threads
def test_locale(make_server, monkeypatch, tmp_path, ours_only):
    if not shutil.which("localedef"):
        pytest.skip("no localedef here")
    made = subprocess.run(["localedef", "-i", "sv_SE", "-f", "UTF-8", tmp_path / "sv_SE.UTF-8"],
                          capture_output=True, check=False)
    if made.returncode > 1:
        pytest.skip("no sources of locales here")
    monkeypatch.setenv("LOCPATH", str(tmp_path))
    # glibc does not free what it makes of LOCPATH.
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    monkeypatch.setenv("LC_ALL", "C")
    words = ["\u00f6".encode(), b"z", b"\xc3\xa5", b"a", b"Z", b"B", b""]
    swedish = [b"", b"a", b"B", b"z", b"Z", b"\xc3\xa5", "\u00f6".encode()]
    with make_server().connect() as client:
        client.call("RPUSH", "l", *words)
        assert client.call("SORT", "l", "ALPHA") == sorted(words)
        client.ok("CONFIG", "SET", "locale-collate", "sv_SE.UTF-8")
        assert client.call("SORT", "l", "ALPHA") == swedish
        assert client.call("SORT", "l", "ALPHA", "DESC") == swedish[::-1]
        assert client.call("SORT", "l", "ALPHA", "BY", "nothing_*") == words
        for word in words:
            client.ok("SET", b"w_" + word, word)
        assert client.call("SORT", "l", "ALPHA", "BY", "w_*", "GET", "w_*") == swedish
        assert client.call("SORT", "l", "ALPHA", "STORE", "d") == len(words)
        assert client.call("LRANGE", "d", "0", "-1") == sorted(words)
        answer = client.call("CONFIG", "SET", "locale-collate", "xx_XX")
        assert isinstance(answer, Error) and b"Invalid locale name" in answer
        assert client.call("SORT", "l", "ALPHA") == swedish
    monkeypatch.setenv("LC_ALL", "sv_SE.UTF-8")
    with make_server().connect() as client:
        client.call("RPUSH", "l", *words)
        assert client.call("SORT", "l", "ALPHA") == swedish


def test_scripts_see_a_set_in_one_order(client):
    """Whatever its own order is; a list and a sorted set have theirs."""
    members = [b"d", b"b", b"a", b"c", b"zz", b"1", b"9", b"10"]
    client.call("SADD", "s", *members)
    client.call("RPUSH", "l", *members)
    script = "return redis.call('SORT', KEYS[1], 'BY', 'nosort', unpack(ARGV))"
    assert client.call("EVAL", script, 1, "s") == sorted(members)
    assert client.call("EVAL", script, 1, "s", "LIMIT", 1, 3, "DESC") == sorted(members)[::-1][1:4]
    assert client.call("EVAL_RO", script.replace("SORT", "SORT_RO"), 1, "s") == sorted(members)
    assert client.call("EVAL", script, 1, "l") == members
