/* Streams of blocks: what is read is what was written, whoever reads from where, and no block
 * stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/rand.h"
#include "repl/chain.h"
#include "long.h"

#include <pthread.h>
#include <string.h>

/* Byte number `offset` of every stream here. */
static char byte_at(uint64_t offset)
{
    return (char)((offset * 2654435761u) >> 13);
}

static void append_some(struct chain *c, size_t len)
{
    struct buf b = {0};
    for (size_t i = 0; i < len; i++) {
        buf_append_char(&b, byte_at(c->end + i));
    }
    chain_append(c, buf_slice(&b));
    buf_deinit(&b);
}

/* Reads some, at most; returns how much there was. */
static uint64_t read_some(struct chain_reader *r, uint64_t most)
{
    struct iovec vectors[3];
    uint64_t shown = 0;
    int count = chain_reader_vectors(r, vectors, 3);
    for (int i = 0; i < count && shown < most; i++) {
        for (size_t k = 0; k < vectors[i].iov_len && shown < most; k++, shown++) {
            if (((char *)vectors[i].iov_base)[k] != byte_at(r->position + shown)) {
                fail_msg("byte %llu", (unsigned long long)(r->position + shown));
            }
        }
    }
    chain_reader_advance(r, shown);
    return shown;
}

/* That all memory has come back; LeakSanitizer says so too. ThreadSanitizer's allocator counts what
 * was freed a little later. */
static void assert_used_again(size_t before)
{
#ifdef __SANITIZE_THREAD__
    (void)before;
#else
    assert_true(mem_used_bytes() == before);
#endif
}

static void test_places(void **state)
{
    (void)state;
    size_t before = mem_used_bytes();
    struct chain c;
    struct chain_reader first, readers[5] = {{0}};
    chain_init(&c, 1000);
    chain_reader_at_end(&first, &c);
    append_some(&c, 3 * CHAIN_BLOCK_BYTES);
    static const uint64_t at[5] = {0, 1, CHAIN_BLOCK_BYTES, 2 * CHAIN_BLOCK_BYTES + 5,
                                   3 * CHAIN_BLOCK_BYTES};
    for (int i = 0; i < 5; i++) {
        chain_reader_at(&readers[i], &first, 1000 + at[i]);
        assert_true(readers[i].position == 1000 + at[i]);
    }
    append_some(&c, 7);
    for (int i = 0; i < 5; i++) {
        uint64_t total = 0, got;
        while ((got = read_some(&readers[i], UINT64_MAX)) > 0) {
            total += got;
        }
        assert_true(total == 3 * CHAIN_BLOCK_BYTES + 7 - at[i]);
        assert_true(readers[i].position == c.end);
    }
    chain_reader_drop(&first);
    chain_reader_drop(&first);
    chain_deinit(&c);
    for (int i = 0; i < 5; i++) {
        chain_reader_drop(&readers[i]);
    }
    assert_used_again(before);
}

static void test_random(void **state)
{
    (void)state;
    size_t before = mem_used_bytes();
    for (int round = 0; round < UNIT_LONG(50); round++) {
        struct chain c;
        struct chain_reader first, readers[4];
        chain_init(&c, rand_below(1u << 20));
        chain_reader_at_end(&first, &c);
        for (int i = 0; i < 4; i++) {
            chain_reader_at(&readers[i], &first, first.position);
        }
        for (int step = 0; step < 60; step++) {
            append_some(&c, rand_below(20000));
            read_some(&readers[rand_below(4)], rand_below(40000));
        }
        for (int i = 0; i < 4; i++) {
            while (read_some(&readers[i], UINT64_MAX) > 0) {
            }
            assert_true(readers[i].position == c.end);
            chain_reader_drop(&readers[i]);
        }
        chain_deinit(&c);
        chain_reader_drop(&first);
    }
    assert_used_again(before);
}

/* Blocks that were read by everybody are gone, though the chain goes on. */
static void test_memory_is_bounded(void **state)
{
    (void)state;
    struct chain c;
    struct chain_reader r;
    chain_init(&c, 0);
    chain_reader_at_end(&r, &c);
    size_t before = mem_used_bytes();
    for (int i = 0; i < 200; i++) {
        append_some(&c, CHAIN_BLOCK_BYTES / 2);
        while (read_some(&r, UINT64_MAX) > 0) {
        }
    }
    assert_true(mem_used_bytes() < before + 3 * sizeof(struct chain_block));
    chain_reader_drop(&r);
    chain_deinit(&c);
}

#define CONCURRENT_BYTES ((uint64_t)4 * 1024 * 1024)

static void *read_all(void *argument)
{
    struct chain_reader *r = argument;
    uint64_t end = r->position + CONCURRENT_BYTES;
    while (r->position < end) {
        read_some(r, UINT64_MAX);
    }
    return NULL;
}

static void test_concurrent(void **state)
{
    (void)state;
    struct chain c;
    struct chain_reader readers[2];
    pthread_t threads[2];
    chain_init(&c, 0);
    for (int i = 0; i < 2; i++) {
        chain_reader_at_end(&readers[i], &c);
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, &readers[i]), 0);
    }
    while (c.end < CONCURRENT_BYTES) {
        uint64_t left = CONCURRENT_BYTES - c.end;
        append_some(&c, left < 7777 ? left : 7777);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        chain_reader_drop(&readers[i]);
    }
    chain_deinit(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_concurrent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
