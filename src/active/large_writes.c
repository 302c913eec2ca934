/* See large_writes.h. */
#include "active/large_writes.h"

#include "active/effect.h"
#include "active/merge_priv.h"
#include "base/mem.h"

#define LARGE_COMMAND "KEYDB.LARGE"

static void put_words(struct buf *out, int count, const struct slice *words)
{
    buf_printf(out, "*%d\r\n", count);
    for (int i = 0; i < count; i++) {
        unit_put_word(out, words[i]);
    }
}

void large_write_put(struct slice commands, size_t bytes_max, struct buf *out)
{
    struct slice words[] = {SLICE(LARGE_COMMAND), SLICE("")};
    struct unit_command c = {0};
    struct effect effect;
    bool any = false;
    while (commands.len > 0 && out->len <= bytes_max && unit_take_words(&commands, &c)) {
        if (slice_equal_nocase(c.argv[0], "select")) {
            put_words(out, c.argc, c.argv);
            continue;
        }
        for (int i = 0; effect_walk(c.argc, c.argv, i, &effect); i++) {
            if (effect.key > 0) {
                words[1] = c.argv[effect.key];
                put_words(out, 2, words);
                any = true;
            }
        }
    }
    unit_command_end(&c);
    if (!any || out->len > bytes_max) {
        buf_clear(out);
    }
    if (any && out->len == 0) {
        put_words(out, 1, words);
    }
}

void large_write_take(struct merge *m, const struct unit *unit)
{
    struct unit_command c = unit_command_before(unit);
    while (unit_command_next(unit, &c)) {
        if (c.argc > 1) {
            merge_touch(m, c.db, c.argv[1], unit->dot);
        }
    }
    origins_advance(m->origins, dot_origin(unit->dot), dot_sequence(unit->dot));
    struct version_vector *positions = version_vector_create(m->origins);
    window_skip(m->window, positions, unit->dot.stamp);
    mem_free(positions);
}
