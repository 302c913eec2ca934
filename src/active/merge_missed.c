/* Elements of lists that were taken before their push has come (missed_takings.h): the push is put
 * in, and they are taken. A push whose taking is not among the writes behind it, since a state or
 * a data set has that in it, is on top of that by the definition of a key's content; so whoever
 * knows better is in conflict, and tells it. */
#include "active/merge_priv.h"

#include "base/hash.h"
#include "active/missed_takings.h"

static uint64_t element_of(int db, struct slice key, struct slice element)
{
    uint64_t at = hash_slice(key) + (uint64_t)db;
    return (at * UINT64_C(0x9e3779b97f4a7c15) ^ hash_slice(element)) | 1;
}

static bool takes_elements(const struct effect *effect)
{
    return effect->type == EFFECT_LIST && effect->flags & EFFECT_TAKES;
}

void merge_note_taking(const struct merge *m, int db, struct slice key,
                       const struct window_write *write)
{
    if (!takes_elements(&write->effect)) {
        return;
    }
    struct slice count = write->argv[2];
    struct missed_taking taking = {
        .element = element_of(db, key, effect_member(&write->effect, write->argv, 0)),
        .dot = write->dot,
        .number = write->number,
        .count = count.ptr[0] == '-' ? -1 : (int8_t)(count.ptr[0] - '0')};
    missed_takings_note(window_missed(m->window), &taking, !m->executor->changed(m->context));
}

static void take(struct merge *m, int db, struct slice key, struct slice element, int count)
{
    static const char *const counts[] = {"-1", "0", "1"};
    const struct slice words[] = {SLICE("LREM"), key, slice_cstr(counts[count + 1]), element};
    (void)m->executor->run(m->context, db, 4, words);
}

void merge_take_missed(struct merge *m, int db, struct slice key, const struct window_write *push,
                       int64_t now_ms)
{
    struct missed_takings *all = window_missed(m->window);
    bool is_push = push->effect.type == EFFECT_LIST && push->effect.flags & EFFECT_GIVES;
    for (int i = 0; is_push && i < push->effect.count && all->count > 0; i++) {
        struct slice element = effect_member(&push->effect, push->argv, i);
        const struct missed_taking *found =
            missed_takings_of(all, m->origins, element_of(db, key, element), push->dot);
        if (found) {
            struct missed_taking taking = *found;
            take(m, db, key, element, taking.count);
            if (taking.count != 0) {
                missed_takings_note(all, &taking, false);
            }
            merge_conflict(m, db, key, now_ms);
        }
    }
}
