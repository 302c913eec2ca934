import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.redisson.Redisson;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RLock;
import org.redisson.api.RMapCache;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RReliableTopic;
import org.redisson.api.RSemaphore;
import org.redisson.api.RTopic;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/** Redisson: locks, semaphores, rate limiter, map cache, topics, queues; nearly all of it scripts. */
final class RedissonJobs {
    private static RedissonClient client;

    static void distributedLock() throws Exception {
        int[] counter = {0};
        Jobs.inParallel(6, i -> {
            RLock lock = client.getLock("lock");
            for (int n = 0; n < 25; n++) {
                lock.lock();
                try {
                    Jobs.expect(lock.tryLock());
                    counter[0]++;
                    lock.unlock();
                } finally {
                    lock.unlock();
                }
            }
        });
        Jobs.expect(counter[0] == 150 && !client.getLock("lock").isLocked(), counter[0]);
    }

    static void fairAndReadWriteLocks() throws Exception {
        int[] counter = {0};
        AtomicInteger reads = new AtomicInteger();
        RReadWriteLock both = client.getReadWriteLock("both");
        Jobs.inParallel(4, i -> {
            for (int n = 0; n < 10; n++) {
                RLock fair = client.getFairLock("fair");
                fair.lock();
                counter[0]++;
                fair.unlock();
                RLock side = n % 5 == 0 ? both.writeLock() : both.readLock();
                side.lock(60, TimeUnit.SECONDS);
                reads.incrementAndGet();
                side.unlock();
            }
        });
        Jobs.expect(counter[0] == 40 && reads.get() == 40, counter[0], reads);
    }

    static void semaphore() throws Exception {
        RSemaphore semaphore = client.getSemaphore("permits");
        semaphore.trySetPermits(2);
        AtomicInteger inside = new AtomicInteger();
        Jobs.inParallel(5, i -> {
            for (int n = 0; n < 20; n++) {
                semaphore.acquire();
                Jobs.expect(inside.incrementAndGet() <= 2);
                inside.decrementAndGet();
                semaphore.release();
            }
        });
        Jobs.expect(semaphore.availablePermits() == 2);
    }

    static void rateLimiter() throws Exception {
        RRateLimiter limiter = client.getRateLimiter("limiter");
        Jobs.expect(limiter.trySetRate(RateType.OVERALL, 50, Duration.ofMinutes(10)));
        AtomicInteger allowed = new AtomicInteger();
        Jobs.inParallel(4, i -> {
            for (int n = 0; n < 25; n++) {
                if (limiter.tryAcquire()) {
                    allowed.incrementAndGet();
                }
            }
        });
        Jobs.expect(allowed.get() == 50, allowed);
    }

    static void mapCache() throws Exception {
        RMapCache<String, Integer> map = client.getMapCache("cache");
        Jobs.expect(map.put("short", 1, 50, TimeUnit.MILLISECONDS) == null);
        Jobs.expect(map.put("long", 2, 10, TimeUnit.MINUTES, 5, TimeUnit.MINUTES) == null);
        Jobs.expect(map.addAndGet("sum", 5) == 5 && map.addAndGet("sum", 7) == 12);
        Jobs.expect(map.putIfAbsent("long", 3) == 2 && map.replace("long", 2, 4));
        while (map.get("short") != null) {
            Thread.sleep(10);
        }
        Jobs.expect(map.get("long") == 4 && map.remainTimeToLive("long") > 0);
        map.destroy();
    }

    static void chat() throws Exception {
        int members = 4, lines = 100;
        CountDownLatch left = new CountDownLatch(members * members * lines);
        RTopic topic = client.getTopic("room", StringCodec.INSTANCE);
        for (int i = 0; i < members; i++) {
            topic.addListener(String.class, (channel, message) -> left.countDown());
        }
        Jobs.inParallel(members, i -> {
            for (int n = 0; n < lines; n++) {
                Jobs.expect(topic.publish(i + " " + n) == 1);
            }
        });
        Jobs.expect(left.await(1, TimeUnit.MINUTES), left);
        topic.removeAllListeners();
    }

    static void reliableTopic() throws Exception {
        RReliableTopic topic = client.getReliableTopic("stream-room");
        CountDownLatch left = new CountDownLatch(100);
        topic.addListener(String.class, (channel, message) -> left.countDown());
        for (int n = 0; n < 100; n++) {
            topic.publish("m" + n);
        }
        Jobs.expect(left.await(1, TimeUnit.MINUTES), left);
        topic.removeAllListeners();
    }

    static void queueWithRetries() throws Exception {
        RBlockingQueue<Integer> queue = client.getBlockingQueue("todo");
        RDelayedQueue<Integer> delayed = client.getDelayedQueue(queue);
        Map<Integer, Integer> tries = new ConcurrentHashMap<>();
        AtomicInteger done = new AtomicInteger();
        Jobs.inParallel(5, i -> {
            if (i == 4) {
                for (int n = 0; n < Jobs.COUNT; n++) {
                    queue.add(n);
                }
                return;
            }
            for (;;) {
                Integer job = queue.poll(60, TimeUnit.SECONDS);
                Jobs.expect(job != null);
                if (job < 0) {
                    return;
                }
                if (job % 10 == 0 && tries.merge(job, 1, Integer::sum) == 1) {
                    delayed.offer(job, 20, TimeUnit.MILLISECONDS);
                } else if (done.incrementAndGet() == Jobs.COUNT) {
                    for (int worker = 0; worker < 4; worker++) {
                        queue.add(-1);
                    }
                }
            }
        });
        Jobs.expect(done.get() == Jobs.COUNT && tries.size() == Jobs.COUNT / 10, done, tries.size());
        delayed.destroy();
    }

    public static void main(String[] arguments) {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://" + Jobs.HOST + ":" + Jobs.PORT).setTimeout(60000)
            .setConnectionPoolSize(16).setConnectionMinimumIdleSize(4);
        config.setThreads(4).setNettyThreads(4);
        client = Redisson.create(config);
        Jobs.run("distributed_lock", RedissonJobs::distributedLock);
        Jobs.run("fair_and_read_write_locks", RedissonJobs::fairAndReadWriteLocks);
        Jobs.run("semaphore", RedissonJobs::semaphore);
        Jobs.run("rate_limiter", RedissonJobs::rateLimiter);
        Jobs.run("map_cache", RedissonJobs::mapCache);
        Jobs.run("chat", RedissonJobs::chat);
        Jobs.run("reliable_topic", RedissonJobs::reliableTopic);
        Jobs.run("queue_with_retries", RedissonJobs::queueWithRetries);
        Jobs.exit();
    }
}
