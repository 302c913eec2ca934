import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.JedisPoolConfig;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.params.SetParams;

/** jedis: pipelines, transactions, pub/sub, scripts, locks, a blocking queue; RESP2 and RESP3. */
final class JedisJobs {
    private static JedisPool pool;

    static Jedis connect(RedisProtocol protocol) {
        return new Jedis(new HostAndPort(Jobs.HOST, Jobs.PORT),
            DefaultJedisClientConfig.builder().protocol(protocol).socketTimeoutMillis(60000).build());
    }

    static void pipelines(RedisProtocol protocol) {
        try (Jedis jedis = connect(protocol)) {
            jedis.flushDB();
            List<Response<Long>> replies = new ArrayList<>();
            Pipeline pipe = jedis.pipelined();
            for (int i = 0; i < 5000; i++) {
                pipe.set("p" + i, "" + i);
                replies.add(pipe.incr("p" + i));
            }
            pipe.hset("h", Map.of("a", "1", "b", "2"));
            Response<Map<String, String>> hash = pipe.hgetAll("h");
            pipe.zadd("z", 1.5, "m");
            Response<Double> score = pipe.zscore("z", "m");
            pipe.sync();
            for (int i = 0; i < 5000; i++) {
                Jobs.expect(replies.get(i).get() == i + 1, i);
            }
            Jobs.expect(hash.get().equals(Map.of("a", "1", "b", "2")) && score.get() == 1.5, hash.get(), score.get());
        }
    }

    static void optimisticIncrements() throws Exception {
        try (Jedis jedis = pool.getResource()) {
            jedis.set("balance", "0");
            Jobs.inParallel(4, i -> {
                try (Jedis own = pool.getResource()) {
                    for (int done = 0; done < 50;) {
                        own.watch("balance");
                        int value = Integer.parseInt(own.get("balance"));
                        Transaction transaction = own.multi();
                        transaction.set("balance", "" + (value + 1));
                        if (transaction.exec() != null) {
                            done++;
                        }
                    }
                }
            });
            Jobs.expect(jedis.get("balance").equals("200"), jedis.get("balance"));
        }
    }

    static void chat(RedisProtocol protocol) throws Exception {
        int members = 4, lines = 250;
        CountDownLatch subscribed = new CountDownLatch(members);
        AtomicInteger heard = new AtomicInteger();
        AtomicInteger wrong = new AtomicInteger();
        Thread[] threads = new Thread[members];
        for (int i = 0; i < members; i++) {
            threads[i] = new Thread(() -> {
                try (Jedis own = connect(protocol)) {
                    own.subscribe(new JedisPubSub() {
                        private final Map<String, Integer> next = new HashMap<>();
                        private int left = members * lines;

                        @Override
                        public void onSubscribe(String channel, int channels) {
                            subscribed.countDown();
                        }

                        @Override
                        public void onMessage(String channel, String message) {
                            String[] parts = message.split(" ");
                            int n = Integer.parseInt(parts[1]);
                            if (next.getOrDefault(parts[0], 0) != n) {
                                wrong.incrementAndGet();
                            }
                            next.put(parts[0], n + 1);
                            heard.incrementAndGet();
                            if (--left == 0) {
                                unsubscribe();
                            }
                        }
                    }, "room");
                }
            });
            threads[i].start();
        }
        subscribed.await();
        Jobs.inParallel(members, i -> {
            try (Jedis own = connect(protocol)) {
                for (int n = 0; n < lines; n++) {
                    long got = own.publish("room", i + " " + n);
                    Jobs.expect(got == members, got);
                }
            }
        });
        for (Thread thread : threads) {
            thread.join();
        }
        Jobs.expect(heard.get() == members * members * lines && wrong.get() == 0, heard, wrong);
    }

    static void rateLimiter() throws Exception {
        AtomicInteger allowed = new AtomicInteger();
        String sha;
        try (Jedis jedis = pool.getResource()) {
            jedis.scriptFlush();
            sha = jedis.scriptLoad(Jobs.LIMITER);
        }
        Jobs.inParallel(4, i -> {
            try (Jedis own = pool.getResource()) {
                for (int n = 0; n < 100; n++) {
                    allowed.addAndGet(((Long) own.evalsha(sha, List.of("limit"), List.of("250", "600000"))).intValue());
                }
            }
        });
        Jobs.expect(allowed.get() == 250, allowed);
    }

    static void distributedLock() throws Exception {
        String unlock = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger entered = new AtomicInteger();
        Jobs.inParallel(4, i -> {
            try (Jedis own = pool.getResource()) {
                for (int done = 0; done < 50;) {
                    String token = i + "-" + done;
                    if (own.set("lock", token, SetParams.setParams().nx().px(60000)) == null) {
                        Thread.sleep(1);
                        continue;
                    }
                    Jobs.expect(inside.incrementAndGet() == 1);
                    entered.incrementAndGet();
                    own.incr("entered");
                    inside.decrementAndGet();
                    Jobs.expect(own.eval(unlock, List.of("lock"), List.of(token)).equals(1L));
                    done++;
                }
            }
        });
        Jobs.expect(entered.get() == 200, entered);
    }

    static void blockingQueue() throws Exception {
        Map<String, Integer> tries = new ConcurrentHashMap<>();
        AtomicInteger done = new AtomicInteger();
        Jobs.inParallel(5, i -> {
            try (Jedis own = pool.getResource()) {
                if (i == 4) {
                    for (int n = 0; n < Jobs.COUNT; n++) {
                        own.rpush("todo", "" + n);
                    }
                    return;
                }
                for (;;) {
                    String job = own.blpop(60, "todo").get(1);
                    if (job.equals("end")) {
                        return;
                    }
                    if (Integer.parseInt(job) % 10 == 0 && tries.merge(job, 1, Integer::sum) == 1) {
                        own.rpush("todo", job);
                    } else if (done.incrementAndGet() == Jobs.COUNT) {
                        own.rpush("todo", "end", "end", "end", "end");
                    }
                }
            }
        });
        Jobs.expect(done.get() == Jobs.COUNT && tries.size() == Jobs.COUNT / 10, done, tries.size());
    }

    public static void main(String[] arguments) {
        JedisPoolConfig config = new JedisPoolConfig();
        config.setMaxTotal(16);
        pool = new JedisPool(config, Jobs.HOST, Jobs.PORT, 60000);
        Jobs.run("pipelines", () -> pipelines(RedisProtocol.RESP2));
        Jobs.run("pipelines_resp3", () -> pipelines(RedisProtocol.RESP3));
        Jobs.run("optimistic_increments", JedisJobs::optimisticIncrements);
        Jobs.run("chat", () -> chat(RedisProtocol.RESP2));
        Jobs.run("chat_resp3", () -> chat(RedisProtocol.RESP3));
        Jobs.run("rate_limiter", JedisJobs::rateLimiter);
        Jobs.run("distributed_lock", JedisJobs::distributedLock);
        Jobs.run("blocking_queue", JedisJobs::blockingQueue);
        Jobs.exit();
    }
}
