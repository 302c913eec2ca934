/* The names of the files in which data sets stand aside (active/aside_file.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "active/aside_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char before[4096], directory[] = "/tmp/aside-XXXXXX";

static int enter(void **state)
{
    (void)state;
    return getcwd(before, sizeof(before)) && mkdtemp(directory) && chdir(directory) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    return chdir(before) == 0 && rmdir(directory) == 0 ? 0 : -1;
}

static void touch(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static bool is_there(const char *name)
{
    return access(name, F_OK) == 0;
}

static void test_no_name_twice(void **state)
{
    (void)state;
    char one[ASIDE_NAME_BYTES], two[ASIDE_NAME_BYTES], next[ASIDE_NAME_BYTES];
    int fd[2] = {aside_file_create(7, one), -1};
    assert_true(fd[0] >= 0 && write(fd[0], "x", 1) == 1);
    assert_int_equal(aside_file_sync(one), 0);
    aside_file_remove(one);
    fd[1] = aside_file_create(7, two);
    assert_true(fd[1] >= 0);
    assert_string_not_equal(one, two);
    close(fd[0]);
    close(fd[1]);
    /* What is there is never written over, whoever made it. */
    unsigned number;
    assert_int_equal(sscanf(two, "temp-full-sync-7-%u.keys", &number), 1);
    snprintf(next, sizeof(next), "temp-full-sync-7-%u.keys", number + 1);
    touch(next);
    assert_int_equal(aside_file_create(7, one), -1);
    assert_int_equal(errno, EEXIST);
    assert_string_equal(one, next);
    aside_file_remove(two);
    aside_file_remove(next);
    aside_file_remove(next); /* it is gone already */
}

static void test_names_that_are_told(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "x",
                                      "temp-full-sync",
                                      ".keys",
                                      "temp-full-sync/../x.keys",
                                      "temp-full-sync-1-1.keys.rdb",
                                      "dump.rdb"};
    char name[ASIDE_NAME_BYTES], longest[200] = "temp-full-sync-";
    touch("dump.rdb");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        errno = 0;
        assert_int_equal(aside_file_open(slice_cstr(bad[i]), name), -1);
        assert_int_equal(errno, EINVAL);
    }
    memset(longest + strlen(longest), '1', 100);
    memcpy(longest + 115, ".keys", sizeof(".keys"));
    assert_int_equal(aside_file_open(slice_cstr(longest), name), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(aside_file_open(SLICE("temp-full-sync-1-1.keys"), name), -1);
    assert_int_equal(errno, ENOENT);
    unlink("dump.rdb");
}

static void test_rests_are_removed(void **state)
{
    (void)state;
    static const char *const rests[] = {"temp-full-sync-3.keys", "temp-full-sync.keys",
                                        "temp-full-sync-99-1.keys"};
    char name[ASIDE_NAME_BYTES];
    for (size_t i = 0; i < 3; i++) {
        touch(rests[i]);
    }
    touch("temp-full-sync-99-2.keys");
    touch("other.keys");
    aside_file_remove_others(SLICE("temp-full-sync-99-2.keys"));
    for (size_t i = 0; i < 3; i++) {
        assert_false(is_there(rests[i]));
    }
    assert_true(is_there("other.keys"));
    int fd = aside_file_open(SLICE("temp-full-sync-99-2.keys"), name);
    assert_true(fd >= 0);
    close(fd);
    aside_file_remove_others(SLICE(""));
    assert_false(is_there(name));
    unlink("other.keys");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_name_twice),
        cmocka_unit_test(test_names_that_are_told),
        cmocka_unit_test(test_rests_are_removed),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
