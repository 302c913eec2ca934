import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** What the Java programs share: where the server is, and how a job's outcome is told. */
final class Jobs {
    static final String HOST = System.getenv("REDIS_HOST");
    static final int PORT = Integer.parseInt(System.getenv("REDIS_PORT"));
    /** Jobs of a queue; every tenth fails the first time it is tried. */
    static final int COUNT = 1000;
    /** A rate limit: so many calls, then none until the key expires. */
    static final String LIMITER = "local used = redis.call('INCR', KEYS[1]) "
        + "if used == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end "
        + "if used <= tonumber(ARGV[1]) then return 1 else return 0 end";

    interface Job {
        void run() throws Exception;
    }

    interface Numbered {
        void run(int i) throws Exception;
    }

    private static int failed;

    static void run(String name, Job job) {
        try {
            job.run();
            System.out.println("ok " + name);
        } catch (Throwable error) {
            failed++;
            System.out.println("failed " + name + ": " + error);
            error.printStackTrace(System.out);
        }
    }

    static void exit() {
        System.exit(failed == 0 ? 0 : 1);
    }

    static void expect(boolean condition, Object... about) {
        if (!condition) {
            throw new AssertionError("not as expected: " + List.of(about));
        }
    }

    /** Runs work for 0 to n - 1 at the same time; the first error is thrown here. */
    static void inParallel(int n, Numbered work) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(n);
        List<Future<?>> all = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            int number = i;
            all.add(pool.submit((Callable<Void>) () -> {
                work.run(number);
                return null;
            }));
        }
        for (Future<?> one : all) {
            one.get();
        }
        pool.shutdown();
    }

    private Jobs() {
    }
}
