/* Whole writes, and syncs of paths: base/file.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Far more than a pipe takes at once. */
#define MANY_BYTES ((size_t)4 << 20)

struct reader {
    int fd;
    pthread_t writer; /* is interrupted meanwhile */
    size_t got;
    bool same;
};

static char byte_at(size_t i)
{
    return (char)(i * 31 + i / 4096);
}

static void *read_slowly(void *arg)
{
    struct reader *r = arg;
    char bytes[3000];
    ssize_t got;
    while ((got = read(r->fd, bytes, sizeof(bytes))) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            r->same &= bytes[i] == byte_at(r->got++);
        }
        if (r->got < MANY_BYTES / 2) {
            pthread_kill(r->writer, SIGUSR1);
        }
    }
    return NULL;
}

static void ignore(int signal)
{
    (void)signal;
}

static void test_a_write_is_whole_for_all_signals_and_short_writes(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = ignore}; /* no SA_RESTART: write is interrupted */
    struct sigaction before;
    int ends[2];
    pthread_t thread;
    char *bytes = mem_alloc(MANY_BYTES);
    for (size_t i = 0; i < MANY_BYTES; i++) {
        bytes[i] = byte_at(i);
    }
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    assert_int_equal(pipe(ends), 0);
    struct reader r = {ends[0], pthread_self(), 0, true};
    assert_int_equal(pthread_create(&thread, NULL, read_slowly, &r), 0);
    assert_int_equal(file_write_all(ends[1], slice_of(bytes, MANY_BYTES)), 0);
    close(ends[1]);
    pthread_join(thread, NULL);
    assert_int_equal(r.got, MANY_BYTES);
    assert_true(r.same);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    close(ends[0]);
    mem_free(bytes);
}

static void test_a_fault_is_told(void **state)
{
    (void)state;
    assert_int_equal(file_write_all(-1, SLICE("x")), EBADF);
    assert_int_equal(file_write_all(-1, SLICE("")), 0);
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, SLICE("x")), ENOSPC);
    close(fd);
}

static void test_paths_are_synced(void **state)
{
    (void)state;
    char *directory = temporary_template("file"), *path;
    assert_non_null(mkdtemp(directory));
    assert_true(asprintf(&path, "%s/f", directory) > 0);
    assert_int_equal(file_sync(path), ENOENT);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(file_sync(path), 0);
    assert_int_equal(file_sync_directory(directory), 0);
    assert_int_equal(file_sync_directory(path), ENOTDIR);
    unlink(path);
    rmdir(directory);
    assert_int_equal(file_sync_directory(directory), ENOENT);
    free(path);
    free(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_write_is_whole_for_all_signals_and_short_writes),
        cmocka_unit_test(test_a_fault_is_told),
        cmocka_unit_test(test_paths_are_synced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
