/* See large_writes.h. */
#include "active/large_writes.h"

#include "active/effect.h"
#include "active/merge_priv.h"
#include "base/mem.h"

#define LARGE_COMMAND "KEYDB.LARGE"

void large_write_put(struct slice commands, struct buf *out)
{
    struct unit_command c = {0};
    struct effect effect;
    while (commands.len > 0 && unit_take_words(&commands, &c)) {
        for (int i = 0; effect_of(c.argc, c.argv, i, &effect); i++) {
            if (effect.key > 0) {
                buf_append_cstr(out, "*2\r\n");
                unit_put_word(out, SLICE(LARGE_COMMAND));
                unit_put_word(out, c.argv[effect.key]);
            }
        }
    }
    unit_command_end(&c);
}

void large_write_take(struct merge *m, const struct unit *unit)
{
    struct unit_command c = unit_command_before(unit);
    while (unit_command_next(unit, &c)) {
        merge_touch(m, c.db, c.argv[1], unit->dot);
    }
    origins_advance(m->origins, dot_origin(unit->dot), dot_sequence(unit->dot));
    struct version_vector *positions = version_vector_create(m->origins);
    window_skip(m->window, positions, unit->dot.stamp);
    mem_free(positions);
}
