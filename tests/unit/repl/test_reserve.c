/* A stream's part on disk: what is read is what was written, or it is said not to be there,
 * whatever happens to the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rand.h"
#include "base/thread.h"
#include "repl/reserve.h"
#include "repl/reserve_file.h"
#include "long.h"

#include <dirent.h>
#include <fcntl.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define NAME "test-stream.reserve"
#define KIB ((uint64_t)1024)
#define MIB (KIB * KIB)
/* What one of 1 MiB keeps of full blocks. */
#define LEAST_KEPT (63 * (uint64_t)CHAIN_BLOCK_BYTES)

/* Byte number `offset` of stream `salt`. */
static char byte_at(uint64_t salt, uint64_t offset)
{
    return (char)(((offset + salt) * 2654435761u) >> 13);
}

struct stream {
    uint64_t salt;
    struct chain chain;
    struct reserve *reserve;
};

static void begin(struct stream *s, uint64_t salt, uint64_t start)
{
    s->salt = salt;
    chain_init(&s->chain, start);
    reserve_follow(s->reserve, &s->chain);
}

static void append(struct stream *s, uint64_t bytes)
{
    char piece[4096];
    while (bytes > 0) {
        size_t take = bytes < sizeof(piece) ? (size_t)bytes : sizeof(piece);
        for (size_t i = 0; i < take; i++) {
            piece[i] = byte_at(s->salt, s->chain.end + i);
        }
        chain_append(&s->chain, slice_of(piece, take));
        reserve_note(s->reserve, &s->chain);
        bytes -= take;
    }
}

static struct reserve_facts look(struct stream *s)
{
    struct reserve_facts facts;
    reserve_look(s->reserve, &facts);
    return facts;
}

/* It has written what it can. Waking it is the writer's part: it is told once more. */
static void settle(struct stream *s)
{
    while (look(s).state == RESERVE_MAKING || look(s).queued_bytes > 300 * KIB) {
        usleep(1000);
    }
}

/* Reads all from there on, in pieces of random size; what there was. -1: it was not (all) kept. */
static int64_t read_from(struct stream *s, uint64_t position)
{
    struct reserve_place place;
    char piece[50000];
    if (!reserve_place_at(s->reserve, position, &place)) {
        return -1;
    }
    for (;;) {
        uint64_t at = place.position;
        ssize_t got = reserve_read(s->reserve, &place, piece, 1 + rand_below(sizeof(piece)));
        if (got <= 0) {
            return got < 0 ? -1 : (int64_t)(place.position - position);
        }
        assert_true(place.position == at + (uint64_t)got);
        for (ssize_t i = 0; i < got; i++) {
            if (piece[i] != byte_at(s->salt, at + (uint64_t)i)) {
                fail_msg("byte %llu", (unsigned long long)(at + (uint64_t)i));
            }
        }
    }
}

/* Reads all that is kept; its thread may be writing over the first of it yet. */
static int64_t read_all_kept(struct stream *s)
{
    for (;;) {
        struct reserve_facts facts = look(s);
        int64_t got = read_from(s, facts.begin);
        if (got >= 0) {
            assert_true((uint64_t)got == facts.end - facts.begin);
            return got;
        }
        assert_true(look(s).begin > facts.begin);
    }
}

static struct reserve *create(uint64_t bytes)
{
    struct reserve *r = reserve_create(NAME, bytes);
    assert_non_null(r);
    return r;
}

static void end(struct stream *s)
{
    chain_deinit(&s->chain);
    reserve_destroy(&s->reserve);
    assert_null(s->reserve);
    assert_int_equal(chain_memory_bytes(), 0);
    assert_int_equal(access(NAME, F_OK), -1);
}

/* A descriptor of the one file without a name that this process has open for writing. */
static int nameless_fd(void)
{
    int found = -1;
    DIR *all = opendir("/proc/self/fd");
    struct dirent *e;
    while ((e = readdir(all)) != NULL) {
        char path[300], target[300];
        snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
        ssize_t len = readlink(path, target, sizeof(target) - 1);
        if (len > 0) {
            target[len] = '\0';
            int fd = (int)strtol(e->d_name, NULL, 10);
            bool writes = (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
            if (writes && strstr(target, " (deleted)") && target[0] == '/' &&
                !strstr(target, "memfd")) {
                found = fd;
            }
        }
    }
    closedir(all);
    assert_true(found >= 0);
    return found;
}

/* ---- what is kept ---- */

static void test_what_is_kept(void **state)
{
    (void)state;
    struct stream s = {.reserve = create(1)}; /* taken as 1 MiB */
    begin(&s, 1, 1000);
    struct reserve_place place;
    assert_true(reserve_place_at(s.reserve, 1000, &place));
    assert_false(reserve_place_at(s.reserve, 999, &place));
    assert_false(reserve_place_at(s.reserve, 1001, &place));
    assert_int_equal(read_from(&s, 1000), 0);
    append(&s, 10); /* in the queue */
    assert_int_equal(read_from(&s, 1000), 10);
    assert_int_equal(read_from(&s, 1010), 0);
    append(&s, 700 * KIB); /* in both */
    settle(&s);
    assert_int_equal(read_from(&s, 1000), 10 + 700 * KIB);
    append(&s, 9 * MIB);
    settle(&s);
    struct reserve_facts facts = look(&s);
    assert_int_equal(facts.state, RESERVE_READY);
    assert_int_equal(facts.size_bytes, MIB);
    assert_int_equal(facts.faults, 0);
    assert_true(facts.end == s.chain.end && facts.end - facts.begin >= LEAST_KEPT);
    assert_true((uint64_t)read_all_kept(&s) >= LEAST_KEPT);
    assert_int_equal(read_from(&s, facts.begin - 1), -1);
    assert_int_equal(read_from(&s, 1000), -1);
    end(&s);
}

/* Who comes later is not given what is before; who reads goes on, in the file and in the queue. */
static void test_hidden(void **state)
{
    (void)state;
    struct stream s = {.reserve = create(2 * MIB)};
    struct reserve_place place;
    char piece[1000];
    begin(&s, 1, 0);
    append(&s, 600 * KIB);
    settle(&s);
    assert_true(reserve_place_at(s.reserve, 1000, &place));
    reserve_hide(s.reserve, &s.chain);
    append(&s, 10);
    assert_int_equal(look(&s).begin, 600 * KIB);
    assert_int_equal(read_from(&s, 600 * KIB - 1), -1);
    assert_int_equal(read_from(&s, 600 * KIB), 10);
    while (place.position < s.chain.end) {
        uint64_t at = place.position;
        ssize_t got = reserve_read(s.reserve, &place, piece, sizeof(piece));
        assert_true(got > 0 && place.position == at + (uint64_t)got);
        for (ssize_t i = 0; i < got; i++) {
            assert_true(piece[i] == byte_at(1, at + (uint64_t)i));
        }
    }
    chain_deinit(&s.chain);
    begin(&s, 2, 0); /* nothing is hidden of the next stream */
    append(&s, 10);
    assert_int_equal(read_from(&s, 0), 10);
    end(&s);
}

/* Sizes, places and amounts as they come, and one stream after the other. */
static void test_random(void **state)
{
    (void)state;
    for (int round = 0; round < UNIT_LONG(12); round++) {
        struct stream s = {.reserve = create(MIB + rand_below(3 * MIB))};
        for (int life = 0; life < 3; life++) {
            begin(&s, rand_u64() % 1000, rand_below(MIB));
            for (int i = 0; i < 20; i++) {
                append(&s, rand_below(rand_below(2) ? 400 * KIB : 20000));
                struct reserve_facts facts = look(&s);
                uint64_t at = facts.begin + rand_below(facts.end - facts.begin + 1);
                int64_t got = read_from(&s, at);
                /* What was kept when we looked may have been overwritten since, and no other. */
                assert_true(got == (int64_t)(s.chain.end - at) || look(&s).begin > at);
                assert_int_equal(facts.faults, 0);
            }
            chain_deinit(&s.chain);
        }
        reserve_leave(s.reserve);
        chain_init(&s.chain, 0);
        end(&s);
    }
}

/* A place of another stream is of no use, though its offset is kept of this one. */
static void test_another_life(void **state)
{
    (void)state;
    struct stream s = {.reserve = create(MIB)};
    struct reserve_place place;
    char piece[100];
    begin(&s, 1, 0);
    append(&s, 600 * KIB);
    settle(&s);
    assert_true(reserve_place_at(s.reserve, 1000, &place));
    assert_true(reserve_is_of_now(s.reserve, &place));
    chain_deinit(&s.chain);
    begin(&s, 2, 0);
    append(&s, 600 * KIB);
    assert_false(reserve_is_of_now(s.reserve, &place));
    assert_int_equal(reserve_read(s.reserve, &place, piece, sizeof(piece)), -1);
    assert_int_equal(read_from(&s, 1000), 600 * KIB - 1000);
    reserve_leave(s.reserve);
    assert_int_equal(read_from(&s, 1000), -1);
    end(&s);
}

/* ---- faults ---- */

/* What the writer has taken out of the queue is let go of when that batch ends. */
static void wait_for_memory(size_t bytes)
{
    while (chain_memory_bytes() > bytes) {
        usleep(1000);
    }
}

static void test_damage(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct stream s = {.reserve = create(2 * MIB)};
        begin(&s, 3, 5);
        append(&s, 1536 * KIB);
        settle(&s);
        int fd = nameless_fd();
        char bits[100];
        memset(bits, 0xff, sizeof(bits));
        if (kind == 0) {
            assert_int_equal(pwrite(fd, bits, sizeof(bits), 5 * RESERVE_SLOT_BYTES + 7000),
                             sizeof(bits));
        } else if (kind == 1) {
            assert_int_equal(ftruncate(fd, 3 * RESERVE_SLOT_BYTES + 1), 0);
        } else {
            /* A slot in another one's place. */
            char slot[RESERVE_SLOT_BYTES];
            assert_int_equal(pread(fd, slot, sizeof(slot), 4 * RESERVE_SLOT_BYTES), sizeof(slot));
            assert_int_equal(pwrite(fd, slot, sizeof(slot), 5 * RESERVE_SLOT_BYTES), sizeof(slot));
        }
        /* Behind the damage all is well, until it is found. */
        if (kind != 1) {
            assert_true(read_from(&s, 5 + 10 * CHAIN_BLOCK_BYTES) > 0);
        }
        assert_int_equal(read_from(&s, 5), -1);
        struct reserve_facts facts = look(&s);
        assert_int_equal(facts.state, RESERVE_BROKEN);
        assert_int_equal(facts.faults, 1);
        assert_int_equal(read_from(&s, facts.begin - 1), -1);
        /* What comes now is not held for it. */
        append(&s, 3 * MIB);
        assert_true(look(&s).queued_bytes <= 5 * CHAIN_BLOCK_BYTES);
        wait_for_memory(8 * sizeof(struct chain_block));
        end(&s);
    }
}

static void test_no_place_for_a_file(void **state)
{
    (void)state;
    char here[500];
    assert_non_null(getcwd(here, sizeof(here)));
    char directory[] = "/tmp/reserve.XXXXXX";
    assert_non_null(mkdtemp(directory));
    assert_int_equal(chdir(directory), 0);
    assert_int_equal(rmdir(directory), 0);
    struct stream s = {.reserve = create(MIB)};
    begin(&s, 4, 0);
    while (look(&s).state == RESERVE_MAKING) {
        usleep(1000);
    }
    assert_int_equal(look(&s).state, RESERVE_BROKEN);
    append(&s, 3 * MIB);
    assert_int_equal(read_from(&s, 0), -1);
    assert_true(chain_memory_bytes() <= 8 * sizeof(struct chain_block));
    assert_int_equal(chdir(here), 0);
    end(&s);
}

/* Files may not be so long: a disk that is full. */
static void test_no_room(void **state)
{
    (void)state;
    struct rlimit before, limit;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 2 * MIB;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    struct stream s = {.reserve = create(4 * MIB)}; /* it cannot be made */
    begin(&s, 5, 0);
    while (look(&s).state == RESERVE_MAKING) {
        usleep(1000);
    }
    assert_int_equal(look(&s).state, RESERVE_BROKEN);
    append(&s, MIB);
    assert_int_equal(read_from(&s, 0), -1);
    end(&s);

    s.reserve = create(2 * MIB); /* it can, and then no more can be written */
    begin(&s, 6, 0);
    settle(&s);
    assert_int_equal(look(&s).state, RESERVE_READY);
    limit.rlim_cur = 512 * KIB;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    append(&s, MIB);
    while (look(&s).state == RESERVE_READY) {
        append(&s, 256 * KIB);
        usleep(1000);
    }
    assert_int_equal(look(&s).faults, 1);
    append(&s, KIB); /* what has been waiting is kept until then */
    assert_int_equal(read_from(&s, 0), -1);
    end(&s);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

/* What stands under the name is somebody's remains, where a nameless file cannot be made at once;
 * it is never read. */
static void test_the_file(void **state)
{
    (void)state;
    int fd;
    assert_int_equal(reserve_file_create(NAME, 4 * RESERVE_SLOT_BYTES, &fd), 0);
    char *slots = mem_alloc(2 * RESERVE_SLOT_BYTES), *read = mem_alloc(RESERVE_SLOT_BYTES);
    char block[CHAIN_BLOCK_BYTES];
    const char *bytes;
    memset(block, 'a', sizeof(block));
    reserve_slot_fill(slots, 7, 100, block);
    memset(block, 'b', sizeof(block));
    reserve_slot_fill(slots + RESERVE_SLOT_BYTES, 7, 200, block);
    assert_int_equal(reserve_file_write(fd, 2, slots, 2), 0);
    assert_int_equal(reserve_file_read(fd, 3, 7, 200, read, &bytes), 0);
    assert_memory_equal(bytes, block, sizeof(block));
    assert_int_equal(reserve_file_read(fd, 3, 8, 200, read, &bytes), EBADMSG);
    assert_int_equal(reserve_file_read(fd, 3, 7, 100, read, &bytes), EBADMSG);
    assert_int_equal(reserve_file_read(fd, 2, 7, 200, read, &bytes), EBADMSG);
    assert_int_equal(reserve_file_read(fd, 0, 7, 0, read, &bytes), EBADMSG);
    assert_int_equal(reserve_file_read(fd, 4, 7, 0, read, &bytes), EBADMSG); /* beyond its end */
    for (int i = 0; i < UNIT_LONG(500); i++) {                               /* any bit */
        uint64_t bit = rand_below(8 * RESERVE_SLOT_BYTES);
        char changed, *at = slots + RESERVE_SLOT_BYTES + bit / 8;
        changed = (char)(*at ^ (1 << bit % 8));
        off_t place = (off_t)(3 * RESERVE_SLOT_BYTES + bit / 8);
        assert_int_equal(pwrite(fd, &changed, 1, place), 1);
        assert_int_equal(reserve_file_read(fd, 3, 7, 200, read, &bytes), EBADMSG);
        assert_int_equal(pwrite(fd, at, 1, place), 1);
    }
    assert_int_equal(reserve_file_read(fd, 3, 7, 200, read, &bytes), 0);
    mem_free(slots);
    mem_free(read);
    close(fd);
    assert_int_equal(reserve_file_write(fd, 0, "", 1), EBADF);
}

/* ---- together ---- */

struct reader {
    struct stream *s;
    _Atomic bool *stop;
    uint64_t bytes, lost;
};

static void *read_on(void *argument)
{
    struct reader *r = argument;
    thread_enter("reader");
    while (!*r->stop) {
        struct reserve_facts facts = look(r->s);
        int64_t got = read_from(r->s, facts.begin + rand_below(facts.end - facts.begin + 1));
        r->bytes += got > 0 ? (uint64_t)got : 0;
        r->lost += got < 0;
    }
    thread_leave();
    return NULL;
}

/* Readers while it is written round and round: never a wrong byte, and never taken for damage. */
static void test_concurrent(void **state)
{
    (void)state;
    struct stream s = {.reserve = create(3 * MIB)};
    _Atomic bool stop = false;
    pthread_t threads[2];
    struct reader readers[2] = {{&s, &stop, 0, 0}, {&s, &stop, 0, 0}};
    begin(&s, 9, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_on, &readers[i]), 0);
    }
    while (s.chain.end < (uint64_t)UNIT_LONG(40) * MIB) {
        append(&s, 1 + rand_below(100000));
        if (rand_below(4) == 0) {
            settle(&s);
        }
    }
    stop = true;
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_true(readers[i].bytes > 0);
    }
    assert_int_equal(look(&s).faults, 0);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_file),
        cmocka_unit_test(test_what_is_kept),
        cmocka_unit_test(test_hidden),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_another_life),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_no_place_for_a_file),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_concurrent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
