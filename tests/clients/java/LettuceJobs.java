import io.lettuce.core.KeyValue;
import io.lettuce.core.LettuceFutures;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.TrackingArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import io.lettuce.core.support.caching.CacheAccessor;
import io.lettuce.core.support.caching.CacheFrontend;
import io.lettuce.core.support.caching.ClientSideCaching;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** lettuce (RESP3): asynchronous pipelines, transactions, pub/sub, scripts, client-side caching, blocking queues. */
final class LettuceJobs {
    private static RedisClient client;

    static void pipelines() {
        try (StatefulRedisConnection<String, String> connection = client.connect()) {
            RedisAsyncCommands<String, String> redis = connection.async();
            connection.setAutoFlushCommands(false);
            List<RedisFuture<?>> replies = new ArrayList<>();
            for (int i = 0; i < 5000; i++) {
                redis.set("p" + i, "" + i);
                replies.add(redis.incr("p" + i));
            }
            RedisFuture<Map<String, String>> hash = redis.hset("h", Map.of("a", "1", "b", "2")) == null
                ? null : redis.hgetall("h");
            connection.flushCommands();
            connection.setAutoFlushCommands(true);
            Jobs.expect(LettuceFutures.awaitAll(1, TimeUnit.MINUTES, replies.toArray(new RedisFuture[0])));
            for (int i = 0; i < 5000; i++) {
                Jobs.expect(replies.get(i).toCompletableFuture().join().equals((long) i + 1), i);
            }
            Jobs.expect(hash.toCompletableFuture().join().size() == 2);
        }
    }

    static void optimisticIncrements() throws Exception {
        client.connect().sync().set("balance", "0");
        Jobs.inParallel(4, i -> {
            try (StatefulRedisConnection<String, String> connection = client.connect()) {
                RedisCommands<String, String> redis = connection.sync();
                for (int done = 0; done < 50;) {
                    redis.watch("balance");
                    int value = Integer.parseInt(redis.get("balance"));
                    redis.multi();
                    redis.set("balance", "" + (value + 1));
                    if (!redis.exec().wasDiscarded()) {
                        done++;
                    }
                }
            }
        });
        String balance = client.connect().sync().get("balance");
        Jobs.expect(balance.equals("200"), balance);
    }

    static void chat() throws Exception {
        int members = 4, lines = 250;
        CountDownLatch left = new CountDownLatch(members * members * lines);
        AtomicInteger wrong = new AtomicInteger();
        List<StatefulRedisPubSubConnection<String, String>> listeners = new ArrayList<>();
        for (int i = 0; i < members; i++) {
            StatefulRedisPubSubConnection<String, String> connection = client.connectPubSub();
            Map<String, Integer> next = new ConcurrentHashMap<>();
            connection.addListener(new RedisPubSubAdapter<>() {
                @Override
                public void message(String channel, String message) {
                    String[] parts = message.split(" ");
                    int n = Integer.parseInt(parts[1]);
                    if (next.getOrDefault(parts[0], 0) != n) {
                        wrong.incrementAndGet();
                    }
                    next.put(parts[0], n + 1);
                    left.countDown();
                }
            });
            connection.sync().subscribe("room");
            listeners.add(connection);
        }
        Jobs.inParallel(members, i -> {
            try (StatefulRedisConnection<String, String> own = client.connect()) {
                for (int n = 0; n < lines; n++) {
                    long got = own.sync().publish("room", i + " " + n);
                    Jobs.expect(got == members, got);
                }
            }
        });
        Jobs.expect(left.await(1, TimeUnit.MINUTES) && wrong.get() == 0, left, wrong);
        listeners.forEach(StatefulRedisPubSubConnection::close);
    }

    static void rateLimiter() throws Exception {
        AtomicInteger allowed = new AtomicInteger();
        String sha = client.connect().sync().scriptLoad(Jobs.LIMITER);
        Jobs.inParallel(4, i -> {
            try (StatefulRedisConnection<String, String> own = client.connect()) {
                for (int n = 0; n < 100; n++) {
                    Long yes = own.sync().evalsha(sha, ScriptOutputType.INTEGER, new String[] {"limit"}, "250", "600000");
                    allowed.addAndGet(yes.intValue());
                }
            }
        });
        Jobs.expect(allowed.get() == 250, allowed);
    }

    static void clientSideCaching() throws Exception {
        try (StatefulRedisConnection<String, String> reader = client.connect();
             StatefulRedisConnection<String, String> writer = client.connect()) {
            Map<String, String> map = new ConcurrentHashMap<>();
            CacheFrontend<String, String> cache = ClientSideCaching.enable(CacheAccessor.forMap(map), reader,
                TrackingArgs.Builder.enabled());
            for (int round = 0; round < 100; round++) {
                String value = "v" + round;
                writer.sync().set("cached", value);
                // The invalidation comes on another connection than the write's reply.
                for (int tries = 0; !value.equals(cache.get("cached")); tries++) {
                    Jobs.expect(tries < 10000, value, cache.get("cached"));
                    Thread.sleep(1);
                }
                Jobs.expect(map.get("cached").equals(value), map);
            }
        }
    }

    static void blockingQueue() throws Exception {
        Map<String, Integer> tries = new ConcurrentHashMap<>();
        AtomicInteger done = new AtomicInteger();
        Jobs.inParallel(5, i -> {
            try (StatefulRedisConnection<String, String> connection = client.connect()) {
                RedisCommands<String, String> redis = connection.sync();
                if (i == 4) {
                    for (int n = 0; n < Jobs.COUNT; n++) {
                        redis.rpush("todo", "" + n);
                    }
                    return;
                }
                for (;;) {
                    KeyValue<String, String> job = redis.blpop(50, "todo");
                    if (job.getValue().equals("end")) {
                        return;
                    }
                    if (Integer.parseInt(job.getValue()) % 10 == 0 && tries.merge(job.getValue(), 1, Integer::sum) == 1) {
                        redis.rpush("todo", job.getValue());
                    } else if (done.incrementAndGet() == Jobs.COUNT) {
                        redis.rpush("todo", "end", "end", "end", "end");
                    }
                }
            }
        });
        Jobs.expect(done.get() == Jobs.COUNT && tries.size() == Jobs.COUNT / 10, done, tries.size());
    }

    public static void main(String[] arguments) {
        client = RedisClient.create(RedisURI.builder().withHost(Jobs.HOST).withPort(Jobs.PORT)
            .withTimeout(Duration.ofMinutes(1)).build());
        Jobs.run("pipelines", LettuceJobs::pipelines);
        Jobs.run("optimistic_increments", LettuceJobs::optimisticIncrements);
        Jobs.run("chat", LettuceJobs::chat);
        Jobs.run("rate_limiter", LettuceJobs::rateLimiter);
        Jobs.run("client_side_caching", LettuceJobs::clientSideCaching);
        Jobs.run("blocking_queue", LettuceJobs::blockingQueue);
        Jobs.exit();
    }
}
