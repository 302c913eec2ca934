/* See active_merge.h: which plan, and carrying it out. */
#include "repl/active_merge.h"

#include "base/mem.h"
#include "base/num.h"
#include "repl/active_merge_priv.h"

#include <assert.h>
#include <string.h>

/* ---- what all share ---- */

void active_merge_dispute(struct active_merge *m, int db, struct slice key, int64_t now_ms)
{
    m->disputed++;
    if (!(m->broken & ACTIVE_BREAK_DISPUTE)) {
        active_disputes_note(m->disputes, db, key, 0, now_ms);
    }
}

void active_merge_touch(const struct active_merge *m, int db, struct slice key,
                        struct active_dot dot)
{
    if (m->executor->exists(m->context, db, key) &&
        active_origins_compare(m->origins, dot, m->executor->dot(m->context, db, key)) > 0) {
        m->executor->set_dot(m->context, db, key, dot);
    }
}

/* True when the unit says behind this command that the key has no deadline. */
static bool tells_persist(const struct active_write *write, int db, struct slice key)
{
    struct active_command c = active_command_before(write->unit);
    while (active_command_next(write->unit, &c)) {
        if (c.number > write->number && c.db == db && c.argc == 2 &&
            slice_equal_nocase(c.argv[0], "persist") && slice_equal(c.argv[1], key)) {
            active_command_end(&c);
            return true;
        }
    }
    return false;
}

void active_merge_run(struct active_merge *m, const struct active_write *write, int db,
                      struct slice key, int64_t now_ms)
{
    struct slice words[ACTIVE_PIECE_WORDS];
    const struct slice *argv;
    const struct active_executor *e = m->executor;
    int argc = active_piece_command(&write->piece, write->argc, write->argv, words, &argv);
    bool had_deadline = e->has_deadline(m->context, db, key);
    if (!e->run(m->context, db, argc, argv)) {
        active_merge_dispute(m, db, key, now_ms);
    } else if (had_deadline && write->piece.class != ACTIVE_WHOLE &&
               !e->exists(m->context, db, key) && !tells_persist(write, db, key)) {
        active_merge_dispute(m, db, key, now_ms);
    }
}

/* ---- which plan ---- */

/* A late write, in the view of its key. */
struct arrival {
    struct active_fold fold; /* with it */
    int x;
    int base_before;           /* B without it */
    bool existed;              /* the key, before */
    bool guessed;              /* the key is disputed: its dot may be of a write that was void */
    struct active_dot key_dot; /* before */
};

static bool any_live_behind(const struct active_merge *m, const struct arrival *a)
{
    for (int i = a->x + 1; i < (int)a->fold.view.count; i++) {
        if (active_fold_is_live(m, &a->fold, i)) {
            return true;
        }
    }
    return false;
}

/* True when all writes of the key behind X are in the view. */
static bool window_reaches(const struct active_merge *m, const struct arrival *a)
{
    struct active_dot dot = a->fold.view.writes[a->x].dot;
    return m->broken & ACTIVE_BREAK_FLOOR || dot.stamp > active_window_floor(m->window) ||
           (a->existed && !a->guessed && active_origins_compare(m->origins, a->key_dot, dot) < 0);
}

static enum active_plan plan_whole(const struct active_merge *m, const struct arrival *a)
{
    if (a->x < a->fold.whole || (a->fold.base >= 0 && a->fold.base == a->base_before)) {
        return ACTIVE_OVER; /* behind it is a whole write, or a state that has it */
    }
    if (a->fold.base < 0 && (m->broken & ACTIVE_BREAK_WHOLE || !any_live_behind(m, a))) {
        return window_reaches(m, a) || !a->existed ? ACTIVE_RUN : ACTIVE_NEITHER;
    }
    return active_fold_is_possible(m, &a->fold) ? ACTIVE_REFOLD : ACTIVE_NEITHER;
}

static enum active_plan plan_part(const struct active_merge *m, const struct arrival *a, int db,
                                  struct slice key)
{
    if (!active_fold_is_live(m, &a->fold, a->x)) {
        return ACTIVE_OVER;
    }
    if (window_reaches(m, a)) {
        if (m->broken & ACTIVE_BREAK_STAMP || !any_live_behind(m, a)) {
            return ACTIVE_RUN;
        }
        if (active_rules_commute(m, &a->fold, a->x, db, key)) {
            return ACTIVE_REPEAT;
        }
    }
    return active_fold_is_possible(m, &a->fold) ? ACTIVE_REFOLD : ACTIVE_GUESS;
}

/* Opens the key's view and finds X in it. */
static void open_arrival(const struct active_merge *m, struct arrival *a, int db, struct slice key,
                         struct active_dot dot, uint32_t number)
{
    active_window_view(m->window, db, key, &a->fold.view);
    a->x = -1;
    for (uint32_t i = 0; i < a->fold.view.count; i++) {
        const struct active_write *w = &a->fold.view.writes[i];
        if (w->dot.place == dot.place && w->number == number) {
            a->x = (int)i;
        }
    }
    assert(a->x >= 0);
    active_fold_find(m, &a->fold, a->x);
    a->base_before = a->fold.base;
    active_fold_find(m, &a->fold, -1);
}

static void carry_out(struct active_merge *m, const struct arrival *a, enum active_plan plan,
                      int db, struct slice key, int64_t now_ms)
{
    const struct active_write *x = &a->fold.view.writes[a->x];
    m->plans[plan]++;
    switch (plan) {
    case ACTIVE_RUN:
        if (x->piece.class == ACTIVE_WHOLE && window_reaches(m, a)) {
            active_disputes_settle(m->disputes, db, key, x->dot.stamp);
        } else if (x->piece.class == ACTIVE_WHOLE) {
            active_merge_dispute(m, db, key, now_ms);
        }
        active_merge_run(m, x, db, key, now_ms); /* may fail, and so dispute it */
        break;
    case ACTIVE_REPEAT:
        active_rules_repeat(m, &a->fold, a->x, db, key, now_ms);
        break;
    case ACTIVE_REFOLD:
        active_fold_run(m, &a->fold, db, key, now_ms);
        break;
    case ACTIVE_GUESS:
        active_merge_run(m, x, db, key, now_ms);
        active_merge_dispute(m, db, key, now_ms);
        break;
    case ACTIVE_NEITHER:
        active_merge_dispute(m, db, key, now_ms);
        break;
    default:
        break;
    }
    active_merge_touch(m, db, key, a->fold.view.writes[a->fold.view.count - 1].dot);
}

/* ---- a client's write of one key ---- */

static void apply_piece(struct active_merge *m, struct active_unit *unit,
                        const struct active_command *c, const struct active_piece *piece,
                        int64_t now_ms)
{
    struct slice key = c->argv[piece->key];
    struct arrival a = {.existed = m->executor->exists(m->context, c->db, key),
                        .guessed = active_disputes_pending(m->disputes, c->db, key),
                        .key_dot = m->executor->dot(m->context, c->db, key)};
    active_window_add(m->window, unit, c, piece, NULL);
    open_arrival(m, &a, c->db, key, unit->dot, c->number);
    enum active_plan plan =
        piece->class == ACTIVE_WHOLE ? plan_whole(m, &a) : plan_part(m, &a, c->db, key);
    carry_out(m, &a, plan, c->db, key, now_ms);
    active_view_deinit(&a.fold.view);
}

/* ---- a state ---- */

static struct active_cover *cover_of(const struct active_merge *m, const struct active_command *c)
{
    return c->argc == ACTIVE_STATE_WORDS ? active_cover_decode(m->origins, c->argv[4]) : NULL;
}

static void apply_state(struct active_merge *m, struct active_unit *unit,
                        const struct active_command *c, const struct active_piece *piece,
                        int64_t now_ms)
{
    struct slice key = c->argv[piece->key];
    struct active_cover *cover = cover_of(m, c);
    if (!active_window_holds_beyond(m->window, cover) && !(m->broken & ACTIVE_BREAK_FLOOR)) {
        /* What it lacks may be ours alone by now: ours stays, and is told with that in it. */
        mem_free(cover);
        m->disputed++;
        active_disputes_note(m->disputes, c->db, key, unit->dot.stamp, now_ms);
        return;
    }
    struct arrival a = {0};
    active_window_add(m->window, unit, c, piece, cover);
    open_arrival(m, &a, c->db, key, unit->dot, c->number);
    if (a.fold.base == a.x) {
        m->plans[ACTIVE_REFOLD]++;
        active_fold_run(m, &a.fold, c->db, key, now_ms);
    }
    active_view_deinit(&a.fold.view);
}

/* ---- a flush ---- */

struct keys {
    struct buf names; /* database, length, bytes; each key */
    int db;
};

static void collect(int db, struct slice key, void *context)
{
    struct keys *k = context;
    uint32_t head[2] = {(uint32_t)db, (uint32_t)key.len};
    buf_append(&k->names, (const char *)head, sizeof(head));
    buf_append_slice(&k->names, key);
}

/* A key with writes behind a flush that came late. */
static void refold_or_dispute(struct active_merge *m, int db, struct slice key,
                              struct active_dot flush, int64_t now_ms)
{
    struct active_fold f;
    active_window_view(m->window, db, key, &f.view);
    active_fold_find(m, &f, -1);
    const struct active_write *last = &f.view.writes[f.view.count - 1];
    bool is_last = last->dot.place == flush.place && !m->executor->exists(m->context, db, key);
    if (!is_last && active_fold_is_possible(m, &f)) {
        active_fold_run(m, &f, db, key, now_ms);
    } else if (!is_last) {
        active_merge_dispute(m, db, key, now_ms);
    }
    active_view_deinit(&f.view);
}

static void apply_flush(struct active_merge *m, struct active_unit *unit,
                        const struct active_command *c, const struct active_piece *piece,
                        int64_t now_ms)
{
    struct keys k = {.db = slice_equal_nocase(c->argv[0], "flushall") ? -1 : c->db};
    active_window_add(m->window, unit, c, piece, NULL);
    m->executor->flush(m->context, k.db, unit->dot, collect, &k);
    active_window_each(m->window, k.db, collect, &k);
    for (size_t at = 0; at < k.names.len;) {
        uint32_t head[2];
        memcpy(head, k.names.data + at, sizeof(head));
        at += sizeof(head);
        refold_or_dispute(m, (int)head[0], slice_of(k.names.data + at, head[1]), unit->dot, now_ms);
        at += head[1];
    }
    buf_deinit(&k.names);
}

/* ---- units ---- */

bool active_merge_acceptable(const struct active_merge *m, const struct active_unit *unit)
{
    struct active_command c = active_command_before(unit);
    struct active_piece piece;
    while (active_command_next(unit, &c)) {
        int pieces = 0;
        bool good = true;
        for (; good && active_classify(c.argc, c.argv, pieces, &piece); pieces++) {
            int64_t deadline;
            uint64_t whole;
            struct active_cover *cover = piece.class == ACTIVE_STATE ? cover_of(m, &c) : NULL;
            good = piece.class != ACTIVE_UNTOLD &&
                   (piece.class != ACTIVE_STATE ||
                    (cover && num_parse_i64(c.argv[2], &deadline) &&
                     num_parse_u64(c.argv[ACTIVE_STATE_WHOLE], &whole)));
            mem_free(cover);
        }
        if (!good || pieces == 0) {
            active_command_end(&c);
            return false;
        }
    }
    return true;
}

static void apply_one(struct active_merge *m, struct active_unit *unit,
                      const struct active_command *c, const struct active_piece *piece,
                      int64_t now_ms)
{
    switch (piece->class) {
    case ACTIVE_STATE:
        apply_state(m, unit, c, piece, now_ms);
        break;
    case ACTIVE_FLUSH:
        apply_flush(m, unit, c, piece, now_ms);
        break;
    case ACTIVE_KEYLESS:
        m->executor->run(m->context, c->db, c->argc, c->argv);
        break;
    default:
        apply_piece(m, unit, c, piece, now_ms);
    }
}

static void advance(const struct active_merge *m, struct active_unit *unit)
{
    active_origins_advance(m->origins, active_dot_origin(unit->dot),
                           active_dot_sequence(unit->dot));
    active_window_close(m->window, unit);
}

void active_merge_apply(struct active_merge *m, struct active_unit *unit, int64_t now_ms)
{
    struct active_command c = active_command_before(unit);
    struct active_piece piece;
    while (active_command_next(unit, &c)) {
        for (int i = 0; active_classify(c.argc, c.argv, i, &piece); i++) {
            apply_one(m, unit, &c, &piece, now_ms);
        }
    }
    advance(m, unit);
}

void active_merge_own(struct active_merge *m, struct active_unit *unit)
{
    struct active_command c = active_command_before(unit);
    struct active_piece piece;
    while (active_command_next(unit, &c)) {
        for (int i = 0; active_classify(c.argc, c.argv, i, &piece); i++) {
            if (piece.class == ACTIVE_KEYLESS) {
                continue;
            }
            active_window_add(m->window, unit, &c, &piece,
                              piece.class == ACTIVE_STATE ? cover_of(m, &c) : NULL);
            if (piece.key > 0) {
                active_merge_touch(m, c.db, c.argv[piece.key], unit->dot);
            }
            if (piece.class == ACTIVE_WHOLE) {
                active_disputes_settle(m->disputes, c.db, c.argv[piece.key], unit->dot.stamp);
            }
        }
    }
    advance(m, unit);
}

void active_merge_state(const struct active_merge *m, int db, struct slice key, struct buf *out)
{
    struct buf payload = {0}, positions = {0};
    int64_t deadline_ms = 0;
    char number[NUM_I64_MAX_CHARS];
    struct active_cover *cover = active_cover_create(m->origins);
    struct active_view view;
    active_cover_encode(m->origins, cover, &positions);
    active_window_view(m->window, db, key, &view);
    if (!m->executor->dump(m->context, db, key, &deadline_ms, &payload)) {
        buf_clear(&payload);
    }
    buf_append_cstr(out, "*6\r\n");
    active_unit_put_word(out, SLICE("KEYDB.STATE"));
    active_unit_put_word(out, key);
    active_unit_put_word(out, slice_of(number, num_format_i64(number, deadline_ms)));
    active_unit_put_word(out, buf_slice(&payload));
    active_unit_put_word(out, buf_slice(&positions));
    active_unit_put_word(out,
                         slice_of(number, num_format_u64(number, active_fold_void_upto(&view))));
    active_view_deinit(&view);
    mem_free(cover);
    buf_deinit(&payload);
    buf_deinit(&positions);
}
