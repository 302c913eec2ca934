/* Access clocks: keyspace/access.h; and the events option: keyspace/event.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "keyspace/fixture.h"

#include "base/clock.h"
#include "keyspace/access.h"
#include "keyspace/event.h"

#include <string.h>

#define NOW 1700000000000
#define MINUTE 60000
#define DAY ((int64_t)86400000)

static struct entry *entry;

static int create_entry(void **state)
{
    (void)state;
    fixture_set_option(access_options, "maxmemory-policy", "noeviction");
    entry = entry_create_string(SLICE("k"), SLICE("v"), ENTRY_NO_EXPIRY);
    entry_set_clock(entry, access_initial(NOW));
    return 0;
}

static int destroy_entry(void **state)
{
    (void)state;
    entry_destroy(&entry);
    return 0;
}

static void test_idle_time(void **state)
{
    (void)state;
    assert_false(access_is_lfu());
    assert_int_equal(access_idle_ms(entry, NOW), 0);
    assert_int_equal(access_idle_ms(entry, NOW + 90000), 90000);
    access_touch(entry, NOW + 50000);
    assert_int_equal(access_idle_ms(entry, NOW + 90000), 40000);
    access_set_idle_ms(entry, 123000, NOW);
    assert_int_equal(access_idle_ms(entry, NOW), 123000);
    /* Across the wrap of 24 bits of seconds, 194 days. */
    int64_t wrap_ms = ((NOW / 1000 / (1 << 24)) + 1) * (1 << 24) * 1000;
    access_touch(entry, wrap_ms - 5000);
    assert_int_equal(access_idle_ms(entry, wrap_ms + 5000), 10000);
    access_set_idle_ms(entry, 20000, wrap_ms + 5000);
    assert_int_equal(access_idle_ms(entry, wrap_ms + 5000), 20000);
    assert_int_equal(entry_type(entry), VALUE_STRING);
}

/* Another thread's clock may be a little ahead of ours: the entry is fresh, not half a year old. */
static void test_a_clock_ahead_is_fresh(void **state)
{
    (void)state;
    access_touch(entry, NOW + 1000);
    assert_int_equal(access_idle_ms(entry, NOW), 0);
    fixture_set_option(access_options, "maxmemory-policy", "allkeys-lfu");
    fixture_set_option(access_options, "lfu-decay-time", "1");
    access_set_frequency(entry, 200, NOW + MINUTE);
    assert_int_equal(access_frequency(entry, NOW), 200);
    assert_int_equal(access_frequency(entry, NOW + 3 * (int64_t)MINUTE), 198);
}

static void test_frequency_decays(void **state)
{
    (void)state;
    fixture_set_option(access_options, "maxmemory-policy", "allkeys-lfu");
    fixture_set_option(access_options, "lfu-decay-time", "1");
    assert_true(access_is_lfu());
    entry_set_clock(entry, access_initial(NOW));
    assert_int_equal(access_frequency(entry, NOW), 5);
    access_set_frequency(entry, 100, NOW);
    assert_int_equal(access_frequency(entry, NOW), 100);
    assert_int_equal(access_frequency(entry, NOW + 30 * MINUTE), 70);
    assert_int_equal(access_frequency(entry, NOW + 1000 * MINUTE), 0);
    fixture_set_option(access_options, "lfu-decay-time", "10");
    assert_int_equal(access_frequency(entry, NOW + 30 * MINUTE), 97);
    fixture_set_option(access_options, "lfu-decay-time", "0");
    assert_int_equal(access_frequency(entry, NOW + 30 * DAY), 100);
    fixture_set_option(access_options, "lfu-decay-time", "1");
    access_set_frequency(entry, 1000, NOW);
    assert_int_equal(access_frequency(entry, NOW), 255);
}

static void test_frequency_rises_with_use(void **state)
{
    (void)state;
    fixture_set_option(access_options, "maxmemory-policy", "volatile-lfu");
    fixture_set_option(access_options, "lfu-log-factor", "0");
    entry_set_clock(entry, access_initial(NOW));
    for (int i = 0; i < 1000; i++) {
        access_touch(entry, NOW);
    }
    assert_int_equal(access_frequency(entry, NOW), 255); /* each one counts, up to the end */
    fixture_set_option(access_options, "lfu-log-factor", "10");
    entry_set_clock(entry, access_initial(NOW));
    for (int i = 0; i < 1000; i++) {
        access_touch(entry, NOW);
    }
    /* Redis's documentation: about 18 after 1,000 hits with factor 10. */
    assert_in_range(access_frequency(entry, NOW), 9, 35);
}

/* After a change of policy a clock of the other kind is understood. */
static void test_the_other_kind(void **state)
{
    (void)state;
    const int64_t now = clock_wall_ms();
    fixture_set_option(access_options, "lfu-decay-time", "1");
    fixture_set_option(access_options, "lfu-log-factor", "0");
    access_set_idle_ms(entry, 100 * DAY, now);
    fixture_set_option(access_options, "maxmemory-policy", "allkeys-lfu");
    /* A new key's counter, as old as the policy. */
    assert_int_equal(access_frequency(entry, now), 5);
    assert_int_equal(access_frequency(entry, now + 2 * MINUTE + 30000), 3);
    assert_int_equal(access_frequency(entry, now + 400 * DAY), 0);
    access_touch(entry, now + 2 * MINUTE + 30000);
    assert_int_equal(access_frequency(entry, now + 2 * MINUTE + 30000), 4);
    /* And back: by the minute, never older than it is. */
    const int64_t minute = now - now % MINUTE;
    access_set_frequency(entry, 200, minute + 59000);
    fixture_set_option(access_options, "maxmemory-policy", "allkeys-lru");
    assert_int_equal(access_idle_ms(entry, minute + 59500), 0);
    assert_int_equal(access_idle_ms(entry, minute + MINUTE + 1500), 1500);
    assert_int_equal(access_idle_ms(entry, minute + 10 * MINUTE), 9 * MINUTE);
    assert_int_equal(access_idle_ms(entry, minute - MINUTE), 0); /* another thread's clock */
    /* The count has not gone, until the key is used. */
    fixture_set_option(access_options, "maxmemory-policy", "volatile-lfu");
    assert_int_equal(access_frequency(entry, minute + 59500), 200);
    fixture_set_option(access_options, "maxmemory-policy", "noeviction");
    access_touch(entry, minute + 59500);
    assert_int_equal(access_idle_ms(entry, minute + 61500), 2000);
    fixture_set_option(access_options, "maxmemory-policy", "volatile-lfu");
    assert_int_equal(access_frequency(entry, minute + 59500), 5);
    fixture_set_option(access_options, "maxmemory-policy", "allkeys-lfu");
    assert_int_equal(access_frequency(entry, minute + 59500), 5);
    assert_int_equal(entry_type(entry), VALUE_STRING);
    assert_int_equal(entry_encoding(entry), ENCODING_EMBEDDED);
}

static void test_touch_keeps_type_and_encoding(void **state)
{
    (void)state;
    for (int64_t now = NOW; now < NOW + 400 * DAY; now += DAY) {
        access_touch(entry, now);
        assert_int_equal(entry_type(entry), VALUE_STRING);
        assert_int_equal(entry_encoding(entry), ENCODING_EMBEDDED);
    }
}

/* ---- notify-keyspace-events ---- */

static void assert_mask(const char *given, const char *shown)
{
    struct buf out = {0};
    fixture_set_option(event_options, "notify-keyspace-events", given);
    option_format(&event_options[0], &out);
    assert_string_equal(buf_cstr(&out), shown);
    buf_deinit(&out);
}

static void test_letters_of_the_event_option(void **state)
{
    (void)state;
    assert_mask("", "");
    assert_mask("KEA", "AKE");
    assert_mask("AKE", "AKE");
    assert_mask("Kg$lshzxetd", "AK"); /* all of A one by one */
    assert_mask("gE", "gE");
    assert_mask("KEmn", "KEmn");
    assert_mask("AKEm", "AKEm");
    assert_mask("zgz", "gz");
    const char *error = NULL;
    struct slice bad = SLICE("KEq");
    assert_false(option_store(&event_options[0], &bad, 1, &error));
    assert_non_null(error);
    assert_mask("", "");
}

static void test_events_of_other_classes_are_silent(void **state)
{
    (void)state;
    fixture_set_option(event_options, "notify-keyspace-events", "K$");
    fixture_told();
    keyspace_lock_exclusive();
    event_notify(EVENT_STRING, "set", 3, SLICE("k"));
    event_notify(EVENT_LIST, "lpush", 3, SLICE("k"));
    event_notify(EVENT_GENERIC, "del", 3, SLICE("k"));
    keyspace_unlock_exclusive();
    assert_string_equal(fixture_told(), "set@3:k ");
    assert_false(event_wants_misses());
    fixture_set_option(event_options, "notify-keyspace-events", "Km");
    assert_true(event_wants_misses());
}

static void test_new_keys_are_told_when_wanted(void **state)
{
    (void)state;
    db_setup(1);
    fixture_set_option(event_options, "notify-keyspace-events", "KEn");
    fixture_told();
    fixture_set(db_at(0), "k", "v", ENTRY_NO_EXPIRY, NOW);
    assert_string_equal(fixture_told(), "new@0:k ");
    fixture_set(db_at(0), "k", "w", ENTRY_NO_EXPIRY, NOW);
    assert_string_equal(fixture_told(), "");
    db_teardown();
}

int main(void)
{
#define ENTRY_TEST(name) cmocka_unit_test_setup_teardown(name, create_entry, destroy_entry)
    const struct CMUnitTest tests[] = {
        ENTRY_TEST(test_idle_time),
        ENTRY_TEST(test_a_clock_ahead_is_fresh),
        ENTRY_TEST(test_frequency_decays),
        ENTRY_TEST(test_frequency_rises_with_use),
        ENTRY_TEST(test_touch_keeps_type_and_encoding),
        ENTRY_TEST(test_the_other_kind),
        cmocka_unit_test(test_letters_of_the_event_option),
        cmocka_unit_test(test_events_of_other_classes_are_silent),
        cmocka_unit_test(test_new_keys_are_told_when_wanted),
    };
    return cmocka_run_group_tests(tests, fixture_enter, fixture_leave);
}
