/* See window.h. Beside the index, each origin has the list of its units here, oldest first:
 * its stamps ascend with its sequences, so both sweeps take from the front. */
#include "active/window.h"

#include "base/hash.h"
#include "base/mem.h"
#include "active/hot_keys.h"
#include "active/left_states.h"
#include "active/missed_takings.h"
#include "active/origin_list.h"
#include "active/waiting_states.h"
#include "active/window_index.h"

#include <assert.h>
#include <string.h>

/* A flush stands under this number of database plus its own, under no name. */
#define FLUSH_OF 0x10000
/* Effects that one step of window_scan looks at. */
#define SCAN_EFFECTS 32

/* A unit in its origin's queue, and which effects of the index are its. */
struct placed_unit {
    struct unit *unit;
    uint64_t first;
    uint32_t count;
};

/* Some of the units of an origin. */
#define BLOCK_UNITS 100
/* What leaves has not been looked at for long: so many units ahead it is asked for. */
#define PREFETCH 8
/* A write drops no more, so that none takes long. */
#define SWEEP_UNITS 1024
struct window_block {
    struct window_block *next;
    uint32_t first, end; /* of them those that are here */
    struct placed_unit units[BLOCK_UNITS];
};

struct window_queue {
    struct window_block *first, *last; /* no block is empty */
    uint64_t swept;                    /* the last sequence that is not here any more */
    uint64_t swept_keys;               /* the same of writes that touch keys */
    uint64_t swept_clients;            /* and are not only states */
};

/* Of few keys there are states: which, in so many parts, to know quickly of which not, and behind
 * which stamp not. */
#define STATE_PARTS 1024
struct state_part {
    uint32_t count;
    uint64_t latest; /* no state of these that is here has a later stamp */
};

/* Hot keys' tables may have as much memory as the window's units, and so many writes more. */
#define HOT_WRITES ((uint64_t)64 * 1024)

struct window {
    const struct origins *origins;
    struct window_index index;
    uint64_t open;               /* number of the first effect of the unit that is put in */
    struct window_queue *queues; /* by origin's index */
    uint32_t queue_count;
    struct origin_list filled; /* whose queues are not empty */
    uint32_t flushes;
    struct state_part states[STATE_PARTS]; /* by the hash's first bits */
    struct hot_keys hot;
    uint64_t floor;
    size_t bytes, bytes_max;
    struct left_states left_states;
    struct waiting_states waiting;
    struct missed_takings missed;
};

static inline uint64_t hash_in(uint32_t db, uint64_t hash)
{
    return hash + db * UINT64_C(0x9e3779b97f4a7c15);
}

static inline uint64_t hash_of(uint32_t db, struct slice name)
{
    return hash_in(db, hash_slice(name));
}

static struct state_part *states_of(struct window *w, uint64_t hash)
{
    return &w->states[hash >> 54];
}

static struct slice name_of(const struct window_effect *p)
{
    return slice_of(p->unit->bytes + p->name_at, p->name_len);
}

static bool is_of(const struct window_effect *p, uint32_t db, struct slice name)
{
    return p->db == db && !p->hidden && slice_equal(name_of(p), name);
}

struct window *window_create(const struct origins *o, size_t bytes_max)
{
    struct window *w = mem_calloc(1, sizeof(*w));
    w->origins = o;
    w->bytes_max = bytes_max;
    return w;
}

void window_set_bound(struct window *w, size_t bytes_max)
{
    w->bytes_max = bytes_max;
}

static const struct placed_unit *first_of(const struct window_queue *q)
{
    return q->first ? &q->first->units[q->first->first] : NULL;
}

static const struct unit *last_of(const struct window_queue *q)
{
    return q->last ? q->last->units[q->last->end - 1].unit : NULL;
}

/* Behind its first unit, which goes. */
static inline void pop_unit(struct window *w, struct window_queue *q)
{
    struct window_block *b = q->first;
    struct unit *popped = b->units[b->first++].unit;
    if (b->first + PREFETCH < b->end) {
        __builtin_prefetch(b->units[b->first + PREFETCH].unit);
    }
    if (b->first == b->end) {
        q->first = b->next;
        mem_free(b);
        if (!q->first) {
            q->last = NULL;
            origin_list_remove(&w->filled, dot_origin(popped->dot));
        }
    }
    w->bytes -= popped->len + sizeof(*popped);
    unit_release(popped);
}

static __attribute__((noinline)) void add_block(struct window *w, struct window_queue *q)
{
    if (!q->last) {
        origin_list_add(&w->filled, (uint16_t)(q - w->queues));
    }
    struct window_block *b = mem_alloc(sizeof(*b));
    b->next = NULL;
    b->first = b->end = 0;
    *(q->last ? &q->last->next : &q->first) = b;
    q->last = b;
}

static inline bool has_room(const struct window_queue *q)
{
    return q->last && q->last->end < BLOCK_UNITS;
}

/* There is room. */
static inline void push_unit(struct window *w, struct window_queue *q, struct placed_unit added)
{
    q->last->units[q->last->end++] = added;
    w->bytes += added.unit->len + sizeof(*added.unit);
}

void window_destroy(struct window **window)
{
    struct window *w = *window;
    if (!w) {
        return;
    }
    for (uint32_t i = 0; i < w->queue_count; i++) {
        while (w->queues[i].first) {
            pop_unit(w, &w->queues[i]);
        }
    }
    hot_keys_deinit(&w->hot);
    window_index_deinit(&w->index);
    left_states_deinit(&w->left_states);
    waiting_states_deinit(&w->waiting);
    missed_takings_deinit(&w->missed);
    origin_list_deinit(&w->filled);
    mem_free(w->queues);
    mem_free(w);
    *window = NULL;
}

static __attribute__((noinline)) void add_queues(struct window *w, uint32_t origin)
{
    uint32_t count = w->origins->count > origin ? w->origins->count : origin + 1;
    w->queues = mem_realloc(w->queues, count * sizeof(*w->queues));
    memset(w->queues + w->queue_count, 0, (count - w->queue_count) * sizeof(*w->queues));
    w->queue_count = count;
}

static inline struct window_queue *queue_of(struct window *w, uint32_t origin)
{
    if (unlikely(origin >= w->queue_count)) {
        add_queues(w, origin);
    }
    return &w->queues[origin];
}

/* ---- putting in ---- */

/* FLUSHALL is of no database in particular; nothing else is called by a name so long. */
static inline uint32_t db_of(const struct unit_command *command, const struct effect *effect)
{
    if (likely(effect->class != EFFECT_FLUSH)) {
        return (uint32_t)command->db;
    }
    return command->argv[0].len == sizeof("flushall") - 1 ? 2 * FLUSH_OF
                                                          : FLUSH_OF + (uint32_t)command->db;
}

uint64_t window_member(struct slice member)
{
    return UINT64_C(1) << (hash_slice(member) >> 58);
}

uint64_t window_members(const struct effect *effect, const struct slice *argv)
{
    uint64_t members = 0;
    for (int i = 0; i < effect->count; i++) {
        members |= window_member(effect_member(effect, argv, i));
    }
    return members;
}

static void count_state(struct state_part *part, uint64_t stamp)
{
    part->count++;
    part->latest = stamp > part->latest ? stamp : part->latest;
}

/* A hot key's table of it. */
static void put_in_hot(struct window *w, struct hot_key *k, const struct window_effect *added,
                       const struct slice *argv)
{
    struct hot_room room = {.floor = w->floor,
                            .writes_max = HOT_WRITES + w->bytes_max / sizeof(struct hot_write)};
    hot_key_add(&w->hot, k, w->origins, added, argv, room);
}

/* Where the effect's key is hot. */
static void add_to_hot(struct window *w, const struct window_effect *added,
                       const struct slice *argv)
{
    struct hot_key *k = hot_keys_find(&w->hot, added->hash, added->db, name_of(added));
    if (k) {
        put_in_hot(w, k, added, argv);
        if (hot_key_is_cold(k)) {
            hot_keys_drop(&w->hot, k);
        }
    }
}

/* What few have: members, a flush, a hot key. Of states their own way says more. */
static __attribute__((noinline)) void note_more(struct window *w, struct window_effect *added,
                                                const struct slice *argv)
{
    added->members = window_members(&added->effect, argv);
    w->flushes += added->effect.class == EFFECT_FLUSH;
    if (added->effect.class != EFFECT_STATE && w->hot.count > 0) {
        add_to_hot(w, added, argv);
    }
}

static __attribute__((noinline)) void add_in_new_segment(struct window *w, struct unit *unit,
                                                         const struct unit_command *command,
                                                         const struct effect *effect, uint64_t hash)
{
    window_index_make_room(&w->index);
    window_add(w, unit, command, effect, hash);
}

/* Each write comes here: calls stand at ends alone. */
void window_add(struct window *w, struct unit *unit, const struct unit_command *command,
                const struct effect *effect, uint64_t hash)
{
    if (unlikely(!window_index_has_room(&w->index))) {
        add_in_new_segment(w, unit, command, effect, hash);
        return;
    }
    uint32_t db = db_of(command, effect);
    struct slice name = effect_key(effect, command->argv);
    struct window_effect *added = window_index_add(&w->index, hash_in(db, hash), unit->dot.stamp);
    added->unit = unit; /* its queue has it as long */
    added->db = db;
    added->name_at = effect->key > 0 ? (uint32_t)(name.ptr - unit->bytes) : 0;
    added->name_len = (uint32_t)name.len;
    added->number = command->number;
    added->offset = command->offset;
    added->effect = *effect;
    if (unlikely(effect->count > 0 || effect->class == EFFECT_FLUSH || w->hot.count > 0)) {
        note_more(w, added, command->argv);
    }
}

void window_expect(const struct window *w, int db, uint64_t hash)
{
    window_index_expect(&w->index, hash_in((uint32_t)db, hash));
}

uint64_t window_add_state(struct window *w, struct unit *unit, const struct unit_command *command,
                          const struct effect *effect, struct version_vector *cover_take,
                          bool hidden)
{
    assert(effect->class == EFFECT_STATE);
    uint64_t number = w->index.next;
    window_add(w, unit, command, effect, hash_slice(effect_key(effect, command->argv)));
    struct window_effect *added = window_index_open(&w->index, number);
    added->cover = cover_take;
    added->hidden = hidden;
    if (!hidden) {
        count_state(states_of(w, added->hash), unit->dot.stamp);
    }
    if (!hidden && w->hot.count > 0) {
        add_to_hot(w, added, command->argv);
    }
    return number;
}

/* ---- states that are not seen ---- */

struct window_write window_hidden(const struct window *w, uint64_t number, int *db)
{
    const struct window_effect *p = window_index_at(&w->index, number);
    struct window_write state = window_write_of(p);
    window_write_open(&state);
    *db = (int)p->db;
    return state;
}

void window_show(struct window *w, uint64_t number)
{
    struct window_effect *shown = window_index_open(&w->index, number);
    shown->hidden = false;
    count_state(states_of(w, shown->hash), shown->unit->dot.stamp);
    if (w->hot.count > 0) {
        int db;
        struct window_write state = window_hidden(w, number, &db);
        add_to_hot(w, shown, state.argv);
        mem_free(state.argv);
    }
}

/* Of those that have left the window. */
static void forget_left(struct window *w)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->waiting.count; i++) {
        if (window_index_at(&w->index, w->waiting.rows[i].number)) {
            w->waiting.rows[kept++] = w->waiting.rows[i];
        }
    }
    w->waiting.count = kept;
}

bool window_wait(struct window *w, uint64_t number, struct dot cause, int64_t until_ms)
{
    if (w->waiting.count == WAITING_STATES_MAX) {
        forget_left(w);
    }
    return waiting_states_add(&w->waiting, number, cause, until_ms);
}

bool window_waits_no_more(struct window *w, const struct version_vector *also, int64_t now_ms,
                          uint64_t *number, bool *late)
{
    struct waiting_state row;
    while (w->waiting.count > 0 &&
           waiting_states_next(&w->waiting, w->origins, also, now_ms, &row)) {
        *number = row.number;
        *late = row.cause.place == 0;
        if (window_index_at(&w->index, row.number)) {
            return true;
        }
    }
    return false;
}

struct missed_takings *window_missed(struct window *w)
{
    return &w->missed;
}

bool window_has_waiting(const struct window *w)
{
    return w->waiting.count > 0;
}

void window_each_waiting(const struct window *w, window_visit_state_fn visit, void *context)
{
    for (uint32_t i = 0; i < w->waiting.count; i++) {
        const struct waiting_state *row = &w->waiting.rows[i];
        for (uint32_t k = 0; k < row->count && window_index_at(&w->index, row->number + k); k++) {
            int db;
            struct window_write state = window_hidden(w, row->number + k, &db);
            visit(&state, db, context);
            mem_free(state.argv);
        }
    }
}

/* ---- taking out ---- */

static inline void take_out(struct window *w, struct window_queue *q, struct dot dot,
                            uint64_t number)
{
    const struct window_effect *p = window_index_remove(&w->index, number);
    if (dot_sequence(dot) > q->swept_keys) {
        q->swept_keys = dot_sequence(dot);
    }
    if (unlikely(p->effect.class == EFFECT_STATE)) {
        left_states_note(&w->left_states, p->hash, dot.stamp);
        struct state_part *part = states_of(w, p->hash);
        part->count -= !p->hidden;
        part->latest = part->count > 0 ? part->latest : 0;
    } else if (dot_sequence(dot) > q->swept_clients) {
        q->swept_clients = dot_sequence(dot);
    }
    w->flushes -= p->effect.class == EFFECT_FLUSH;
}

/* The queue's first units are not looked for any more: those with stamps up to that, while the
 * window has more than so many bytes, and `units` at most. How many it were. */
static uint64_t sweep_first(struct window *w, struct window_queue *q, uint64_t upto, size_t bytes,
                            uint64_t units)
{
    uint64_t count = 0;
    for (; count < units && q->first && w->bytes > bytes && first_of(q)->unit->dot.stamp <= upto;
         count++) {
        const struct placed_unit *swept = first_of(q);
        struct dot dot = swept->unit->dot;
        w->floor = dot.stamp > w->floor ? dot.stamp : w->floor;
        q->swept = dot_sequence(dot) > q->swept ? dot_sequence(dot) : q->swept;
        for (uint32_t i = 0; i < swept->count; i++) {
            take_out(w, q, dot, swept->first + i);
        }
        pop_unit(w, q);
    }
    return count;
}

/* The queue whose first unit is the oldest; all of its units up to *upto are older than those of
 * others. */
static struct window_queue *oldest(const struct window *w, uint64_t *upto)
{
    struct window_queue *found = NULL;
    uint64_t least = UINT64_MAX;
    *upto = UINT64_MAX;
    for (uint32_t i = 0; i < w->filled.count; i++) {
        struct window_queue *q = &w->queues[w->filled.rows[i]];
        uint64_t stamp = first_of(q)->unit->dot.stamp;
        if (!found || stamp < least) {
            *upto = least;
            least = stamp;
            found = q;
        } else if (stamp < *upto) {
            *upto = stamp;
        }
    }
    return found;
}

/* A little more than has to go goes at once, so that not every write has to look; where the bound
 * has become less some of it goes with each of the next writes. */
static __attribute__((noinline)) void sweep_beyond_bound(struct window *w)
{
    uint64_t upto, units = SWEEP_UNITS;
    size_t bytes = w->bytes_max - unit_spare(w->bytes_max);
    while (w->bytes > bytes && units > 0) {
        struct window_queue *q = oldest(w, &upto);
        units -= sweep_first(w, q, upto, bytes, units);
    }
    window_index_trim(&w->index);
}

static __attribute__((noinline)) void close_with_room(struct window *w, struct unit *unit)
{
    uint16_t origin = dot_origin(unit->dot);
    struct window_queue *q = queue_of(w, origin);
    assert(!q->last || last_of(q)->dot.stamp < unit->dot.stamp);
    add_block(w, q);
    window_close(w, unit);
}

/* Each write comes here: calls stand at ends alone. */
void window_close(struct window *w, struct unit *unit)
{
    uint16_t origin = dot_origin(unit->dot);
    if (unlikely(origin >= w->queue_count || !has_room(&w->queues[origin]))) {
        close_with_room(w, unit);
        return;
    }
    struct window_queue *q = &w->queues[origin];
    assert(q->last->end == 0 || last_of(q)->dot.stamp < unit->dot.stamp);
    push_unit(w, q,
              (struct placed_unit){.unit = unit_acquire(unit),
                                   .first = w->open,
                                   .count = (uint32_t)(w->index.next - w->open)});
    w->open = w->index.next;
    if (unlikely(w->bytes > w->bytes_max)) {
        sweep_beyond_bound(w);
    }
}

bool window_sweep(struct window *w, uint64_t stable, uint64_t units)
{
    struct window_queue *q;
    uint64_t upto;
    while (units > 0 && (q = oldest(w, &upto)) != NULL && first_of(q)->unit->dot.stamp <= stable) {
        units -= sweep_first(w, q, upto < stable ? upto : stable, 0, units);
    }
    window_index_trim(&w->index);
    if (units > 0) {
        left_states_forget(&w->left_states, stable);
        hot_keys_forget(&w->hot, w->floor);
    }
    return units == 0;
}

void window_skip(struct window *w, const struct version_vector *positions, uint64_t clock)
{
    for (uint32_t i = 1; i < positions->count; i++) {
        struct window_queue *q = queue_of(w, i);
        uint64_t last = q->last ? dot_sequence(last_of(q)->dot) : 0;
        uint64_t here = last > q->swept ? last : q->swept;
        if (positions->sequence[i] <= here) {
            continue;
        }
        (void)sweep_first(w, q, UINT64_MAX, 0, UINT64_MAX);
        q->swept = q->swept_keys = q->swept_clients = positions->sequence[i];
    }
    window_index_trim(&w->index);
    if (clock > w->floor) {
        w->floor = clock;
    }
}

/* ---- looking ---- */

static uint64_t latest_of(const struct window *w, uint32_t db, struct slice name)
{
    struct window_walk walk = window_walk_begin(&w->index, hash_of(db, name));
    const struct window_effect *p;
    uint64_t latest = 0;
    while ((p = window_walk_next(&walk)) != NULL && p->latest > latest) {
        if (is_of(p, db, name) && p->unit->dot.stamp > latest) {
            latest = p->unit->dot.stamp;
        }
    }
    return latest;
}

/* Of the flushes that the database has seen. */
uint64_t window_last_flush(const struct window *w, int db)
{
    if (w->flushes == 0) {
        return 0;
    }
    uint64_t one = latest_of(w, FLUSH_OF + (uint32_t)db, SLICE(""));
    uint64_t all = latest_of(w, 2 * FLUSH_OF, SLICE(""));
    return one > all ? one : all;
}

uint64_t window_last(const struct window *w, int db, struct slice key)
{
    uint64_t own = latest_of(w, (uint32_t)db, key);
    uint64_t flush = window_last_flush(w, db);
    return own > flush ? own : flush;
}

void window_write_open(struct window_write *write)
{
    if (!write->argv) {
        struct unit_command c;
        unit_command_at(write->unit, write->offset, &c);
        write->argc = c.argc;
        write->argv = unit_command_take(&c);
    }
}

struct window_write window_write_of(const struct window_effect *effect)
{
    return (struct window_write){.dot = effect->unit->dot,
                                 .number = effect->number,
                                 .offset = effect->offset,
                                 .effect = effect->effect,
                                 .members = effect->members,
                                 .cover = effect->cover,
                                 .unit = effect->unit};
}

static void show_one(struct window_view *view, const struct window_effect *p)
{
    if (view->count == view->capacity) {
        view->capacity = view->capacity ? 2 * view->capacity : 4;
        view->writes = mem_realloc(view->writes, view->capacity * sizeof(*view->writes));
    }
    struct window_write *write = &view->writes[view->count++];
    *write = window_write_of(p);
    if (p->effect.class == EFFECT_STATE) {
        window_write_open(write);
    }
}

static int compare(const struct window *w, const struct window_write *a,
                   const struct window_write *b)
{
    int order = origins_compare(w->origins, a->dot, b->dot);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

/* Shows what the name has from `from` on, in the order in which it came, the last first. */
static void show(const struct window *w, uint32_t db, struct slice name, uint64_t from,
                 struct window_view *view)
{
    struct window_walk walk = window_walk_begin(&w->index, hash_of(db, name));
    const struct window_effect *p;
    while ((p = window_walk_next(&walk)) != NULL && p->latest >= from) {
        view->walked++;
        if (p->unit->dot.stamp >= from && is_of(p, db, name)) {
            show_one(view, p);
        }
    }
}

/* Puts the upper half behind the lower one, each of which is in order. */
static void merge_halves(const struct window *w, struct window_write *writes, uint32_t half,
                         uint32_t count, struct window_write *room)
{
    uint32_t low = 0, high = half, out = 0;
    memcpy(room, writes, half * sizeof(*room));
    while (low < half) {
        bool is_low = high == count || compare(w, &room[low], &writes[high]) <= 0;
        writes[out++] = is_low ? room[low++] : writes[high++];
    }
}

/* From the bottom up, in runs of a power of two: stable, and quick where it is in order already. */
static void sort(const struct window *w, struct window_view *view)
{
    uint32_t count = view->count;
    struct window_write *room = mem_alloc((size_t)count * sizeof(*room));
    for (uint32_t run = 1; run < count; run *= 2) {
        for (uint32_t at = 0; at + run < count; at += 2 * run) {
            uint32_t both = count - at < 2 * run ? count - at : 2 * run;
            if (compare(w, &view->writes[at + run - 1], &view->writes[at + run]) > 0) {
                merge_halves(w, view->writes + at, run, both, room);
            }
        }
    }
    mem_free(room);
}

/* What was shown with the last first. */
static void put_in_order(const struct window *w, struct window_view *view)
{
    for (uint32_t i = 0; i < view->count / 2; i++) {
        struct window_write *a = &view->writes[i], *b = &view->writes[view->count - 1 - i];
        struct window_write swapped = *a;
        *a = *b;
        *b = swapped;
    }
    if (view->count > 1) {
        sort(w, view);
    }
}

void window_view(const struct window *w, int db, struct slice key, struct window_view *view)
{
    *view = (struct window_view){0};
    show(w, (uint32_t)db, key, 0, view);
    if (w->flushes > 0) {
        show(w, FLUSH_OF + (uint32_t)db, SLICE(""), 0, view);
        show(w, 2 * FLUSH_OF, SLICE(""), 0, view);
    }
    put_in_order(w, view);
}

bool window_view_behind(const struct window *w, int db, struct slice key, struct dot dot,
                        uint32_t number, struct window_view *view)
{
    uint64_t hash = hash_of((uint32_t)db, key);
    if (w->states[hash >> 54].latest >= dot.stamp || window_last_flush(w, db) >= dot.stamp) {
        return false;
    }
    *view = (struct window_view){0};
    show(w, (uint32_t)db, key, dot.stamp, view);
    put_in_order(w, view);
    uint32_t before = view->count - 1; /* of the same stamp, or of the same command */
    while (view->writes[before].dot.place != dot.place || view->writes[before].number != number) {
        assert(before > 0);
        before--;
    }
    view->count -= before;
    memmove(view->writes, view->writes + before, view->count * sizeof(*view->writes));
    return true;
}

/* Reads all that is here of the key. */
static struct hot_key *heat(struct window *w, uint64_t hash, uint32_t db, struct slice key)
{
    struct window_walk walk = window_walk_begin(&w->index, hash);
    struct hot_key *k = hot_keys_make(&w->hot, hash, db, key);
    struct buf found = {0}; /* addresses of its effects, the last that came first */
    const struct window_effect *p;
    while ((p = window_walk_next(&walk)) != NULL) {
        if (is_of(p, db, key)) {
            buf_append(&found, (const char *)&p, sizeof(p));
        }
    }
    for (size_t at = found.len; at > 0; at -= sizeof(p)) {
        struct unit_command c;
        memcpy(&p, found.data + at - sizeof(p), sizeof(p));
        unit_command_at(p->unit, p->offset, &c);
        put_in_hot(w, k, p, c.argv);
        unit_command_end(&c);
    }
    buf_deinit(&found);
    return k;
}

struct hot_key *window_hot(struct window *w, int db, struct slice key, bool makes)
{
    uint64_t hash = hash_of((uint32_t)db, key);
    struct hot_key *k = hot_keys_find(&w->hot, hash, (uint32_t)db, key);
    if (!k && makes) {
        k = heat(w, hash, (uint32_t)db, key);
    }
    if (k) {
        hot_keys_want(&w->hot, k);
    }
    return k;
}

void window_view_deinit(struct window_view *view)
{
    for (uint32_t i = 0; i < view->count; i++) {
        mem_free(view->writes[i].argv);
    }
    mem_free(view->writes);
    *view = (struct window_view){0};
}

uint64_t window_floor(const struct window *w)
{
    return w->floor;
}

uint64_t window_oldest(const struct window *w)
{
    uint64_t upto;
    const struct window_queue *q = oldest(w, &upto);
    return q ? first_of(q)->unit->dot.stamp : UINT64_MAX;
}

bool window_follows(const struct window *w, struct dot dot)
{
    uint16_t origin = dot_origin(dot);
    const struct unit *last = origin < w->queue_count ? last_of(&w->queues[origin]) : NULL;
    return !last || last->dot.stamp < dot.stamp;
}

bool window_holds_beyond(const struct window *w, const struct version_vector *cover)
{
    for (uint32_t i = 1; i < w->queue_count; i++) {
        if (w->queues[i].swept_keys > version_vector_at(cover, i)) {
            return false;
        }
    }
    return true;
}

bool window_holds_for_state(const struct window *w, int db, struct slice key,
                            const struct version_vector *cover, uint64_t stamp)
{
    for (uint32_t i = 1; i < w->queue_count; i++) {
        if (w->queues[i].swept_clients > version_vector_at(cover, i)) {
            return false;
        }
    }
    return !left_states_had(&w->left_states, hash_of((uint32_t)db, key), stamp);
}

static bool is_of_keys(const struct window_effect *p)
{
    return p->db < FLUSH_OF && !p->hidden;
}

/* Keys that were visited. */
struct visited {
    const struct window_effect **slots;
    uint64_t mask;
};

/* True the first time. */
static bool visit_first(struct visited *v, const struct window_effect *p)
{
    uint64_t at = p->hash & v->mask;
    for (; v->slots[at]; at = (at + 1) & v->mask) {
        if (v->slots[at]->hash == p->hash && is_of(p, v->slots[at]->db, name_of(v->slots[at]))) {
            return false;
        }
    }
    v->slots[at] = p;
    return true;
}

void window_each(const struct window *w, int db, window_visit_fn visit, void *context)
{
    struct visited v = {.mask = 1};
    const struct window_effect *p;
    while (v.mask < 2 * w->index.here) {
        v.mask = 2 * v.mask + 1;
    }
    v.slots = mem_calloc(v.mask + 1, sizeof(*v.slots));
    for (uint64_t at = 0; (p = window_index_from(&w->index, &at)) != NULL; at++) {
        if (is_of_keys(p) && (db < 0 || p->db == (uint32_t)db) && visit_first(&v, p)) {
            visit((int)p->db, name_of(p), context);
        }
    }
    mem_free(v.slots);
}

uint64_t window_scan(const struct window *w, uint64_t cursor, window_visit_fn visit, void *context)
{
    const struct window_effect *p = NULL;
    for (int i = 0; i < SCAN_EFFECTS && (p = window_index_from(&w->index, &cursor)) != NULL; i++) {
        if (is_of_keys(p)) {
            visit((int)p->db, name_of(p), context);
        }
        cursor++;
    }
    return p ? cursor : 0;
}

size_t window_bytes(const struct window *w)
{
    return w->bytes;
}
