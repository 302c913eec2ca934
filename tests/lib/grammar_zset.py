"""Templates and placeholders for sorted sets (see grammar.py).  A template that begins with ! is
never damaged: ranges by member mean something only where all scores are equal, which the keys of
`lexkey` see to."""

from lib.boundary import B, FLOATS
from lib.grammar import Grammar

MEMBERS = list("abcdefghij") + ["1", "10", "-5", "007", "-0", "", "\x00\xff", "aa", "ab", "b\r\nc",
                                "z" * 64, "z" * 65, "y" * 300, "9223372036854775807"]
SCORES = ["0", "1", "2", "3", "1.5", "-1", "10", "100"] * 3 + FLOATS + B

# Nothing but the templates of lexkey touches "frozen".
PRELUDE = [("SET", "wrong", "x"), ("SET", "frozen", "x"),
           ("CONFIG", "SET", "zset-max-listpack-entries", "128"),
           ("CONFIG", "SET", "zset-max-listpack-value", "64")]

ZSETS = """
ZADD key score member|ZADD key scored...|ZADD key scored... {NX|XX} {GT|LT} {CH}
ZADD key score member {INCR}|ZADD key {NX|XX|GT|LT|CH|INCR} score member|ZADD key many
ZADD key NX scored...|ZADD key XX CH scored...|ZADD key GT CH scored...|ZADD key LT CH scored...
ZADD key INCR score member|ZADD key XX INCR score member|ZADD key NX INCR score member
ZADD key GT INCR score member|ZADD key LT INCR score member
ZINCRBY key score member|ZREM key member...|ZREM key member|ZSCORE key member|ZMSCORE key member...
ZCARD key|ZCOUNT key bound bound|ZRANK key member|ZREVRANK key member|ZRANK key member WITHSCORE
ZRANGE key rank rank {WITHSCORES} {REV}|ZRANGE key 0 -1 WITHSCORES|ZREVRANGE key 0 -1 WITHSCORES
ZRANGE key bound bound BYSCORE {REV} {LIMIT limit limit} {WITHSCORES}
ZRANGE key bound bound {REV|BYSCORE|BYLEX} {LIMIT limit limit} {WITHSCORES|NOTHING}
ZREVRANGE key rank rank {WITHSCORES}|ZRANGEBYSCORE key bound bound {WITHSCORES} {LIMIT limit limit}
ZREVRANGEBYSCORE key bound bound {WITHSCORES} {LIMIT limit limit}
ZRANGESTORE key key rank rank {REV}|ZRANGESTORE key key bound bound BYSCORE {REV} {LIMIT limit limit}
ZRANGESTORE key key rank rank {LIMIT limit limit} {WITHSCORES}
ZREMRANGEBYRANK key rank rank|ZREMRANGEBYSCORE key bound bound
ZPOPMIN key {count}|ZPOPMAX key {count}|ZPOPMIN key|ZPOPMAX key
ZMPOP 1 key MIN|ZMPOP 2 key key MAX {COUNT count}|ZMPOP numkeys key key {MIN|MAX} {COUNT count}
!ZRANDMEMBER key|!ZRANDMEMBER key randcount {WITHSCORES}|!ZRANDMEMBER key randcount WITHSCORES extra
!ZRANDMEMBER key randcount BAD
ZSCAN key 0|ZSCAN key 0 {MATCH pattern} {COUNT 1000}|ZSCAN key int {COUNT int} {MATCH pattern}
ZUNION 2 key key {WITHSCORES}|ZINTER 2 key key {WITHSCORES}|ZDIFF 2 key key {WITHSCORES}
ZUNION 2 key key WEIGHTS score score {AGGREGATE SUM|AGGREGATE MIN|AGGREGATE MAX} {WITHSCORES}
ZINTER 3 key key key WEIGHTS score score score {AGGREGATE SUM|AGGREGATE MIN|AGGREGATE MAX} WITHSCORES
ZUNION numkeys key key {WEIGHTS score score} {AGGREGATE member} {WITHSCORES}
ZDIFF 3 key key key WITHSCORES|ZDIFF numkeys key key|ZINTER numkeys key key
ZINTERCARD 2 key key {LIMIT int}|ZINTERCARD numkeys key key {LIMIT 1}|ZINTERCARD 1 key
ZUNIONSTORE key 2 key key {WEIGHTS score score} {AGGREGATE SUM|AGGREGATE MIN|AGGREGATE MAX}
ZINTERSTORE key 2 key key {WEIGHTS score score} {AGGREGATE SUM|AGGREGATE MIN|AGGREGATE MAX}
ZDIFFSTORE key 2 key key|ZDIFFSTORE key numkeys key key|ZUNIONSTORE key numkeys key key
OBJECT ENCODING key|OBJECT ENCODING key|TYPE key|DEL key|COPY key key {REPLACE}|RENAME key key
SADD key member member member|SADD key member|SREM key member
EXPIRE key 100000|TTL key|PERSIST key|SET key value|GET key|EXISTS key
CONFIG SET zset-max-listpack-entries limits|CONFIG SET zset-max-ziplist-value limits
!ZADD lexkey 0 member 0 member 0 member|!ZADD lexkey 0 member|!ZREM lexkey member
!ZRANGEBYLEX lexkey lexbound lexbound {LIMIT limit limit} {WITHSCORES}
!ZREVRANGEBYLEX lexkey lexbound lexbound {LIMIT limit limit}|!ZLEXCOUNT lexkey lexbound lexbound
!ZRANGE lexkey lexbound lexbound BYLEX {LIMIT limit limit} {REV}|!ZLEXCOUNT lexkey - +
!ZRANGESTORE lexkey lexkey lexbound lexbound BYLEX {REV} {LIMIT limit limit}
!ZREMRANGEBYLEX lexkey lexbound lexbound|!ZRANGEBYLEX lexkey - +|!OBJECT ENCODING lexkey
"""


class ZsetGrammar(Grammar):
    def command(self):
        whole = self.templates
        template = self.random.choice(whole)
        if template.startswith("!"):
            words = self._expand(template[1:])
            return [w.encode("latin-1") for w in words]
        self.templates = [template]
        try:
            return super().command()
        finally:
            self.templates = whole

    def _token(self, token):
        if token == "scored":
            return [self.score(), self.member()]
        if token == "many":
            start = self.random.randrange(100)
            return [w for i in range(start, start + self.random.choice([30, 127, 128, 129, 200]))
                    for w in (str(i % 50), "m%d" % i)]
        return super()._token(token)

    def score(self):
        return self.random.choice(SCORES)

    def member(self):
        return self.random.choice(MEMBERS)

    def bound(self):
        if self.random.random() < 0.3:
            return self.random.choice(["-inf", "+inf", "inf"])
        return self.random.choice(["", "", "("]) + self.score()

    def lexkey(self):
        return self.random.choice(["l0", "l1", "l2", "l0", "l1", "l2", "nokey", "frozen"])

    def lexbound(self):
        kind = self.random.random()
        if kind < 0.3:
            return self.random.choice("-+")
        if kind < 0.95:
            return self.random.choice("[(") + self.member()
        return self.random.choice(["", "x", "-x", "+x", "inf", "(", "["])

    def rank(self):
        return self.random.choice(["0", "1", "2", "-1", "-2", "5", "-5", "10", "100", "150", "-100"]
                                  + B)

    def limit(self):
        return self.random.choice(["0", "1", "2", "3", "-1", "10", "100", "-5"] * 2 + B)

    def count(self):
        return self.random.choice(["0", "1", "2", "3", "-1", "200"] * 2 + B)

    def randcount(self):
        """Not far below zero: so many would be sent."""
        return self.random.choice(["0", "1", "3", "-1", "-3", "5", "-20", "200"] * 2
                                  + [b for b in B if not b.startswith("-")] + ["-0"])

    def numkeys(self):
        return self.random.choice(["1", "2", "2", "3", "0", "-1", "x", "9223372036854775807"])

    def limits(self):
        return self.random.choice(["0", "1", "2", "5", "64", "128", "128", "x", "-1"])
