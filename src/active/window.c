/* See window.h. Beside the index, each origin has the list of its units here, oldest first:
 * its stamps ascend with its sequences, so both sweeps take from the front. */
#include "active/window.h"

#include "base/hash.h"
#include "base/mem.h"
#include "ds/table.h"
#include "active/left_states.h"

#include <assert.h>
#include <string.h>

/* A flush stands under this number of database plus its own, under no name. */
#define FLUSH_OF 0x10000

struct window_effect {
    struct unit *unit;
    struct version_vector *cover;
    uint32_t number, offset;
    struct effect effect;
    uint64_t members; /* window_members */
};

struct window_key {
    uint64_t hash;
    uint32_t db, len;
    uint32_t count, capacity;
    uint32_t states; /* of them */
    struct window_effect *effects;
    char name[];
};

/* A unit in its origin's list, with what it has in the index. */
struct window_unit {
    struct window_unit *next;
    struct unit *unit;
};

struct window_queue {
    struct window_unit *first, *last;
    uint64_t swept;         /* the last sequence that is not here any more */
    uint64_t swept_clients; /* the same of writes that are not only states */
};

struct window {
    const struct origins *origins;
    struct table keys;
    struct window_queue *queues; /* by origin's index */
    uint32_t queue_count;
    uint64_t floor;
    size_t bytes, bytes_max;
    struct left_states left_states;
};

static uint64_t key_hash(const void *entry)
{
    return ((const struct window_key *)entry)->hash;
}

struct key_name {
    uint32_t db;
    struct slice name;
};

static bool key_matches(const void *entry, const void *key)
{
    const struct window_key *k = entry;
    const struct key_name *n = key;
    return k->db == n->db && slice_equal(slice_of(k->name, k->len), n->name);
}

static uint64_t hash_of(const struct key_name *n)
{
    return hash_slice(n->name) + n->db * UINT64_C(0x9e3779b97f4a7c15);
}

static uintptr_t *find_slot(const struct window *w, uint32_t db, struct slice name)
{
    struct key_name n = {db, name};
    return table_find(&w->keys, hash_of(&n), key_matches, &n);
}

static struct window_key *find(const struct window *w, uint32_t db, struct slice name)
{
    uintptr_t *slot = find_slot(w, db, name);
    return slot ? table_entry(*slot) : NULL;
}

static struct window_key *find_or_create(struct window *w, uint32_t db, struct slice name)
{
    struct window_key *k = find(w, db, name);
    if (!k) {
        struct key_name n = {db, name};
        k = mem_alloc(sizeof(*k) + name.len);
        *k = (struct window_key){.hash = hash_of(&n), .db = db, .len = (uint32_t)name.len};
        if (name.len > 0) {
            memcpy(k->name, name.ptr, name.len);
        }
        table_insert(&w->keys, k->hash, (uintptr_t)k);
    }
    return k;
}

static void drop_effect(struct window_effect *p)
{
    unit_release(p->unit);
    mem_free(p->cover);
}

static void destroy_key(void *entry, void *context)
{
    struct window_key *k = entry;
    (void)context;
    for (uint32_t i = 0; i < k->count; i++) {
        drop_effect(&k->effects[i]);
    }
    mem_free(k->effects);
    mem_free(k);
}

struct window *window_create(const struct origins *o, size_t bytes_max)
{
    struct window *w = mem_calloc(1, sizeof(*w));
    w->origins = o;
    w->bytes_max = bytes_max;
    table_init(&w->keys, key_hash);
    return w;
}

void window_set_bound(struct window *w, size_t bytes_max)
{
    w->bytes_max = bytes_max;
}

static struct unit *pop_unit(struct window *w, struct window_queue *q)
{
    struct window_unit *first = q->first;
    struct unit *unit = first->unit;
    q->first = first->next;
    q->last = q->first ? q->last : NULL;
    if (dot_sequence(unit->dot) > q->swept) {
        q->swept = dot_sequence(unit->dot);
    }
    w->bytes -= unit->len + sizeof(*unit);
    mem_free(first);
    return unit;
}

void window_destroy(struct window **window)
{
    struct window *w = *window;
    if (!w) {
        return;
    }
    for (uint32_t i = 0; i < w->queue_count; i++) {
        while (w->queues[i].first) {
            unit_release(pop_unit(w, &w->queues[i]));
        }
    }
    table_deinit(&w->keys, destroy_key, NULL);
    left_states_deinit(&w->left_states);
    mem_free(w->queues);
    mem_free(w);
    *window = NULL;
}

static struct window_queue *queue_of(struct window *w, uint32_t origin)
{
    if (origin >= w->queue_count) {
        uint32_t count = w->origins->count > origin ? w->origins->count : origin + 1;
        w->queues = mem_realloc(w->queues, count * sizeof(*w->queues));
        memset(w->queues + w->queue_count, 0, (count - w->queue_count) * sizeof(*w->queues));
        w->queue_count = count;
    }
    return &w->queues[origin];
}

/* ---- putting in ---- */

static uint32_t db_of(const struct unit_command *command, const struct effect *effect)
{
    if (effect->class != EFFECT_FLUSH) {
        return (uint32_t)command->db;
    }
    /* FLUSHALL is of no database in particular. */
    return slice_equal_nocase(command->argv[0], "flushall") ? 2 * FLUSH_OF
                                                            : FLUSH_OF + (uint32_t)command->db;
}

static int compare(const struct window *w, const struct window_effect *a,
                   const struct window_effect *b)
{
    int order = origins_compare(w->origins, a->unit->dot, b->unit->dot);
    return order ? order : (a->number > b->number) - (a->number < b->number);
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

/* Behind all that are not later. */
static uint32_t place_of(const struct window *w, const struct window_key *k,
                         const struct window_effect *added)
{
    uint32_t low = 0, high = k->count;
    if (high > 0 && compare(w, added, &k->effects[high - 1]) >= 0) {
        return high; /* as nearly always */
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare(w, added, &k->effects[middle]) < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

void window_add(struct window *w, struct unit *unit, const struct unit_command *command,
                const struct effect *effect, struct version_vector *cover_take)
{
    struct slice name = effect->key ? command->argv[effect->key] : SLICE("");
    struct window_key *k = find_or_create(w, db_of(command, effect), name);
    struct window_effect added = {.unit = unit_acquire(unit),
                                  .cover = cover_take,
                                  .number = command->number,
                                  .offset = command->offset,
                                  .effect = *effect,
                                  .members = window_members(effect, command->argv)};
    if (k->count == k->capacity) {
        k->capacity = k->capacity ? 2 * k->capacity : 2;
        k->effects = mem_realloc(k->effects, k->capacity * sizeof(*k->effects));
    }
    uint32_t at = place_of(w, k, &added);
    memmove(k->effects + at + 1, k->effects + at, (k->count - at) * sizeof(*k->effects));
    k->effects[at] = added;
    k->count++;
    k->states += effect->class == EFFECT_STATE;
}

/* ---- taking out ---- */

static void take_out(struct window *w, uint32_t db, struct slice name, const struct unit *unit)
{
    uintptr_t *slot = find_slot(w, db, name);
    if (!slot) {
        return; /* a second effect on the same key took both */
    }
    struct window_key *k = table_entry(*slot);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < k->count; i++) {
        if (k->effects[i].unit == unit) {
            k->states -= k->effects[i].effect.class == EFFECT_STATE;
            drop_effect(&k->effects[i]);
        } else {
            k->effects[kept++] = k->effects[i];
        }
    }
    k->count = kept;
    if (kept == 0) {
        table_remove(&w->keys, k->hash, slot);
        destroy_key(k, NULL);
    }
}

/* The first unit of the queue is not looked for any more. */
static void sweep_first(struct window *w, struct window_queue *q)
{
    struct unit *unit = pop_unit(w, q);
    struct unit_command c = unit_command_before(unit);
    struct effect effect;
    if (unit->dot.stamp > w->floor) {
        w->floor = unit->dot.stamp;
    }
    while (unit_command_next(unit, &c)) {
        for (int i = 0; effect_of(c.argc, c.argv, i, &effect); i++) {
            struct key_name n = {db_of(&c, &effect), effect.key ? c.argv[effect.key] : SLICE("")};
            take_out(w, n.db, n.name, unit);
            if (effect.class == EFFECT_STATE) {
                left_states_note(&w->left_states, hash_of(&n), unit->dot.stamp);
            } else if (effect.class != EFFECT_KEYLESS && effect.class != EFFECT_LIBRARY &&
                       dot_sequence(unit->dot) > q->swept_clients) {
                q->swept_clients = dot_sequence(unit->dot);
            }
        }
    }
    unit_release(unit);
}

static struct window_queue *oldest(const struct window *w)
{
    struct window_queue *found = NULL;
    for (uint32_t i = 0; i < w->queue_count; i++) {
        struct window_queue *q = &w->queues[i];
        if (q->first && (!found || q->first->unit->dot.stamp < found->first->unit->dot.stamp)) {
            found = q;
        }
    }
    return found;
}

void window_close(struct window *w, struct unit *unit)
{
    struct window_queue *q = queue_of(w, dot_origin(unit->dot));
    struct window_unit *added = mem_alloc(sizeof(*added));
    *added = (struct window_unit){NULL, unit_acquire(unit)};
    assert(!q->last || q->last->unit->dot.stamp < unit->dot.stamp);
    if (q->last) {
        q->last->next = added;
    } else {
        q->first = added;
    }
    q->last = added;
    w->bytes += unit->len + sizeof(*unit);
    while (w->bytes > w->bytes_max) {
        sweep_first(w, oldest(w));
    }
}

void window_sweep(struct window *w, uint64_t stable)
{
    struct window_queue *q;
    while ((q = oldest(w)) != NULL && q->first->unit->dot.stamp <= stable) {
        sweep_first(w, q);
    }
    left_states_forget(&w->left_states, stable);
}

void window_skip(struct window *w, const struct version_vector *positions, uint64_t clock)
{
    for (uint32_t i = 1; i < positions->count; i++) {
        struct window_queue *q = queue_of(w, i);
        uint64_t last = q->last ? dot_sequence(q->last->unit->dot) : 0;
        uint64_t here = last > q->swept ? last : q->swept;
        if (positions->sequence[i] <= here) {
            continue;
        }
        while (q->first) {
            sweep_first(w, q);
        }
        q->swept = q->swept_clients = positions->sequence[i];
    }
    if (clock > w->floor) {
        w->floor = clock;
    }
}

/* ---- looking ---- */

static uint64_t last_of(const struct window *w, uint32_t db, struct slice name)
{
    const struct window_key *k = find(w, db, name);
    return k ? k->effects[k->count - 1].unit->dot.stamp : 0;
}

uint64_t window_last(const struct window *w, int db, struct slice key)
{
    uint64_t own = last_of(w, (uint32_t)db, key);
    uint64_t flush = last_of(w, FLUSH_OF + (uint32_t)db, SLICE(""));
    uint64_t all = last_of(w, 2 * FLUSH_OF, SLICE(""));
    own = own > flush ? own : flush;
    return own > all ? own : all;
}

void window_write_open(struct window_write *write)
{
    if (!write->argv) {
        struct unit_command c;
        unit_command_at(write->unit, write->offset, &c);
        write->argc = c.argc;
        write->argv = c.argv;
    }
}

static void show(struct window_view *view, const struct window_key *k, uint32_t from)
{
    if (!k || from == k->count) {
        return;
    }
    view->capacity = view->count + k->count - from;
    view->writes = mem_realloc(view->writes, view->capacity * sizeof(*view->writes));
    for (uint32_t i = from; i < k->count; i++) {
        const struct window_effect *p = &k->effects[i];
        struct window_write *write = &view->writes[view->count++];
        *write = (struct window_write){.dot = p->unit->dot,
                                       .number = p->number,
                                       .offset = p->offset,
                                       .effect = p->effect,
                                       .members = p->members,
                                       .cover = p->cover,
                                       .unit = p->unit};
        if (p->effect.class == EFFECT_STATE) {
            window_write_open(write);
        }
    }
}

/* Insertion: two or three lists, each in order, of which the later ones are short. */
static void sort(const struct window *w, struct window_view *view)
{
    for (uint32_t i = 1; i < view->count; i++) {
        struct window_write moved = view->writes[i];
        uint32_t at = i;
        while (at > 0) {
            const struct window_write *before = &view->writes[at - 1];
            int order = origins_compare(w->origins, moved.dot, before->dot);
            if (order > 0 || (order == 0 && moved.number >= before->number)) {
                break;
            }
            view->writes[at] = *before;
            at--;
        }
        view->writes[at] = moved;
    }
}

void window_view(const struct window *w, int db, struct slice key, struct window_view *view)
{
    *view = (struct window_view){0};
    show(view, find(w, (uint32_t)db, key), 0);
    uint32_t own = view->count;
    show(view, find(w, FLUSH_OF + (uint32_t)db, SLICE("")), 0);
    show(view, find(w, 2 * FLUSH_OF, SLICE("")), 0);
    if (view->count > own) {
        sort(w, view);
    }
}

bool window_view_behind(const struct window *w, int db, struct slice key, struct dot dot,
                        uint32_t number, struct window_view *view)
{
    const struct window_key *k = find(w, (uint32_t)db, key);
    if (k->states > 0 || last_of(w, FLUSH_OF + (uint32_t)db, SLICE("")) >= dot.stamp ||
        last_of(w, 2 * FLUSH_OF, SLICE("")) >= dot.stamp) {
        return false;
    }
    uint32_t at = k->count - 1;
    while (k->effects[at].unit->dot.place != dot.place || k->effects[at].number != number) {
        assert(at > 0);
        at--;
    }
    *view = (struct window_view){0};
    show(view, k, at);
    return true;
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

bool window_follows(const struct window *w, struct dot dot)
{
    uint16_t origin = dot_origin(dot);
    const struct window_unit *last = origin < w->queue_count ? w->queues[origin].last : NULL;
    return !last || last->unit->dot.stamp < dot.stamp;
}

bool window_holds_beyond(const struct window *w, const struct version_vector *cover)
{
    for (uint32_t i = 1; i < w->queue_count; i++) {
        if (w->queues[i].swept > version_vector_at(cover, i)) {
            return false;
        }
    }
    return true;
}

bool window_holds_for_state(const struct window *w, int db, struct slice key,
                            const struct version_vector *cover, uint64_t stamp)
{
    struct key_name n = {(uint32_t)db, key};
    for (uint32_t i = 1; i < w->queue_count; i++) {
        if (w->queues[i].swept_clients > version_vector_at(cover, i)) {
            return false;
        }
    }
    return !left_states_had(&w->left_states, hash_of(&n), stamp);
}

struct each {
    window_visit_fn visit;
    void *context;
    int db;
};

static void visit_key(uintptr_t *slot, void *context)
{
    const struct each *e = context;
    const struct window_key *k = table_entry(*slot);
    if (k->db < FLUSH_OF && (e->db < 0 || k->db == (uint32_t)e->db)) {
        e->visit((int)k->db, slice_of(k->name, k->len), e->context);
    }
}

void window_each(const struct window *w, int db, window_visit_fn visit, void *context)
{
    struct each e = {visit, context, db};
    uint64_t cursor = 0;
    do {
        cursor = table_scan(&w->keys, cursor, visit_key, &e);
    } while (cursor != 0);
}

uint64_t window_scan(const struct window *w, uint64_t cursor, window_visit_fn visit, void *context)
{
    struct each e = {visit, context, -1};
    return table_scan(&w->keys, cursor, visit_key, &e);
}

size_t window_bytes(const struct window *w)
{
    return w->bytes;
}
