/* What the targets that make values of foreign bytes share: the invariants of each type. */
#ifndef FUZZ_CHECK_VALUE_H
#define FUZZ_CHECK_VALUE_H

#include "base/hash.h"
#include "value/hash.h"
#include "value/list.h"
#include "value/member_ttl.h"
#include "value/nested.h"
#include "value/set.h"
#include "value/stream.h"
#include "value/zset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "value: %s\n", what);
        abort();
    }
}

static void check_set(const struct entry *e)
{
    struct set_walk w;
    struct set_member m;
    uint64_t count = 0;
    set_walk_begin(&w, e);
    while (set_walk_next(&w, &m)) {
        require(set_contains(e, &m), "each member is found");
        count++;
    }
    require(count == set_count(e), "the walk shows every member");
}

static void check_list(const struct entry *e)
{
    struct list_cursor c;
    uint64_t count = 0;
    if (list_quicklist(e)) {
        quicklist_check(list_quicklist(e));
    }
    list_cursor_open(&c, e, 0, false);
    while (list_cursor_next(&c)) {
        require(list_cursor_equals(&c, list_cursor_get(&c)), "an element equals itself");
        count++;
    }
    list_cursor_close(&c);
    require(count == list_count(e), "the walk shows every element");
}

static void check(const struct entry *e)
{
    static void (*const checks[VALUE_TYPE_COUNT])(const struct entry *) = {
        [VALUE_LIST] = check_list, [VALUE_SET] = check_set,       [VALUE_ZSET] = zset_check,
        [VALUE_HASH] = hash_check, [VALUE_STREAM] = stream_check, [VALUE_NESTED] = nested_check,
    };
    if (checks[entry_type(e)]) {
        checks[entry_type(e)](e);
    }
    if (member_ttl_any(e)) {
        member_ttl_check(e);
    }
}

/* The options' defaults; the hash function always the same. */
static void prepare_values(void)
{
    hash_set_secret(1);
    const struct option *tables[] = {hash_options, set_options, zset_options, list_options,
                                     stream_options};
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        for (const struct option *o = tables[i]; o->name; o++) {
            option_store_initial(o);
        }
    }
}

#endif
