"""redis-py's own commands for Bloom filters, JSON and search, as its users call them. The one that tests/real/fetch
gets, or else Debian's, which is older."""

import os
import sys

import pytest

from lib.bounds import eventually
from lib.real import FOLDER, real

sys.path.insert(0, os.path.join(FOLDER, "python"))
redis = pytest.importorskip("redis")


@pytest.fixture(params=(2, 3), ids=("RESP2", "RESP3"))
def r(request, make_server):
    if request.param == 3 and int(redis.__version__.split(".")[0]) < 5:
        pytest.skip("redis-py %s speaks RESP2 only" % redis.__version__)
    protocol = {"protocol": 3} if request.param == 3 else {}
    modules = ("redisbloom.so", "rejson.so", "redisearch.so")
    server = make_server(config="".join("loadmodule %s\n" % real(name) for name in modules), files=("dump.rdb",))
    with redis.Redis(host="127.0.0.1", port=server.port, decode_responses=True,
                     encoding_errors="replace", **protocol) as client:
        yield client


def test_bloom(r):
    bf, cf, cms, topk, digest = r.bf(), r.cf(), r.cms(), r.topk(), r.tdigest()
    assert bf.create("b", 0.01, 1000)
    assert bf.add("b", "x") == 1 and bf.madd("b", "x", "y") == [0, 1]
    assert bf.exists("b", "x") == 1 and bf.mexists("b", "x", "nothing") == [1, 0]
    info = bf.info("b")
    assert (info["Capacity"] if isinstance(info, dict) else info.capacity) == 1000
    assert not hasattr(bf, "card") or bf.card("b") == 2
    assert cf.create("c", 1000) and cf.add("c", "x") and cf.exists("c", "x") == 1 and cf.delete("c", "x") == 1
    assert cms.initbydim("m", 1000, 5) and cms.incrby("m", ["a", "b"], [3, 4]) == [3, 4] and cms.query("m", "a", "b") == [3, 4]
    assert topk.reserve("t", 3, 50, 4, 0.9) and len(topk.add("t", "a", "b", "a")) == 3
    assert "a" in topk.list("t") and topk.query("t", "a", "z") == [1, 0]
    if int(redis.__version__.split(".")[0]) >= 5:  # before, the module had other words
        assert digest.create("d", 100) and digest.add("d", [1, 2, 3, 4])
        assert digest.max("d") == 4 and digest.min("d") == 1
    with r.pipeline() as pipe:
        pipe.bf().add("b", "z")
        pipe.set("plain", "v")
        assert pipe.execute()[0] == 1


def test_json(r):
    json = r.json()
    assert json.set("j", "$", {"a": [1, 2], "n": 1, "deep": {"s": "x"}})
    assert json.get("j") == {"a": [1, 2], "n": 1, "deep": {"s": "x"}}
    assert json.arrappend("j", "$.a", 3, {"b": 1}) == [4] and json.arrlen("j", "$.a") == [4]
    assert json.numincrby("j", "$.n", 2) in ([3], [[3]])
    assert json.get("j", "$.deep.s") == ["x"] and json.type("j", "$.a") in (["array"], [["array"]])
    assert json.set("k1", "$", {"v": 1}) and json.set("k2", "$", {"v": 2}) and json.mget(["k1", "k2"], "$.v") == [[1], [2]]
    assert json.objkeys("j", "$") and json.delete("j", "$.deep") == 1
    assert json.set("j", "$.n", 5, nx=True) is None


def test_search(r):
    from redis.commands.search.aggregation import AggregateRequest
    from redis.commands.search.field import NumericField, TagField, TextField, VectorField
    from redis.commands.search.query import NumericFilter, Query
    try:
        from redis.commands.search.index_definition import IndexDefinition, IndexType
    except ImportError:  # older ones
        from redis.commands.search.indexDefinition import IndexDefinition, IndexType
    ft = r.ft("idx")
    vector = VectorField("v", "HNSW", {"TYPE": "FLOAT32", "DIM": 2, "DISTANCE_METRIC": "L2"})
    assert ft.create_index([TextField("title", weight=2.0), TagField("tag"), NumericField("n", sortable=True), vector],
                           definition=IndexDefinition(prefix=["doc:"], index_type=IndexType.HASH))
    for i in range(20):
        r.hset("doc:%d" % i, mapping={"title": "hello world %d" % i, "tag": "odd" if i % 2 else "even", "n": i,
                                      "v": bytes([0, 0, 128, 63, 0, 0, i, 64])})

    def total(result):
        return result["total_results"] if isinstance(result, dict) else result.total

    eventually(lambda: total(ft.search("hello")) == 20, "all are found", 30)
    assert total(ft.search(Query("@tag:{odd}").sort_by("n").paging(0, 5))) == 10
    assert total(ft.search(Query("hello").add_filter(NumericFilter("n", 5, 9)))) == 5
    nearest = Query("*=>[KNN 2 @v $q AS far]").sort_by("far").return_fields("far").dialect(2)
    assert total(ft.search(nearest, query_params={"q": bytes([0, 0, 128, 63, 0, 0, 7, 64])})) == 2
    assert ft.aggregate(AggregateRequest("*").group_by("@tag").cursor(1, 10.0)) is not None
    assert ft.info() and ft.explain("hello world") and ft.tagvals("tag")
    assert ft.alter_schema_add(TextField("body"))
    assert ft.sugadd("s", *[redis.commands.search.suggestion.Suggestion("hello")]) == 1 and ft.sugget("s", "he")
    assert ft.dropindex(delete_documents=True) and r.dbsize() == 1
