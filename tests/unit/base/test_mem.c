/* Memory: base/mem.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/mem_pages.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

/* The sanitizers' shadow takes the address space that a test limits. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEM_TEST_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MEM_TEST_SANITIZER 1
#endif
#endif

static void test_plain_verbs(void **state)
{
    (void)state;
    char *p = mem_alloc(100);
    assert_int_equal((uintptr_t)p % 16, 0);
    memset(p, 'x', 100);
    assert_true(mem_usable_size(p) >= 100);
    p = mem_realloc(p, 10000);
    assert_int_equal(p[99], 'x');
    mem_free(p);
    mem_free(NULL);
    p = mem_alloc(0);
    assert_non_null(p);
    mem_free_sized(p, 0);
    mem_free_sized(NULL, 8);
    p = mem_realloc(NULL, 5);
    p = mem_realloc(p, 0);
    mem_free(p);
    p = mem_calloc(10, 10);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(p[i], 0);
    }
    mem_free_sized(p, 100);
    mem_free(mem_calloc(0, 8));
    for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
        p = mem_alloc_aligned(alignment, 40);
        assert_int_equal((uintptr_t)p % alignment, 0);
        mem_free(p);
    }
    p = mem_dup("a\0b", 3);
    assert_memory_equal(p, "a\0b", 4);
    mem_free(p);
    p = mem_dup(NULL, 0);
    assert_string_equal(p, "");
    mem_free(p);
}

static void test_good_size(void **state)
{
    (void)state;
    for (size_t size = 0; size < 5000; size += 7) {
        assert_true(mem_good_size(size) >= size);
#if KEYDB_JEMALLOC
        void *p = mem_alloc(size);
        assert_int_equal(mem_usable_size(p), mem_good_size(size));
        mem_free_sized(p, size);
#endif
    }
}

static void test_try_verbs_can_fail(void **state)
{
    (void)state;
    assert_null(mem_try_alloc(SIZE_MAX));
    assert_null(mem_try_alloc((size_t)PTRDIFF_MAX + 1));
    char *p = mem_try_alloc(10);
    assert_non_null(p);
    memcpy(p, "content", 8);
    assert_null(mem_try_realloc(p, SIZE_MAX - 10));
    assert_string_equal(p, "content");
    mem_fail_after(2);
    p = mem_try_realloc(p, 20);
    assert_non_null(p);
    assert_null(mem_try_realloc(p, 30));
    assert_string_equal(p, "content");
    p = mem_try_realloc(p, 30);
    assert_non_null(p);
    mem_fail_after(1);
    assert_null(mem_try_alloc(1));
    mem_fail_after(1);
    mem_fail_after(0);
    void *q = mem_try_alloc(0);
    assert_non_null(q);
    mem_free(q);
    mem_free(p);
}

static void assert_near(size_t a, size_t b, size_t slack)
{
    if (a > b ? a - b > slack : b - a > slack) {
        print_error("%zu and %zu differ by more than %zu\n", a, b, slack);
        fail();
    }
}

#if KEYDB_JEMALLOC && !defined(MEM_TEST_SANITIZER)

/* Takes the place of libc's. Test seam: which call from now on fails, and how. */
static _Thread_local int refuse_call; /* 1: the next; 0: none */
static _Thread_local bool lose;       /* the refused call has taken the target away before */

void *mremap(void *old, size_t old_size, size_t new_size, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    void *target = va_arg(more, void *);
    va_end(more);
    if (refuse_call > 0 && --refuse_call == 0) {
        if (lose) {
            assert_int_equal(munmap(target, new_size), 0);
        }
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mremap, old, old_size, new_size, flags, target);
}

/* Every 64 KiB of a block a word of its own. */
static void fill(char *block, size_t bytes, uint64_t seed)
{
    for (size_t at = 0; at + 8 <= bytes; at += 65536) {
        uint64_t word = seed * 1000003 + at;
        memcpy(block + at, &word, 8);
    }
}

static bool is_filled(const char *block, size_t bytes, uint64_t seed)
{
    for (size_t at = 0; at + 8 <= bytes; at += 65536) {
        uint64_t word = seed * 1000003 + at;
        if (memcmp(block + at, &word, 8) != 0) {
            return false;
        }
    }
    return true;
}

/* What was never touched stays untouched when a block has to move: a copy would write it all. */
static void test_a_large_block_grows_by_its_pages(void **state)
{
    (void)state;
    size_t size = 256 * MIB, before = mem_rss_bytes();
    char *p = mem_try_alloc(size);
    assert_non_null(p);
    for (int i = 0; i < 4; i++) {
        char *neighbour = mem_try_alloc(64 * MIB); /* what is behind the block is not free */
        fill(p, 2 * MIB, 7);
        memcpy(p + size - 6, "end", 4);
        char *grown = i % 2 ? mem_try_realloc(p, size + 32 * MIB) : mem_realloc(p, size + 32 * MIB);
        assert_non_null(grown);
        assert_true(is_filled(grown, 2 * MIB, 7));
        assert_string_equal(grown + size - 6, "end");
        p = grown;
        size += 32 * MIB;
        mem_free(neighbour);
    }
    assert_true(mem_rss_bytes() < before + 64 * MIB);
    size_t used = mem_used_bytes();
    assert_near(used, mem_stats().allocated_bytes, used / 100);
    mem_free(p);
}

/* Where the system refuses, in the first step or in the second, with or without having taken the
 * target away, the content is there all the same. */
static void test_a_large_block_grows_where_pages_do_not_move(void **state)
{
    (void)state;
    for (int call = 1; call <= 4; call++) {
        for (int lost = 0; lost < 2; lost++) {
            char *p = mem_try_alloc(12 * MIB), *q = mem_try_alloc(12 * MIB);
            fill(p, 12 * MIB, 1);
            refuse_call = call;
            lose = lost && call % 2 == 0;
            p = mem_try_realloc(p, 40 * MIB);
            refuse_call = 0;
            assert_true(is_filled(p, 12 * MIB, 1));
            fill(p, 40 * MIB, 2);
            assert_true(is_filled(p, 40 * MIB, 2));
            mem_free(q);
            mem_free(p);
        }
    }
    /* A block whose pages lie in several mappings. */
    char *p = mem_try_alloc(12 * MIB);
    fill(p, 12 * MIB, 3);
    char *page = (char *)(((uintptr_t)p + 5 * MIB) & ~(uintptr_t)4095);
    assert_int_equal(madvise(page, 4096, MADV_DONTDUMP), 0);
    p = mem_try_realloc(p, 100 * MIB);
    assert_true(is_filled(p, 12 * MIB, 3));
    mem_free(p);
}

/* Blocks grow, are checked and freed while other threads map and unmap memory: nobody is given
 * what is somebody's. */
static void *grow_and_shrink(void *argument)
{
    uint64_t seed = (uintptr_t)argument;
    char *blocks[3] = {NULL};
    size_t sizes[3] = {0};
    for (uint64_t i = 0; i < 300; i++) {
        int at = (int)(i % 3);
        size_t size = (4 + (i * 7 + seed * 5) % 40) * MIB;
        if (sizes[at] == 0 || size <= sizes[at]) {
            mem_free(blocks[at]);
            blocks[at] = mem_try_alloc(size);
            fill(blocks[at], size, seed + (uint64_t)at);
        } else {
            blocks[at] = mem_try_realloc(blocks[at], size);
            if (!is_filled(blocks[at], sizes[at], seed + (uint64_t)at)) {
                return argument;
            }
            fill(blocks[at], size, seed + (uint64_t)at);
        }
        sizes[at] = size;
        char *mapped = mmap(NULL, MIB * (1 + i % 30), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        fill(mapped, MIB, ~seed);
        for (int other = 0; other < 3; other++) {
            if (!is_filled(blocks[other], sizes[other], seed + (uint64_t)other)) {
                return argument;
            }
        }
        munmap(mapped, MIB * (1 + i % 30));
    }
    for (int at = 0; at < 3; at++) {
        mem_free(blocks[at]);
    }
    return NULL;
}

static void test_large_blocks_grow_beside_others(void **state)
{
    (void)state;
    pthread_t others[6];
    for (uintptr_t i = 0; i < 6; i++) {
        assert_int_equal(pthread_create(&others[i], NULL, grow_and_shrink, (void *)(100 * (i + 1))),
                         0);
    }
    for (int i = 0; i < 6; i++) {
        void *changed;
        assert_int_equal(pthread_join(others[i], &changed), 0);
        assert_null(changed);
    }
}

#endif

static void test_used_bytes_follow(void **state)
{
    (void)state;
    size_t before = mem_used_bytes();
    void *blocks[64];
    for (int i = 0; i < 64; i++) {
        blocks[i] = mem_alloc(MIB / 4);
        memset(blocks[i], 1, MIB / 4);
    }
    size_t during = mem_used_bytes();
    assert_near(during - before, 16 * MIB, MIB / 2);
    assert_near(during, mem_stats().allocated_bytes, during / 100);
    assert_true(mem_peak_bytes() >= during);
    assert_true(mem_rss_bytes() >= 16 * MIB);
    for (int i = 0; i < 64; i++) {
        mem_free_sized(blocks[i], MIB / 4);
    }
    assert_near(mem_used_bytes(), before, MIB / 2);
    assert_true(mem_peak_bytes() >= during);
}

#define BURST 64
/* Blocks of 1 MiB, touched; and freed again. */
static void make_burst(void *blocks[BURST])
{
    for (int i = 0; i < BURST; i++) {
        blocks[i] = mem_alloc_reused(MIB);
        memset(blocks[i], i, MIB);
    }
}

static void end_burst(void *blocks[BURST])
{
    for (int i = 0; i < BURST; i++) {
        for (size_t at = 0; at < MIB; at += MIB / 4) {
            assert_int_equal(((unsigned char *)blocks[i])[at], i);
        }
        mem_free_reused(blocks[i]);
    }
}

/* Counted as any other memory is, and given back when that is asked for. */
static void test_blocks_that_come_in_bursts(void **state)
{
    (void)state;
    void *blocks[BURST];
    size_t before = mem_used_bytes();
    mem_free_reused(NULL);
    mem_free_reused(mem_alloc_reused(0));
    make_burst(blocks);
    assert_near(mem_used_bytes() - before, BURST * MIB, MIB / 2);
    assert_near(mem_used_bytes(), mem_stats().allocated_bytes, mem_used_bytes() / 100);
    end_burst(blocks);
    assert_near(mem_used_bytes(), before, MIB / 2);
    size_t resident = mem_rss_bytes();
    mem_purge();
    if (KEYDB_JEMALLOC) {
        assert_true(mem_rss_bytes() + BURST / 2 * MIB < resident);
    }
}

#if KEYDB_JEMALLOC && !defined(MEM_TEST_SANITIZER)
static long faults(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_minflt;
}

/* What others allocate meanwhile takes none of the pages, which the next burst finds. */
static void test_a_burst_finds_the_pages_of_the_last_one(void **state)
{
    (void)state;
    void *blocks[BURST], *others[BURST];
    make_burst(blocks);
    end_burst(blocks);
    for (int i = 0; i < BURST; i++) {
        others[i] = mem_alloc(MIB);
        memset(others[i], i, MIB);
    }
    long before = faults();
    make_burst(blocks);
    assert_true(faults() - before < (long)(BURST * MIB / MEM_PAGE_BYTES / 8));
    end_burst(blocks);
    for (int i = 0; i < BURST; i++) {
        mem_free(others[i]);
    }
}
#endif

static void *keep_a_block(void *registered)
{
    if (registered != NULL) {
        mem_thread_enter();
        mem_thread_enter();
    }
    char *block = mem_alloc(32 * MIB);
    for (size_t at = 0; at < 32 * MIB; at += 4096) {
        block[at] = 1;
    }
    if (registered != NULL) {
        mem_thread_leave();
        mem_thread_leave();
    }
    return block;
}

/* What a thread allocated counts on when it has gone, and is freed by another. */
static void test_a_leaving_thread_keeps_its_balance(void **state)
{
    (void)state;
    size_t before = mem_used_bytes();
    for (int round = 0; round < MEM_MAX_THREADS + 64; round++) {
        pthread_t thread;
        void *block;
        assert_int_equal(pthread_create(&thread, NULL, keep_a_block, &round), 0);
        pthread_join(thread, &block);
        if (round % 64 == 0) {
            assert_near(mem_used_bytes(), before + 32 * MIB, 2 * MIB);
        }
        mem_free(block);
    }
    assert_near(mem_used_bytes(), before, 2 * MIB);
}

static void test_strangers_are_found_by_stats(void **state)
{
    (void)state;
    pthread_t thread;
    void *block;
    assert_int_equal(pthread_create(&thread, NULL, keep_a_block, NULL), 0);
    pthread_join(thread, &block);
    size_t truth = mem_stats().allocated_bytes;
    assert_true(truth >= 32 * MIB);
    assert_near(mem_used_bytes(), truth, truth / 100);
    mem_free(block);
    truth = mem_stats().allocated_bytes;
    assert_near(mem_used_bytes(), truth, truth / 100);
}

static _Atomic bool stop;

static void *churn(void *arg)
{
    (void)arg;
    mem_thread_enter();
    for (size_t size = 16; !stop; size = size * 5 % 60000 + 16) {
        mem_free(mem_alloc(size));
    }
    mem_thread_leave();
    return NULL;
}

static void test_counting_while_others_work_and_fork(void **state)
{
    (void)state;
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, churn, NULL), 0);
    }
    size_t before = mem_used_bytes();
    for (int i = 0; i < 1000; i++) {
        assert_near(mem_used_bytes(), before, MIB);
    }
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        size_t used = mem_used_bytes();
        _exit(used > before + MIB || used + MIB < before);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    stop = true;
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void *nothing(void *arg)
{
    return arg;
}

#define COPIES 400
#define CHILDREN 60

/* What libc allocates itself: threads, and copies, more of them than a thread's own cache has. */
static void *churn_in_libc(void *arg)
{
    mem_thread_enter();
    static const char text[300] = {[0 ... 298] = 'x'};
    while (!stop) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, NULL) == 0) {
            pthread_join(thread, NULL);
        }
        char *copies[COPIES];
        for (int i = 0; i < COPIES; i++) {
            copies[i] = strdup(text + i % 256);
        }
        for (int i = 0; i < COPIES; i++) {
            free(copies[i]);
        }
    }
    mem_thread_leave();
    return arg;
}

/* A child has no thread but its own, and finds no allocator that another one was amid. */
static void test_a_child_can_allocate(void **state)
{
    (void)state;
    pthread_t threads[3];
    stop = false;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, churn_in_libc, NULL), 0);
    }
    bool right = true;
    for (int i = 0; i < CHILDREN && right; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60); /* one that hangs */
            for (size_t size = 16; size < 4096; size += 16) {
                for (int n = 0; n < 16; n++) {
                    (void)mem_alloc(size);
                }
            }
            _exit(0);
        }
        int status = -1;
        right = child > 0 && waitpid(child, &status, 0) == child && status == 0;
    }
    stop = true;
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(right);
}

static void test_names_and_figures(void **state)
{
    (void)state;
    struct mem_stats stats = mem_stats();
    assert_true(stats.active_bytes >= stats.allocated_bytes);
    assert_true(stats.resident_bytes > 0);
    mem_purge();
#if KEYDB_JEMALLOC
    assert_int_equal(strncmp(mem_allocator_name(), "jemalloc-5.", 11), 0);
    assert_null(strchr(mem_allocator_name() + 9, '-'));
#else
    assert_true(strlen(mem_allocator_name()) > 0);
#endif
}

static void test_fail_above(void **state)
{
    (void)state;
    mem_fail_above(1000);
    assert_null(mem_try_alloc(1001));
    char *p = mem_try_alloc(1000);
    assert_non_null(p);
    assert_null(mem_try_realloc(p, 1001));
    assert_false(mem_reserve(1001));
    assert_true(mem_reserve(1000));
    mem_unreserve();
#if !KEYDB_DEBUG
    mem_free(mem_alloc(5000)); /* the plain verbs do not fail */
#endif
    mem_fail_above(SIZE_MAX);
    assert_true(mem_reserve(1001));
    assert_true(mem_reserve(2002)); /* instead of the other */
    mem_unreserve();
    mem_unreserve();
    mem_free(p);
}

#if !defined(MEM_TEST_SANITIZER)
/* Which verb finds the reserve when the allocator has nothing else. */
static void *by_alloc(size_t size)
{
    return mem_alloc(size);
}
static void *by_calloc(size_t size)
{
    return mem_calloc(1, size);
}
static void *by_realloc(size_t size)
{
    return mem_realloc(mem_alloc(100), size);
}
static void *by_aligned(size_t size)
{
    return mem_alloc_aligned(64, size);
}

static size_t address_space_bytes(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%zu", &pages), 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* In a child whose address space ends soon: 0 when all is as promised. */
static int use_reserve(void *(*verb)(size_t))
{
    const size_t block = (size_t)64 << 20;
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = address_space_bytes() + block + block / 2;
    if (setrlimit(RLIMIT_AS, &limit) != 0) {
        return 1;
    }
    if (mem_reserve(3 * block)) {
        return 2;
    }
    if (!mem_reserve(block)) {
        return 3;
    }
    void *other = malloc(block);
    if (other) {
        return 4; /* the limit does not bind: nothing was tested */
    }
    char *p = verb(block);
    p[0] = p[block - 1] = 'x';
    mem_free(p);
    mem_unreserve();
    return 0;
}

static void test_plain_verbs_find_the_reserve(void **state)
{
    (void)state;
    static void *(*const verbs[])(size_t) = {by_alloc, by_calloc, by_realloc, by_aligned};
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            _exit(use_reserve(verbs[i]));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}
#endif

/* A block of 'x' is zeroed in part: what is around it stays. */
static void check_zeroing(size_t block, size_t at, size_t size)
{
    char *bytes = mem_alloc(block);
    memset(bytes, 'x', block);
    mem_zero(bytes + at, size);
    for (size_t i = 0; i < block; i++) {
        char wanted = i >= at && i < at + size ? 0 : 'x';
        if (bytes[i] != wanted) {
            fail_msg("byte %zu of %zu is %d", i, block, bytes[i]);
        }
    }
    mem_free(bytes);
}

static void test_zeroing(void **state)
{
    static const size_t sizes[] = {
        0, 1, 4095, 4096, 4097, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 1 << 21, (1 << 22) + 4097};
    static const size_t places[] = {0, 1, 16, 4095, 4096, 4097, 8191};
    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++) {
            check_zeroing(places[p] + sizes[s] + 1, places[p], sizes[s]);
            check_zeroing(places[p] + sizes[s] + 5000, places[p], sizes[s]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_verbs),
        cmocka_unit_test(test_good_size),
        cmocka_unit_test(test_zeroing),
        cmocka_unit_test(test_try_verbs_can_fail),
        cmocka_unit_test(test_fail_above),
#if !defined(MEM_TEST_SANITIZER)
        cmocka_unit_test(test_plain_verbs_find_the_reserve),
#endif
        cmocka_unit_test(test_used_bytes_follow),
        cmocka_unit_test(test_blocks_that_come_in_bursts),
#if KEYDB_JEMALLOC && !defined(MEM_TEST_SANITIZER)
        cmocka_unit_test(test_a_burst_finds_the_pages_of_the_last_one),
#endif
        cmocka_unit_test(test_a_leaving_thread_keeps_its_balance),
        cmocka_unit_test(test_counting_while_others_work_and_fork),
        cmocka_unit_test(test_strangers_are_found_by_stats),
        cmocka_unit_test(test_names_and_figures),
#if KEYDB_JEMALLOC && !defined(MEM_TEST_SANITIZER)
        cmocka_unit_test(test_a_large_block_grows_by_its_pages),
        cmocka_unit_test(test_a_large_block_grows_where_pages_do_not_move),
        cmocka_unit_test(test_large_blocks_grow_beside_others),
#endif
        /* The last: libc keeps some of its threads' memory. */
        cmocka_unit_test(test_a_child_can_allocate),
    };
    mem_thread_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
