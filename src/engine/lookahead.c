/* See lookahead.h. */
#include "engine/lookahead.h"

#include "value/type.h"

/* The table under an entry's value, NULL when there is none. A packed value in a block of its own
 * is brought towards the cache at once. */
static const struct table *table_under(const struct entry *e)
{
    const struct value_ops *ops = value_ops_of[entry_type(e)];
    const struct table *t = ops && ops->table ? ops->table(e) : NULL;
    if (!t && e->flags & ENTRY_EXTERNAL) {
        __builtin_prefetch(entry_pointer(e));
    }
    return t;
}

/* The table under the key's value, as it is now. */
static const struct table *table_of(struct lookahead *a, struct db *db, const struct key *key)
    REQUIRES_SHARED(keyspace_lock)
{
    if (a->key && a->key->hash == key->hash && a->db == db &&
        slice_equal(a->key->name, key->name)) {
        return a->table;
    }
    const struct entry *e = db_look(db, key);
    a->db = db;
    a->key = key;
    a->table = e ? table_under(e) : NULL;
    a->tables += a->table != NULL;
    return a->table;
}

bool lookahead_add(struct lookahead *a, const struct call *call)
{
    if (!call->cmd || call->cmd->row->members.first == 0 || call->key_count == 0) {
        return true;
    }
    const struct table *t = table_of(a, call->db, &call->keys[0]);
    if (!t) {
        return true;
    }
    struct command_members members = call->cmd->row->members;
    int i = members.first > 0 ? members.first : call->argc + members.first;
    for (int n = 0; n < LOOKAHEAD_CALL_MAX && i > 1 && i < call->argc; n++, i += members.step) {
        if (a->count == LOOKAHEAD_MAX) {
            return false;
        }
        table_ahead_begin(&a->lookups[a->count++], t, hash_slice(call->argv[i]));
        if (members.step == 0) {
            break;
        }
    }
    return true;
}

void lookahead_fetch(struct lookahead *a)
{
    for (int i = 0; a->tables > 1 && i < a->count; i++) {
        table_ahead_row(&a->lookups[i]);
    }
    for (int i = 0; i < a->count; i++) {
        table_ahead_bucket(&a->lookups[i]);
    }
    for (int i = 0; i < a->count; i++) {
        table_ahead_entries(&a->lookups[i]);
    }
    a->count = 0;
}
