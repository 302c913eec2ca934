/* See set.h: walks over all members, in one go or by cursor. A table is walked bucket by bucket, in
 * the order of the members' hashes: two tables that are walked together, or one whose members are
 * looked up in another, touch memory in the same order. */
#include "ds/intset.h"
#include "ds/listpack.h"
#include "value/set_priv.h"

/* A cursor of the table has 48 bits; what is greater is behind its end. */
#define CURSOR_END ((uint64_t)1 << 48)
/* Empty buckets that a scan passes for each member it is to show. */
#define SCAN_BUCKETS_PER_MEMBER 10

static inline unsigned presence(uint64_t meta)
{
    unsigned present = (unsigned)(meta >> 56) & 0x7f;
    /* With a chain the last slot leads on. */
    return meta & TABLE_CHAIN_BIT ? present & 0x3f : present;
}

static void prefetch_elements(const struct table_bucket *b)
{
    for (unsigned present = presence(b->meta); present; present &= present - 1) {
        __builtin_prefetch(table_entry(b->slot[__builtin_ctz(present)]));
    }
}

static void enter_bucket(struct set_walk *w, const struct table_bucket *b)
{
    w->bucket = b;
    w->present = presence(b->meta);
}

/* Goes to the next bucket that there is; false behind the last. */
static bool next_bucket(struct set_walk *w)
{
    const struct table *t = w->table;
    if (w->bucket && (w->bucket->meta & TABLE_CHAIN_BIT)) {
        enter_bucket(w, (const struct table_bucket *)w->bucket->slot[TABLE_BUCKET_SLOTS - 1]);
        return true;
    }
    const struct table_row *row = &t->rows[w->row];
    if (w->bucket && ++w->index >> row->bucket_bits) {
        w->index = 0;
        w->row += (size_t)1 << (t->depth - row->depth);
        if (w->row >> t->depth) {
            return false;
        }
        row = &t->rows[w->row];
    }
    enter_bucket(w, &row->buckets[w->index]);
    if (!((w->index + 1) >> row->bucket_bits)) {
        prefetch_elements(&row->buckets[w->index + 1]);
    }
    return true;
}

void set_walk_begin(struct set_walk *w, const struct entry *e)
{
    assert(entry_type(e) == VALUE_SET);
    *w = (struct set_walk){.set = e, .encoding = entry_encoding(e)};
    if (w->encoding == ENCODING_TABLE) {
        w->table = entry_pointer(e);
    } else if (w->encoding == ENCODING_LISTPACK) {
        w->at = listpack_first(entry_pointer(e));
    }
}

bool set_walk_next(struct set_walk *w, struct set_member *m)
{
    if (likely(w->encoding == ENCODING_TABLE)) {
        while (w->present == 0) {
            if (!next_bucket(w)) {
                return false;
            }
        }
        set_member_of_element(m, table_entry(w->bucket->slot[__builtin_ctz(w->present)]));
        w->present &= w->present - 1;
        return true;
    }
    if (w->encoding == ENCODING_LISTPACK) {
        if (w->at == NULL) {
            return false;
        }
        struct slice text;
        if (likely(listpack_take_short(&w->at, &text))) {
            set_member_init(m, text);
            m->facts |= SET_MEMBER_TEXT;
            return true;
        }
        set_member_of_packed(m, w->at);
        w->at = listpack_next(entry_pointer(w->set), w->at);
        return true;
    }
    const struct intset *s = entry_pointer(w->set);
    if (w->index == s->count) {
        return false;
    }
    set_member_init_integer(m, intset_at(s, w->index++));
    return true;
}

/* ---- by cursor ---- */

struct scan {
    set_visit_fn visit;
    void *context;
    uint64_t shown;
};

static void show_slot(uintptr_t *slot, void *context)
{
    struct scan *scan = context;
    struct set_member m;
    set_member_of_element(&m, table_entry(*slot));
    scan->shown++;
    scan->visit(&m, scan->context);
}

uint64_t set_scan(const struct entry *e, uint64_t cursor, uint64_t count, set_visit_fn visit,
                  void *context)
{
    if (set_is_packed(e)) {
        struct set_walk w;
        struct set_member m;
        set_walk_begin(&w, e);
        while (set_walk_next(&w, &m)) {
            visit(&m, context);
        }
        return 0;
    }
    if (cursor >= CURSOR_END) {
        return 0;
    }
    struct scan scan = {visit, context, 0};
    uint64_t buckets = 0;
    do {
        cursor = table_scan(entry_pointer(e), cursor, show_slot, &scan);
        buckets++;
    } while (cursor != 0 && scan.shown < count && buckets / SCAN_BUCKETS_PER_MEMBER < count);
    return cursor;
}
