/* Inboxes: base/inbox.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/inbox.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define SENDERS 4
#define MESSAGES_EACH 20000

struct letter {
    struct inbox_message message;
    unsigned sender, number;
};

/* What the receiver has seen: the next number expected of each sender. */
struct reader {
    unsigned expected[SENDERS];
    unsigned total;
};

static void read_letter(struct inbox_message *message, void *receiver)
{
    struct letter *letter = (struct letter *)message; /* first member */
    struct reader *reader = receiver;
    assert_int_equal(letter->number, reader->expected[letter->sender]);
    reader->expected[letter->sender]++;
    reader->total++;
    free(letter);
}

static void post(struct inbox *in, unsigned sender, unsigned number)
{
    struct letter *letter = malloc(sizeof(*letter));
    letter->message.receive = read_letter;
    letter->sender = sender;
    letter->number = number;
    inbox_post_take(in, &letter->message);
}

static bool is_readable(const struct inbox *in)
{
    struct pollfd p = {.fd = in->event_fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void test_one_thread(void **state)
{
    (void)state;
    struct inbox in;
    struct reader reader = {{0}, 0};
    inbox_init(&in);
    assert_false(inbox_waiting(&in));
    assert_false(is_readable(&in));
    assert_int_equal(inbox_receive(&in, &reader), 0);
    for (unsigned i = 0; i < 5; i++) {
        post(&in, 0, i);
    }
    assert_true(inbox_waiting(&in));
    assert_true(is_readable(&in));
    assert_int_equal(inbox_receive(&in, &reader), 5);
    assert_int_equal(reader.total, 5);
    assert_false(inbox_waiting(&in));
    assert_false(is_readable(&in));
    post(&in, 1, 0);
    assert_true(is_readable(&in));
    assert_int_equal(inbox_receive(&in, &reader), 1);
    inbox_deinit(&in);
}

/* Only the first of several posts pays for a system call: the eventfd's counter says so. */
static void test_a_filled_inbox_is_not_woken_again(void **state)
{
    (void)state;
    struct inbox in;
    struct reader reader = {{0}, 0};
    inbox_init(&in);
    for (unsigned i = 0; i < 100; i++) {
        post(&in, 0, i);
    }
    uint64_t wakes = 0;
    assert_int_equal(read(in.event_fd, &wakes, sizeof(wakes)), sizeof(wakes));
    assert_int_equal(wakes, 1);
    assert_int_equal(inbox_receive(&in, &reader), 100);
    inbox_deinit(&in);
}

struct echo {
    struct inbox_message message;
    struct inbox *in;
    int rounds;
};

static void post_again(struct inbox_message *message, void *receiver)
{
    struct echo *echo = (struct echo *)message; /* first member */
    assert_ptr_equal(receiver, echo);
    if (--echo->rounds > 0) {
        inbox_post_take(echo->in, message);
    }
}

static void test_a_message_may_post_itself_again(void **state)
{
    (void)state;
    struct inbox in;
    inbox_init(&in);
    struct echo echo = {.message = {.receive = post_again}, .in = &in, .rounds = 3};
    inbox_post_take(&in, &echo.message);
    for (int round = 3; round > 0; round--) {
        assert_true(is_readable(&in));
        assert_int_equal(inbox_receive(&in, &echo), 1);
    }
    assert_int_equal(inbox_receive(&in, &echo), 0);
    inbox_deinit(&in);
}

struct sender {
    struct inbox *in;
    unsigned number;
};

static void *send_letters(void *arg)
{
    const struct sender *sender = arg;
    for (unsigned i = 0; i < MESSAGES_EACH; i++) {
        post(sender->in, sender->number, i);
    }
    return NULL;
}

/* The receiver sleeps in poll() without a time limit whenever nothing is there: a lost wake-up
 * hangs. */
static void test_many_senders_lose_nothing(void **state)
{
    (void)state;
    struct inbox in;
    struct reader reader = {{0}, 0};
    struct sender senders[SENDERS];
    pthread_t threads[SENDERS];
    inbox_init(&in);
    for (unsigned i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){&in, i};
        assert_int_equal(pthread_create(&threads[i], NULL, send_letters, &senders[i]), 0);
    }
    while (reader.total < SENDERS * MESSAGES_EACH) {
        struct pollfd p = {.fd = in.event_fd, .events = POLLIN};
        int ready = poll(&p, 1, -1);
        assert_true(ready == 1 || (ready < 0 && errno == EINTR));
        inbox_receive(&in, &reader);
    }
    for (unsigned i = 0; i < SENDERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(reader.expected[i], MESSAGES_EACH);
    }
    assert_false(inbox_waiting(&in));
    inbox_deinit(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_thread),
        cmocka_unit_test(test_a_filled_inbox_is_not_woken_again),
        cmocka_unit_test(test_a_message_may_post_itself_again),
        cmocka_unit_test(test_many_senders_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
