/* The file of a node's id, epoch and clock (active/epoch_file.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "active/epoch_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[] = "/tmp/kt-epoch-XXXXXX";

static int setup(void **state)
{
    (void)state;
    return mkdtemp(directory) && chdir(directory) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    unlink(EPOCH_FILE);
    return chdir("/") == 0 ? rmdir(directory) : -1;
}

static void write_text(const char *text)
{
    FILE *f = fopen(EPOCH_FILE, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void test_written_and_read(void **state)
{
    (void)state;
    struct origin_id id = {.epoch = 77}, last, other;
    uint64_t clock = 1;
    memset(id.node, 0xab, sizeof(id.node));
    unlink(EPOCH_FILE);
    epoch_file_note_clock(&id, 5); /* there is none, and none is made */
    assert_true(epoch_file_read(&last, &clock));
    assert_true(last.epoch == 0 && clock == 0);
    assert_true(epoch_file_write(&id, 9));
    assert_true(epoch_file_read(&last, &clock));
    assert_true(clock == 9 && memcmp(&last, &id, sizeof(id)) == 0);
    epoch_file_note_clock(&id, UINT64_MAX - 1);
    assert_true(epoch_file_read(&last, &clock));
    assert_true(clock == UINT64_MAX - 1 && memcmp(&last, &id, sizeof(id)) == 0);
    other = id;
    other.epoch++; /* of another life: the file is not its */
    epoch_file_note_clock(&other, 5);
    assert_true(epoch_file_read(&last, &clock));
    assert_true(clock == UINT64_MAX - 1);
}

static void test_the_first_version(void **state)
{
    (void)state;
    struct origin_id last;
    uint64_t clock = 1;
    write_text("active-node 1 000102030405060708090a0b0c0d0e0f000000000000004d\n");
    assert_true(epoch_file_read(&last, &clock));
    assert_true(last.epoch == 77 && last.node[15] == 15 && clock == 0);
    epoch_file_note_clock(&last, 5); /* it has no place for one */
    assert_true(epoch_file_read(&last, &clock));
    assert_true(clock == 0);
}

static void test_what_is_no_such_file(void **state)
{
    (void)state;
    struct origin_id last;
    uint64_t clock;
    static const char *const texts[] = {
        "",
        "active-node 1 000102030405060708090a0b0c0d0e0f000000000000004d",
        "active-node 1 000102030405060708090a0b0c0d0e0f00000000000000zz\n",
        "active-node 2 000102030405060708090a0b0c0d0e0f000000000000004d\n",
        "active-node 2 000102030405060708090a0b0c0d0e0f000000000000004d 000000000000000z\n",
        "active-node 2 000102030405060708090a0b0c0d0e0f000000000000004d-0000000000000009\n",
        "active-node 1 000102030405060708090a0b0c0d0e0f000000000000004d 0000000000000009\n",
        "active-node 2 000102030405060708090a0b0c0d0e0f000000000000004d 0000000000000009\n ",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        write_text(texts[i]);
        assert_false(epoch_file_read(&last, &clock));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_and_read),
        cmocka_unit_test(test_the_first_version),
        cmocka_unit_test(test_what_is_no_such_file),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
