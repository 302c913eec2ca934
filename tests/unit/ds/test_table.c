/* The hash table: ds/table.h, against a naive model (a flag for each item that may be in the
 * table). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdatomic.h>
#include <cmocka.h>

#include "base/mem.h"
#include "ds/table.h"
#include "long.h"

#include <stdlib.h>
#include <string.h>

struct item {
    uint64_t hash;
    uint32_t id;
    uint32_t visits;
    bool present;
    uint8_t tag;
} ALIGNED(16);

static uint64_t hash_calls;

static uint64_t item_hash(const void *entry)
{
    hash_calls++;
    return ((const struct item *)entry)->hash;
}

static bool item_has_id(const void *entry, const void *key)
{
    return ((const struct item *)entry)->id == *(const uint32_t *)key;
}

/* splitmix64: a fixed sequence for each seed. */
static uint64_t rng_state;

static uint64_t next_random(void)
{
    uint64_t z = rng_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t below(uint64_t bound)
{
    return next_random() % bound;
}

/* ---- ways of hashing, good and bad ---- */

enum hashing {
    HASH_GOOD,
    HASH_HIGH_BITS_EQUAL, /* the upper 20 */
    HASH_LOW_BITS_EQUAL,  /* the lower 32: all fingerprints are the same */
    HASH_ALL_EQUAL,
    HASH_FEW_VALUES, /* 50 different ones */
    HASH_ASCENDING,  /* one segment after the other is filled */
    HASH_EDGES,      /* all ones and all zeros in the high bits */
    HASH_KINDS,
};

static uint64_t make_hash(enum hashing hashing, uint32_t i, uint32_t count)
{
    uint64_t r = next_random();
    switch (hashing) {
    case HASH_HIGH_BITS_EQUAL:
        return (r >> 20) | ((uint64_t)0xabcde << 44);
    case HASH_LOW_BITS_EQUAL:
        return r << 32;
    case HASH_ALL_EQUAL:
        return 0x0123456789abcdefu;
    case HASH_FEW_VALUES:
        return (r % 50) * 0x0512345678912345u;
    case HASH_ASCENDING:
        return (UINT64_MAX / count) * i;
    case HASH_EDGES:
        return r & 1 ? UINT64_MAX ^ (r >> 40) : r >> 40;
    default:
        return r;
    }
}

static struct item *create_items(enum hashing hashing, uint32_t count, uint64_t seed)
{
    rng_state = seed;
    struct item *items = mem_alloc_aligned(16, count * sizeof(*items));
    for (uint32_t i = 0; i < count; i++) {
        items[i] = (struct item){.hash = make_hash(hashing, i, count), .id = i};
    }
    return items;
}

/* ---- verbs on model and table at once ---- */

/* Every second larger directory is refused. */
static bool refusing;

static void insert(struct table *t, struct item *item)
{
    mem_fail_after(refusing && below(2) ? 1 : 0);
    item->tag = (uint8_t)(item->id & TABLE_TAG_MASK);
    uintptr_t tagged = (uintptr_t)item | item->tag;
    uintptr_t *slot = table_insert(t, item->hash, tagged);
    assert_true(*slot == tagged);
    item->present = true;
    mem_fail_after(0);
}

static uintptr_t *find(const struct table *t, const struct item *item)
{
    return table_find(t, item->hash, item_has_id, &item->id);
}

static void remove_item(struct table *t, struct item *item)
{
    uintptr_t *slot = find(t, item);
    assert_non_null(slot);
    uintptr_t tagged = table_remove(t, item->hash, slot);
    assert_true(tagged == ((uintptr_t)item | item->tag));
    item->present = false;
}

static void verify(const struct table *t, const struct item *items, uint32_t count)
{
    uint64_t present = 0;
    table_check(t);
    for (uint32_t i = 0; i < count; i++) {
        uintptr_t *slot = find(t, &items[i]);
        assert_true((slot != NULL) == items[i].present);
        if (slot) {
            assert_true(*slot == ((uintptr_t)&items[i] | items[i].tag));
            assert_ptr_equal(table_entry(*slot), &items[i]);
            present++;
        }
    }
    assert_int_equal(t->count, present);
}

static void toggle(struct table *t, struct item *item)
{
    if (item->present) {
        remove_item(t, item);
    } else {
        insert(t, item);
    }
}

/* Changes the tags of an entry in its slot, and puts them back on another visit. */
static void retag(struct table *t, struct item *item)
{
    uintptr_t *slot = find(t, item);
    assert_true((slot != NULL) == item->present);
    if (slot) {
        item->tag ^= 5;
        *slot = (uintptr_t)item | item->tag;
    }
}

/* Random phases: mostly insertions, churn, mostly removals. */
static void run_phases(enum hashing hashing, uint32_t count, uint64_t seed)
{
    struct item *items = create_items(hashing, count, seed);
    struct table t;
    table_init(&t, item_hash);
    for (int phase = 0; phase < 3; phase++) {
        uint32_t drift = phase == 0 ? 90 : phase == 1 ? 50 : 10; /* percent insertions */
        for (uint32_t i = 0; i < 2 * count; i++) {
            struct item *item = &items[below(count)];
            bool want = below(100) < drift;
            if (item->present != want) {
                toggle(&t, item);
            } else {
                retag(&t, item);
            }
        }
        verify(&t, items, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (items[i].present) {
            remove_item(&t, &items[i]);
        }
    }
    verify(&t, items, count);
    /* Nothing stays of what it had been. */
    for (int i = 0; i < 20; i++) {
        insert(&t, &items[0]);
        remove_item(&t, &items[0]);
    }
    assert_true(table_memory_bytes(&t) <=
                2 * sizeof(struct table_bucket) + sizeof(struct table_row));
    table_deinit(&t, NULL, NULL);
    mem_free(items);
}

static void test_agrees_with_the_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        run_phases(HASH_GOOD, 10, seed);
        run_phases(HASH_GOOD, 3000, seed);
    }
    run_phases(HASH_GOOD, 150000, 7);
    run_phases(HASH_ASCENDING, 30000, 8);
    run_phases(HASH_LOW_BITS_EQUAL, 30000, 9);
}

static void test_agrees_with_the_model_under_bad_hashes(void **state)
{
    (void)state;
    run_phases(HASH_HIGH_BITS_EQUAL, 3000, 1);
    run_phases(HASH_ALL_EQUAL, 3000, 2);
    run_phases(HASH_FEW_VALUES, 5000, 3);
    run_phases(HASH_EDGES, 3000, 4);
}

/* Without memory for a larger directory chains grow, and the table stays what it is. */
static void test_agrees_with_the_model_without_memory(void **state)
{
    (void)state;
    refusing = true;
    run_phases(HASH_GOOD, 3000, 1);
    run_phases(HASH_GOOD, 100000, 2);
    run_phases(HASH_ASCENDING, 10000, 3);
    run_phases(HASH_HIGH_BITS_EQUAL, 3000, 4);
    refusing = false;
    /* Never: it is one segment with long chains, and splits once there is memory. */
    uint32_t count = 6000;
    struct item *items = create_items(HASH_GOOD, count, 6);
    struct table t;
    table_init(&t, item_hash);
    for (uint32_t i = 0; i < count; i++) {
        mem_fail_after(i < count / 2 ? 1 : 0);
        items[i].tag = 0;
        table_insert(&t, items[i].hash, (uintptr_t)&items[i]);
        items[i].present = true;
    }
    mem_fail_after(0);
    verify(&t, items, count);
    assert_true(t.depth > 0);
    table_deinit(&t, NULL, NULL);
    mem_free(items);
}

/* Whatever the hashes, memory stays in proportion to the entries. */
static void test_memory_is_bounded_for_every_hash(void **state)
{
    (void)state;
    uint32_t count = 8000;
    for (int hashing = 0; hashing < HASH_KINDS; hashing++) {
        struct item *items = create_items((enum hashing)hashing, count, 5);
        struct table t;
        table_init(&t, item_hash);
        for (uint32_t i = 0; i < count; i++) {
            insert(&t, &items[i]);
            assert_true(table_memory_bytes(&t) <= 64 * (i + 1) + 256 * 1024);
        }
        verify(&t, items, count);
        table_deinit(&t, NULL, NULL);
        mem_free(items);
    }
}

static void test_grows_and_shrinks_with_its_content(void **state)
{
    (void)state;
    uint32_t count = 100000;
    struct item *items = create_items(HASH_GOOD, count, 11);
    struct table t;
    table_init(&t, item_hash);
    size_t empty_bytes = table_memory_bytes(&t);
    for (uint32_t i = 0; i < count; i++) {
        insert(&t, &items[i]);
    }
    /* Between 2.75 and 5.5 entries a bucket, and chains. */
    assert_in_range(table_memory_bytes(&t), 8 * count, 30 * count);
    for (uint32_t i = 0; i < count; i++) {
        remove_item(&t, &items[i]);
        if (i % 10000 == 0) {
            table_check(&t);
            uint64_t left = count - i;
            assert_true(table_memory_bytes(&t) <= 64 * left + 64 * 1024);
        }
    }
    assert_int_equal(table_memory_bytes(&t), empty_bytes);
    table_check(&t);
    table_deinit(&t, NULL, NULL);
    mem_free(items);
}

/* Sized ahead, filling it splits (nearly) nothing; it works as ever, with more entries than were
 * announced and with fewer, and shrinks. */
static void test_reserved_table(void **state)
{
    (void)state;
    static const uint64_t announced[] = {0, 1, 1000, 30000, 100000, 1000000};
    uint32_t count = 100000;
    for (size_t a = 0; a < sizeof(announced) / sizeof(announced[0]); a++) {
        struct item *items = create_items(HASH_GOOD, count, 12);
        struct table t;
        table_init(&t, item_hash);
        size_t empty_bytes = table_memory_bytes(&t);
        table_reserve(&t, announced[a]);
        table_check(&t);
        uint64_t calls_before = hash_calls;
        for (uint32_t i = 0; i < count; i++) {
            insert(&t, &items[i]);
        }
        if (announced[a] >= count) {
            assert_true(hash_calls - calls_before < count / 10);
        }
        verify(&t, items, count);
        for (uint32_t i = 0; i < count; i++) {
            remove_item(&t, &items[i]);
        }
        verify(&t, items, count);
        if (announced[a] <= count) {
            assert_true(table_memory_bytes(&t) <= empty_bytes + 64 * 1024);
        }
        table_deinit(&t, NULL, NULL);
        mem_free(items);
    }
}

/* A hold of the lock is bounded because the work of one verb is: what one segment holds is hashed
 * again at most. */
static void test_one_verb_does_bounded_work(void **state)
{
    (void)state;
    uint32_t count = 300000;
    uint64_t bound = (1 << TABLE_SEGMENT_BITS) * TABLE_BUCKET_SLOTS;
    struct item *items = create_items(HASH_GOOD, count, 12);
    struct table t;
    table_init(&t, item_hash);
    for (uint32_t i = 0; i < count; i++) {
        hash_calls = 0;
        insert(&t, &items[i]);
        assert_true(hash_calls <= bound);
    }
    for (uint32_t i = 0; i < count; i++) {
        uintptr_t *slot = find(&t, &items[i]);
        hash_calls = 0;
        table_remove(&t, items[i].hash, slot);
        assert_true(hash_calls <= bound);
    }
    table_deinit(&t, NULL, NULL);
    mem_free(items);
}

/* Insertions and removals about any size do not make the table flip between two shapes. */
static void test_does_not_flip_between_shapes(void **state)
{
    (void)state;
    uint32_t count = 12000;
    struct item *items = create_items(HASH_GOOD, count + 8, 13);
    struct table t;
    table_init(&t, item_hash);
    for (uint32_t i = 0; i < count; i++) {
        insert(&t, &items[i]);
        hash_calls = 0;
        for (int round = 0; round < 4; round++) {
            for (uint32_t k = 0; k < 8; k++) {
                toggle(&t, &items[count + k]);
            }
        }
        /* At most what one growth moves, not one a round. */
        assert_true(hash_calls <= 8 * 2 * 1408);
    }
    table_deinit(&t, NULL, NULL);
    mem_free(items);
}

/* ---- scanning ---- */

static void count_visit(uintptr_t *slot, void *context)
{
    struct item *item = table_entry(*slot);
    assert_true(item->present && *slot == ((uintptr_t)item | item->tag));
    item->visits++;
    ++*(uint64_t *)context;
}

struct scan_plan {
    enum hashing hashing;
    uint32_t permanent, transient;
    uint32_t changes_a_step;
};

/* A whole scan with changes between its steps: the number of transient items swings between none
 * and all. */
static void scan_under_change(const struct scan_plan *plan, uint64_t seed)
{
    uint32_t count = plan->permanent + plan->transient;
    struct item *items = create_items(plan->hashing, count, seed);
    struct table t;
    uint64_t cursor = 0, visited = 0, steps = 0;
    bool filling = seed & 1;
    uint32_t in = 0; /* transient items that are in: those before `in` */
    table_init(&t, item_hash);
    for (uint32_t i = 0; i < plan->permanent; i++) {
        insert(&t, &items[i]);
    }
    for (; !filling && in < plan->transient; in++) {
        insert(&t, &items[plan->permanent + in]);
    }
    do {
        cursor = table_scan(&t, cursor, count_visit, &visited);
        assert_true(cursor >> 48 == 0);
        uint64_t changes = below(10) == 0 ? plan->transient : below(plan->changes_a_step + 1);
        for (uint64_t i = 0; i < changes; i++) {
            if (filling && in < plan->transient) {
                insert(&t, &items[plan->permanent + in++]);
            } else if (!filling && in > 0) {
                remove_item(&t, &items[plan->permanent + --in]);
            }
        }
        filling = in == 0 || (in < plan->transient && (below(20) == 0 ? !filling : filling));
        steps++;
        assert_true(steps < 10 * (uint64_t)count + 1000);
    } while (cursor);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(items[i].visits <= 1);
        assert_true(i >= plan->permanent || items[i].visits == 1);
    }
    table_check(&t);
    table_deinit(&t, NULL, NULL);
    mem_free(items);
}

static void test_scan_visits_what_stays_exactly_once(void **state)
{
    (void)state;
    static const struct scan_plan plans[] = {
        {HASH_GOOD, 10, 0, 0},
        {HASH_GOOD, 10, 200, 30},
        {HASH_GOOD, 500, 5000, 400},
        {HASH_GOOD, 3000, 20000, 300},
        {HASH_ASCENDING, 300, 5000, 400},
        {HASH_LOW_BITS_EQUAL, 500, 5000, 400},
        {HASH_HIGH_BITS_EQUAL, 200, 1800, 300},
        {HASH_FEW_VALUES, 300, 2000, 300},
        {HASH_EDGES, 200, 1800, 300},
    };
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        for (uint64_t seed = 1; seed <= UNIT_LONG(8); seed++) {
            scan_under_change(&plans[i], seed);
        }
    }
}

/* From ten entries to a hundred thousand and back within one scan. */
static void test_scan_bears_growth_and_shrinking(void **state)
{
    (void)state;
    uint32_t permanent = 10, transient = 100000, count = permanent + transient;
    for (uint64_t seed = 21; seed < 24; seed++) {
        struct item *items = create_items(HASH_GOOD, count, seed);
        struct table t;
        uint64_t cursor = 0, visited = 0;
        table_init(&t, item_hash);
        for (uint32_t i = 0; i < permanent; i++) {
            insert(&t, &items[i]);
        }
        cursor = table_scan(&t, cursor, count_visit, &visited);
        for (uint32_t i = permanent; i < count; i++) {
            insert(&t, &items[i]);
        }
        for (int i = 0; i < 3000 && cursor; i++) {
            cursor = table_scan(&t, cursor, count_visit, &visited);
        }
        for (uint32_t i = permanent; i < count; i++) {
            remove_item(&t, &items[i]);
        }
        while (cursor) {
            cursor = table_scan(&t, cursor, count_visit, &visited);
        }
        for (uint32_t i = 0; i < count; i++) {
            assert_true(items[i].visits <= 1 && (i >= permanent || items[i].visits == 1));
        }
        table_deinit(&t, NULL, NULL);
        mem_free(items);
    }
}

/* Clients make cursors up: any one is safe, ends, and visits nothing twice from there. */
static void test_scan_takes_any_cursor(void **state)
{
    (void)state;
    struct item *items = create_items(HASH_GOOD, 5000, 31);
    struct table t;
    table_init(&t, item_hash);
    for (uint32_t i = 0; i < 5000; i++) {
        insert(&t, &items[i]);
    }
    for (int round = 0; round < 200; round++) {
        uint64_t cursor = round == 0 ? UINT64_MAX : next_random() >> below(64), visited = 0;
        uint64_t from = cursor << 16;
        do {
            cursor = table_scan(&t, cursor, count_visit, &visited);
        } while (cursor);
        for (uint32_t i = 0; i < 5000; i++) {
            assert_int_equal(items[i].visits, items[i].hash >= from);
            items[i].visits = 0;
        }
    }
    table_deinit(&t, NULL, NULL);
    mem_free(items);
}

/* ---- drawing ---- */

/* Entries are drawn about equally often, also while only some of the segments have split. */
static void check_draws(uint32_t count, enum hashing hashing, uint64_t together)
{
    struct item *items = create_items(hashing, count, 41);
    struct table t;
    table_init(&t, item_hash);
    for (uint32_t i = 0; i < count; i++) {
        insert(&t, &items[i]);
    }
    double mean = 60, chi_square = 0;
    uintptr_t *slots[100];
    for (uint64_t left = 60 * (uint64_t)count; left > 0;) {
        uint64_t some = left < together ? left : together;
        if (together == 1) {
            slots[0] = table_random(&t);
        } else {
            table_draw(&t, slots, (unsigned)some);
        }
        for (uint64_t i = 0; i < some; i++) {
            assert_non_null(slots[i]);
            ((struct item *)table_entry(*slots[i]))->visits++;
        }
        left -= some;
    }
    for (uint32_t i = 0; i < count; i++) {
        assert_true(items[i].visits > 0);
        double off = items[i].visits - mean;
        chi_square += off * off / mean;
    }
    /* The expectation is `count` - 1, its deviation sqrt(2 count): far from either bound. */
    assert_true(chi_square < 1.6 * count);
    table_deinit(&t, NULL, NULL);
    mem_free(items);
}

static void test_random_is_about_uniform(void **state)
{
    (void)state;
    static const uint64_t together[] = {1, 3, 100};
    for (int i = 0; i < UNIT_LONG(3); i++) {
        check_draws(100, HASH_GOOD, together[i]);
        check_draws(1300, HASH_GOOD, together[i]);
        check_draws(4 * 1408, HASH_GOOD, together[i]); /* half of the segments have split */
        check_draws(6 * 1408, HASH_GOOD, together[i]);
    }
}

static void test_random_of_few_or_none(void **state)
{
    (void)state;
    struct item *items = create_items(HASH_GOOD, 4, 42);
    struct table t;
    table_init(&t, item_hash);
    assert_null(table_random(&t));
    insert(&t, &items[0]);
    for (int i = 0; i < 100; i++) {
        assert_ptr_equal(table_entry(*table_random(&t)), &items[0]);
    }
    remove_item(&t, &items[0]);
    assert_null(table_random(&t));
    table_deinit(&t, NULL, NULL);
    mem_free(items);
}

/* All in one segment or one chain: a draw still ends, and soon. */
static void test_random_ends_under_bad_hashes(void **state)
{
    (void)state;
    for (int hashing = 0; hashing < HASH_KINDS; hashing++) {
        struct item *items = create_items((enum hashing)hashing, 4000, 43);
        struct table t;
        table_init(&t, item_hash);
        for (uint32_t i = 0; i < 4000; i++) {
            insert(&t, &items[i]);
        }
        for (int i = 0; i < 50; i++) {
            assert_non_null(table_random(&t));
        }
        table_deinit(&t, NULL, NULL);
        mem_free(items);
    }
}

static void test_sample_has_different_slots(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, 1, 3, 6, 20, 100, 1400, 5000};
    struct item *items = create_items(HASH_GOOD, 5000, 44);
    struct table t;
    uintptr_t *slots[64];
    uint32_t in = 0;
    table_init(&t, item_hash);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (; in < sizes[i]; in++) {
            insert(&t, &items[in]);
        }
        for (int round = 0; round < 500; round++) {
            unsigned max = 1 + (unsigned)below(64);
            unsigned got = table_sample(&t, slots, max);
            assert_true(got <= max && got <= in);
            assert_int_equal(got, in < max ? in : max); /* a grown table is never that empty */
            for (unsigned k = 0; k < got; k++) {
                struct item *item = table_entry(*slots[k]);
                assert_int_equal(item->visits, 0);
                item->visits = 1;
            }
            for (unsigned k = 0; k < got; k++) {
                ((struct item *)table_entry(*slots[k]))->visits = 0;
            }
        }
    }
    assert_int_equal(table_sample(&t, slots, 0), 0);
    table_deinit(&t, NULL, NULL);
    mem_free(items);
}

/* ---- the rest ---- */

static void count_release(void *entry, void *context)
{
    struct item *item = entry;
    assert_true(item->present);
    item->visits++;
    ++*(uint64_t *)context;
}

static void test_deinit_releases_each_entry_once(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, 1, 8, 1000, 40000};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        struct item *items = create_items(HASH_GOOD, sizes[s] + 1, 51);
        struct table t;
        uint64_t released = 0;
        table_init(&t, item_hash);
        for (uint32_t i = 0; i < sizes[s]; i++) {
            insert(&t, &items[i]);
        }
        table_deinit(&t, count_release, &released);
        assert_int_equal(released, sizes[s]);
        for (uint32_t i = 0; i < sizes[s]; i++) {
            assert_int_equal(items[i].visits, 1);
        }
        assert_int_equal(t.count, 0);
        mem_free(items);
    }
}

/* Candidates may be too many, never too few. */
static void test_candidates_miss_nothing(void **state)
{
    (void)state;
    rng_state = 61;
    for (int round = 0; round < UNIT_LONG(200000); round++) {
        /* Bytes that are often equal to the hash's or one off, where borrows go wrong. */
        uint64_t hash = next_random(), meta = 0;
        for (int i = 0; i < 7; i++) {
            meta |= ((hash + below(3) - 1 + (below(8) ? 0 : next_random())) & 0xff) << (8 * i);
        }
        meta |= below(256) << 56;
        unsigned found[] = {table_candidates(meta, hash), table_candidates_portable(meta, hash)};
        for (unsigned i = 0; i < 2 * TABLE_BUCKET_SLOTS; i++) {
            unsigned slot = i / 2;
            bool present = meta >> (56 + slot) & 1;
            bool equal = ((meta >> (8 * slot)) & 0xff) == (hash & 0xff);
            bool candidate = found[i % 2] >> slot & 1;
            assert_true(candidate || !(present && equal));
            assert_true(present || !candidate);
        }
        assert_true(((found[0] | found[1]) & ~0x7fu) == 0);
    }
}

/* Retired blocks are kept until the test is over: peekers may read them as long. */
static void *graves[1 << 16];
static _Atomic uint32_t grave_count;

static void bury(void *block)
{
    uint32_t i = atomic_fetch_add(&grave_count, 1);
    assert_true(i < sizeof(graves) / sizeof(graves[0]));
    graves[i] = block;
}

static void dig_up(void)
{
    for (uint32_t i = 0; i < grave_count; i++) {
        mem_free(graves[i]);
    }
    grave_count = 0;
}

static void test_peekers_find_the_buckets(void **state)
{
    (void)state;
    const uint32_t count = 50000;
    struct item *items = create_items(HASH_GOOD, count, 62);
    _Atomic uintptr_t published = 0;
    struct table t;
    assert_null(table_peek_bucket(&published, 1));
    table_init_peekable(&t, item_hash, &published, bury);
    for (uint32_t i = 0; i < count; i++) {
        insert(&t, &items[i]);
        assert_ptr_equal(table_peek_bucket(&published, items[i].hash),
                         table_bucket_of(&t, items[i].hash));
        table_peek_entries(table_peek_bucket(&published, items[i].hash), items[i].hash);
    }
    verify(&t, items, count);
    table_publish(&t, NULL);
    assert_null(table_peek_bucket(&published, items[0].hash));
    table_publish(&t, &published);
    assert_non_null(table_peek_bucket(&published, items[0].hash));
    table_deinit(&t, NULL, NULL);
    assert_null(table_peek_bucket(&published, items[0].hash));
    assert_true(grave_count > 0);
    dig_up();
    mem_free(items);
}

static struct {
    _Atomic uintptr_t published;
    _Atomic bool done;
    struct item *items;
    uint32_t count;
} peeked;

static void *peek_all_the_time(void *arg)
{
    (void)arg;
    while (!atomic_load(&peeked.done)) {
        for (uint32_t i = 0; i < peeked.count; i++) {
            uint64_t hash = peeked.items[i].hash;
            const struct table_bucket *b = table_peek_bucket(&peeked.published, hash);
            if (b) {
                table_peek_entries(b, hash);
            }
        }
    }
    return NULL;
}

/* Peeking while the table grows, shrinks and is thrown away: no race (ThreadSanitizer), no freed
 * memory read. */
static void test_peeking_while_it_changes(void **state)
{
    (void)state;
    peeked.count = 20000;
    peeked.items = create_items(HASH_GOOD, peeked.count, 63);
    atomic_store(&peeked.done, false);
    pthread_t peeker;
    assert_int_equal(pthread_create(&peeker, NULL, peek_all_the_time, NULL), 0);
    for (int round = 0; round < 3; round++) {
        struct table t;
        table_init_peekable(&t, item_hash, &peeked.published, bury);
        for (uint32_t i = 0; i < peeked.count; i++) {
            table_insert(&t, peeked.items[i].hash, (uintptr_t)&peeked.items[i]);
        }
        for (uint32_t i = 0; i < peeked.count; i++) {
            struct table_bucket *b = table_bucket_of(&t, peeked.items[i].hash);
            uintptr_t *slot = NULL;
            for (unsigned k = 0; !slot && b; k++) {
                if (k == TABLE_BUCKET_SLOTS) {
                    b = (struct table_bucket *)b->slot[TABLE_BUCKET_SLOTS - 1];
                    k = 0;
                }
                slot = table_entry(b->slot[k]) == &peeked.items[i] ? &b->slot[k] : NULL;
            }
            table_remove(&t, peeked.items[i].hash, slot);
        }
        table_deinit(&t, NULL, NULL);
    }
    atomic_store(&peeked.done, true);
    pthread_join(peeker, NULL);
    dig_up();
    mem_free(peeked.items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_the_model),
        cmocka_unit_test(test_agrees_with_the_model_under_bad_hashes),
        cmocka_unit_test(test_agrees_with_the_model_without_memory),
        cmocka_unit_test(test_memory_is_bounded_for_every_hash),
        cmocka_unit_test(test_grows_and_shrinks_with_its_content),
        cmocka_unit_test(test_reserved_table),
        cmocka_unit_test(test_one_verb_does_bounded_work),
        cmocka_unit_test(test_does_not_flip_between_shapes),
        cmocka_unit_test(test_scan_visits_what_stays_exactly_once),
        cmocka_unit_test(test_scan_bears_growth_and_shrinking),
        cmocka_unit_test(test_scan_takes_any_cursor),
        cmocka_unit_test(test_random_is_about_uniform),
        cmocka_unit_test(test_random_of_few_or_none),
        cmocka_unit_test(test_random_ends_under_bad_hashes),
        cmocka_unit_test(test_sample_has_different_slots),
        cmocka_unit_test(test_deinit_releases_each_entry_once),
        cmocka_unit_test(test_candidates_miss_nothing),
        cmocka_unit_test(test_peekers_find_the_buckets),
        cmocka_unit_test(test_peeking_while_it_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
