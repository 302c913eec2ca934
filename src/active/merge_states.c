/* States: which are begun from, and when; and our own, told (DESIGN.md, "Conflicts"). One that
 * covers what has not come here yet waits for it: taken at once, the content would have what the
 * positions do not, and whoever begins from both, a start from the files or the receiver of a state
 * or a data set of ours, would run that once more. */
#include "active/merge_priv.h"

#include "base/mem.h"
#include "base/num.h"

struct version_vector *merge_cover_of(const struct merge *m, const struct unit_command *c)
{
    if (slice_equal_nocase(c->argv[0], DIGESTS_COMMAND)) {
        int words = c->argc - DIGESTS_FIRST_KEY;
        return words % DIGESTS_KEY_WORDS == 0 && words <= DIGESTS_KEY_WORDS * MERGE_DIGESTS_MAX
                   ? version_vector_decode(m->origins, c->argv[1])
                   : NULL;
    }
    return c->argc == STATE_COMMAND_WORDS ? version_vector_decode(m->origins, c->argv[4]) : NULL;
}

/* A state that is in the window, and hidden. */
struct hidden_state {
    struct window_write write;
    uint64_t number;
    int db;
    struct slice key;
};

/* Where what was told is what is here, it is begun from; false: it cannot be known. */
static bool take_digest(struct merge *m, const struct hidden_state *s)
{
    enum merge_digest_fit fit = merge_digest_fits(m, s->db, &s->write);
    if (fit == MERGE_DIGEST_OTHER) {
        return false;
    }
    window_show(m->window, s->number);
    if (fit == MERGE_DIGEST_SAME) {
        conflicts_resolve(m->conflicts, s->db, s->key, s->write.dot.stamp);
        merge_touch(m, s->db, s->key, s->write.dot);
    }
    return true;
}

/* False: it cannot be begun from, or not in one hold. */
static bool take_state(struct merge *m, const struct hidden_state *s, int64_t now_ms)
{
    struct merge_fold f;
    if (merge_fold_is_too_much(m, s->db, s->key, &s->write)) {
        return false;
    }
    window_show(m->window, s->number);
    window_view(m->window, s->db, s->key, &f.view);
    int x = merge_fold_place(&f, s->write.dot, s->write.number);
    merge_fold_find(m, &f, -1);
    if (f.base == x) {
        m->plans[MERGE_REFOLD]++;
        merge_fold_run(m, &f, s->db, s->key, now_ms);
    } else if (!merge_fold_is_sure(m, &f, x, s->db, s->key)) {
        merge_conflict(m, s->db, s->key, now_ms);
    }
    window_view_deinit(&f.view);
    return true;
}

/* A write that the state covers, and that is not here; place 0: there is none. `also`: positions of
 * which all will be here; NULL: none. */
static struct dot cause_of(const struct merge *m, const struct version_vector *cover,
                           const struct version_vector *also)
{
    for (uint32_t i = 1; i < cover->count && !(m->broken & MERGE_BREAK_CAUSES); i++) {
        uint64_t upto = cover->sequence[i];
        if (upto > origins_at(m->origins, (uint16_t)i)->position &&
            (!also || upto > version_vector_at(also, i))) {
            return dot_of(0, (uint16_t)i, upto);
        }
    }
    return (struct dot){0, 0};
}

/* True when it waits for the write, if there is one. */
static bool waits(struct merge *m, const struct hidden_state *s, struct dot cause, int64_t now_ms)
{
    int64_t until_ms = m->directly ? now_ms + CONFLICT_PATIENCE_MS : INT64_MAX;
    return cause.place != 0 && window_wait(m->window, s->number, cause, until_ms);
}

/* Begins from it, where that can be; `lacks`: something that it covers is not here. */
static void take(struct merge *m, const struct hidden_state *s, bool lacks, int64_t now_ms)
{
    uint64_t stamp = s->write.dot.stamp;
    bool can_begin = window_holds_for_state(m->window, s->db, s->key, s->write.cover, stamp) ||
                     m->broken & MERGE_BREAK_FLOOR;
    bool taken =
        can_begin && (m->directly || !lacks) &&
        (effect_is_digest(&s->write.effect) ? take_digest(m, s) : take_state(m, s, now_ms));
    if (!taken) {
        /* What it lacks may be ours alone by now: ours stays, and is told with that in it. */
        m->conflicts_seen++;
        conflicts_note(m->conflicts, s->db, s->key, stamp, now_ms);
        if (lacks) {
            conflicts_put_off(m->conflicts, s->db, s->key, now_ms);
        } else {
            conflicts_put_off_no_more(m->conflicts, s->db, s->key, now_ms);
        }
    }
}

void merge_apply_state(struct merge *m, struct unit *unit, const struct unit_command *c,
                       const struct effect *effect, int64_t now_ms)
{
    struct version_vector *cover = merge_cover_of(m, c);
    struct hidden_state s = {.db = c->db, .key = c->argv[effect->key]};
    s.number = window_add_state(m->window, unit, c, effect, cover, true);
    s.write = (struct window_write){.dot = unit->dot,
                                    .number = c->number,
                                    .offset = c->offset,
                                    .effect = *effect,
                                    .cover = cover,
                                    .unit = unit,
                                    .argc = c->argc,
                                    .argv = c->argv};
    struct dot cause = cause_of(m, cover, NULL);
    if (!waits(m, &s, cause, now_ms)) {
        take(m, &s, cause.place != 0, now_ms);
        return;
    }
    /* If what it lacks does not come in a while, ours is told. Itself, or what is later, settles
     * that. */
    m->conflicts_seen++;
    conflicts_note(m->conflicts, s.db, s.key, unit->dot.stamp - 1, now_ms);
    conflicts_put_off(m->conflicts, s.db, s.key, now_ms);
}

void merge_take_waiting_also(struct merge *m, const struct version_vector *also, int64_t now_ms)
{
    struct hidden_state s;
    bool late;
    while (window_waits_no_more(m->window, also, now_ms, &s.number, &late)) {
        s.write = window_hidden(m->window, s.number, &s.db);
        s.key = s.write.argv[s.write.effect.key];
        struct dot cause = cause_of(m, s.write.cover, also);
        if (late || !waits(m, &s, cause, now_ms)) {
            take(m, &s, cause.place != 0, now_ms);
        }
        mem_free(s.write.argv);
    }
}

void merge_take_waiting(struct merge *m, int64_t now_ms)
{
    merge_take_waiting_also(m, NULL, now_ms);
}

struct telling {
    const struct merge *merge;
    int64_t now_ms;
};

static void keep_in_conflict(const struct window_write *state, int db, void *context)
{
    const struct telling *t = context;
    struct slice key = state->argv[state->effect.key];
    if (conflicts_has(t->merge->conflicts, db, key)) {
        conflicts_note(t->merge->conflicts, db, key, state->dot.stamp, t->now_ms);
    }
}

void merge_data_told(const struct merge *m, int64_t now_ms)
{
    window_each_waiting(m->window, keep_in_conflict, &(struct telling){m, now_ms});
}

/* ---- our own ---- */

void merge_state(const struct merge *m, int db, struct slice key, struct buf *out)
{
    struct buf payload = {0}, positions = {0};
    int64_t deadline_ms = 0;
    char number[NUM_I64_MAX_CHARS];
    struct version_vector *cover = version_vector_create(m->origins);
    struct window_view view;
    version_vector_encode(m->origins, cover, &positions);
    window_view(m->window, db, key, &view);
    if (!m->executor->dump(m->context, db, key, &deadline_ms, &payload)) {
        buf_clear(&payload);
    }
    buf_append_cstr(out, "*6\r\n");
    unit_put_word(out, SLICE("KEYDB.STATE"));
    unit_put_word(out, key);
    unit_put_word(out, slice_of(number, num_format_i64(number, deadline_ms)));
    unit_put_word(out, buf_slice(&payload));
    unit_put_word(out, buf_slice(&positions));
    unit_put_word(out, slice_of(number, num_format_u64(number, merge_fold_void_upto(&view))));
    window_view_deinit(&view);
    mem_free(cover);
    buf_deinit(&payload);
    buf_deinit(&positions);
}
