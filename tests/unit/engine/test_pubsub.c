/* The registry of who listens: engine/pubsub.h. The receivers are played by the test. */
#include "engine/helpers.h"

#include "base/mem.h"
#include "base/thread.h"
#include "engine/pubsub.h"

#include <pthread.h>
#include <stdio.h>

#define RECEIVERS 3

static _Atomic uint64_t woken, crowded;

static void posted(uint64_t wake, uint64_t full)
{
    atomic_fetch_or(&woken, wake);
    atomic_fetch_or(&crowded, full);
}

static const struct pubsub_delivery delivery = {.posted = posted};

static int setup(void **state)
{
    (void)state;
    thread_enter("main");
    hash_set_secret(1);
    pubsub_setup(&delivery, RECEIVERS);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pubsub_teardown();
    thread_leave();
    return 0;
}

static uint64_t publish(enum pubsub_kind kind, const char *channel, struct slice payload)
{
    struct slice argv[] = {SLICE("publish"), slice_cstr(channel), payload};
    struct call c = {.argc = 3, .argv = argv};
    return pubsub_publish(&c, kind, 1, 2);
}

static uint64_t say(const char *channel, const char *text)
{
    return publish(PUBSUB_CHANNEL, channel, slice_cstr(text));
}

/* Frees a list of messages; gives their texts, joined by '|'. */
static const char *texts(int receiver, struct pubsub_message *m)
{
    static char out[4096];
    size_t len = 0;
    out[0] = '\0';
    while (m) {
        struct pubsub_message *next = m->next[receiver];
        len +=
            (size_t)snprintf(out + len, sizeof(out) - len, "%.*s|", (int)m->text.len, m->text.ptr);
        pubsub_dealt(receiver, m);
        pubsub_release(m);
        m = next;
    }
    return out;
}

static struct pubsub_message *join(int receiver, enum pubsub_kind kind, const char *name,
                                   bool first)
{
    struct slice s = slice_cstr(name);
    return pubsub_join(receiver, kind, pubsub_hash(kind, s), s, first);
}

static struct pubsub_message *leave(int receiver, enum pubsub_kind kind, const char *name,
                                    bool last)
{
    struct slice s = slice_cstr(name);
    return pubsub_leave(receiver, kind, pubsub_hash(kind, s), s, last);
}

static void test_nobody(void **state)
{
    (void)state;
    assert_int_equal(say("c", "x"), 0);
    assert_null(join(0, PUBSUB_SHARD, "c", true));
    assert_int_equal(say("c", "x"), 0);
    assert_null(pubsub_take(0));
    assert_null(leave(0, PUBSUB_SHARD, "c", true));
    assert_int_equal(woken, 0);
}

/* One message object for all receivers; who changes a subscription gets what was before. */
static void test_counts_and_queues(void **state)
{
    (void)state;
    assert_null(join(0, PUBSUB_CHANNEL, "c", true));
    assert_null(join(0, PUBSUB_CHANNEL, "c", false));
    assert_null(join(2, PUBSUB_CHANNEL, "c", true));
    assert_null(join(2, PUBSUB_PATTERN, "[c]", true));
    assert_null(join(1, PUBSUB_PATTERN, "x*", true));
    atomic_store(&woken, 0);
    assert_int_equal(say("c", "one"), 4);
    assert_int_equal(woken, 5);
    atomic_store(&woken, 0);
    assert_int_equal(say("c", ""), 4);
    assert_int_equal(woken, 0); /* their queues are not empty: they know */
    assert_int_equal(say("xx", "two"), 1);
    assert_int_equal(woken, 2);
    struct pubsub_message *taken = leave(0, PUBSUB_CHANNEL, "c", false);
    assert_string_equal(texts(0, taken), "$1\r\nc\r\n$3\r\none\r\n|$1\r\nc\r\n$0\r\n\r\n|");
    assert_int_equal(say("c", "three"), 3);
    assert_string_equal(texts(0, leave(0, PUBSUB_CHANNEL, "c", true)),
                        "$1\r\nc\r\n$5\r\nthree\r\n|");
    assert_int_equal(say("c", "four"), 2);
    assert_null(pubsub_take(0));
    assert_int_equal(pubsub_subscribers(PUBSUB_CHANNEL, SLICE("c")), 1);
    assert_int_equal(pubsub_subscribers(PUBSUB_SHARD, SLICE("c")), 0);
    assert_int_equal(pubsub_names(PUBSUB_PATTERN), 2);
    texts(2, pubsub_take(2));
    texts(1, leave(1, PUBSUB_PATTERN, "x*", true));
    texts(2, leave(2, PUBSUB_PATTERN, "[c]", true));
    texts(2, leave(2, PUBSUB_CHANNEL, "c", true));
    assert_int_equal(pubsub_names(PUBSUB_CHANNEL) + pubsub_names(PUBSUB_PATTERN), 0);
}

/* Patterns that come and go while the same channels are published on; more matches than few. */
static void test_patterns_change(void **state)
{
    (void)state;
    char names[40][8];
    static const char *const channels[] = {"aa", "", "b", "a"};
    for (int i = 0; i < 40; i++) {
        snprintf(names[i], sizeof(names[i]), "%.*s*", i % 4, "aaaa");
        if (i >= 4) {
            snprintf(names[i], sizeof(names[i]), "[a%d]*", i);
        }
        assert_null(join(0, PUBSUB_PATTERN, names[i], true));
        for (int round = 0; round < 2; round++) {
            /* "*" and "a*" and "aa*" are the first three, "aaa*" never fits. */
            uint64_t classes = i >= 4 ? (uint64_t)i - 3 : 0;
            uint64_t plain = i < 2 ? (uint64_t)i + 1 : 3;
            assert_int_equal(say(channels[0], "x"), plain + classes);
            assert_int_equal(say(channels[1], "x"), 0); /* no glob of ours fits nothing */
            assert_int_equal(say(channels[2], "x"), 1);
            assert_int_equal(say(channels[3], "x"), (i < 1 ? 1 : 2) + classes);
        }
        texts(0, pubsub_take(0));
    }
    for (int i = 39; i >= 0; i--) {
        assert_null(leave(0, PUBSUB_PATTERN, names[i], true));
        assert_int_equal(say("b", "x"), i > 0);
        texts(0, pubsub_take(0));
    }
}

/* A receiver that does not keep up is told to publishers, until it has dealt out. */
static void test_crowded(void **state)
{
    (void)state;
    static char payload[15000];
    assert_null(join(1, PUBSUB_CHANNEL, "c", true));
    atomic_store(&crowded, 0);
    int sent = 0;
    while (!crowded) {
        publish(PUBSUB_CHANNEL, "c", slice_of(payload, sizeof(payload)));
        assert_true(++sent < 10000);
    }
    assert_true(sent > 100);
    assert_int_equal(crowded, 2);
    assert_int_equal(pubsub_crowded(7), 2);
    struct pubsub_message *m = pubsub_take(1);
    assert_int_equal(pubsub_crowded(7), 2); /* taken is not dealt out */
    while (m) {
        struct pubsub_message *next = m->next[1];
        pubsub_dealt(1, m);
        pubsub_release(m);
        m = next;
    }
    assert_int_equal(pubsub_crowded(7), 0);
    assert_null(leave(1, PUBSUB_CHANNEL, "c", true));
}

static void count_name(struct slice name, void *context)
{
    char text[16] = {0};
    assert_true(name.len < sizeof(text));
    memcpy(text, name.ptr, name.len);
    int number = -1;
    assert_int_equal(sscanf(text, "n%d", &number), 1);
    ((int *)context)[number]++;
}

static void test_each_name_once(void **state)
{
    (void)state;
    static int seen[5000];
    char name[16];
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        assert_null(join(i % RECEIVERS, PUBSUB_CHANNEL, name, true));
    }
    assert_null(join(0, PUBSUB_SHARD, "n1", true));
    pubsub_each(PUBSUB_CHANNEL, count_name, seen);
    for (int i = 0; i < 5000; i++) {
        assert_int_equal(seen[i], 1);
        snprintf(name, sizeof(name), "n%d", i);
        assert_null(leave(i % RECEIVERS, PUBSUB_CHANNEL, name, true));
    }
    assert_null(leave(0, PUBSUB_SHARD, "n1", true));
}

/* ---- threads: what publishers count is what receivers get ---- */

#define PUBLISHES 20000

static _Atomic uint64_t counted, received;
static _Atomic int publishing;

static void *publish_often(void *arg UNUSED)
{
    thread_enter("publisher");
    uint64_t sum = 0;
    for (int i = 0; i < PUBLISHES; i++) {
        sum += say(i % 3 ? "channel" : "other", "text");
    }
    atomic_fetch_add(&counted, sum);
    atomic_fetch_sub(&publishing, 1);
    thread_leave();
    return NULL;
}

/* Deals a list out to the subscriptions that this receiver has. */
static uint64_t deal(int receiver, struct pubsub_message *m, bool channel, bool pattern)
{
    uint64_t got = 0;
    while (m) {
        struct pubsub_message *next = m->next[receiver];
        bool fits = slice_equal(m->channel, SLICE("channel"));
        got += fits && channel;
        got += fits && pattern;
        pubsub_dealt(receiver, m);
        pubsub_release(m);
        m = next;
    }
    return got;
}

static void *come_and_go(void *arg)
{
    int receiver = *(int *)arg;
    uint64_t got = 0;
    thread_enter("receiver");
    while (atomic_load(&publishing) > 0) {
        got += deal(receiver, join(receiver, PUBSUB_PATTERN, "ch*l", true), false, false);
        got += deal(receiver, join(receiver, PUBSUB_CHANNEL, "channel", true), false, true);
        got += deal(receiver, pubsub_take(receiver), true, true);
        got += deal(receiver, leave(receiver, PUBSUB_PATTERN, "ch*l", true), true, true);
        got += deal(receiver, leave(receiver, PUBSUB_CHANNEL, "channel", true), true, false);
    }
    got += deal(receiver, pubsub_take(receiver), false, false);
    atomic_fetch_add(&received, got);
    thread_leave();
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[RECEIVERS + 3];
    static int numbers[RECEIVERS] = {0, 1, 2};
    atomic_store(&publishing, 3);
    for (int i = 0; i < RECEIVERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &numbers[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[RECEIVERS + i], NULL, publish_often, NULL), 0);
    }
    for (int i = 0; i < RECEIVERS + 3; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(counted, received);
    assert_int_equal(pubsub_names(PUBSUB_PATTERN), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody),  cmocka_unit_test(test_counts_and_queues),
        cmocka_unit_test(test_crowded), cmocka_unit_test(test_each_name_once),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_patterns_change),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
