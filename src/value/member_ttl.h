/* Deadlines of members: fields of hashes, members of sets and sorted sets that go at a time of
 * their own (HEXPIRE, EXPIREMEMBER). One mechanism beside the values, whatever their encoding: a
 * collection that has such members points to a struct in between, which keeps the deadlines by
 * member in a table and by time in a heap; a collection without has nothing of it, not a byte.
 *
 *   entry --> struct member_ttl --> listpack, table, skiplist ...
 *                  |-> table: member -> deadline
 *                  '-> heap:  the earliest deadline first
 *
 * Invariants: (1) what has a deadline is a member; (2) ENTRY_MEMBER_TTL is set exactly while there
 * is a deadline. They hold because a member's deadline goes where members go: hash_delete,
 * set_remove, zset_remove and zset_remove_ranks drop it, and so does hash_set when it replaces a
 * value.
 *
 * What keeps a deadline, and what does not: a new value by HSET, HMSET or KEYDB.HRENAME onto the
 * field drops it, HINCRBY and HINCRBYFLOAT keep it (all as in Redis 7.4); KEYDB.HRENAME takes it
 * along to the new name; SADD and ZADD of a member that is there keep it, and so do ZINCRBY and
 * GEOADD, since the member stays who it is; SMOVE drops it, since membership in another set is a
 * new one; RENAME, MOVE and COPY keep all of them; what STORE commands make has none; a change of
 * the encoding keeps them, and OBJECT ENCODING knows nothing of them (Redis 7.4 says listpackex of
 * small hashes with deadlines; we keep the names of 7.2). Digests do not see deadlines.
 *
 * This file knows no clock: that members whose time has come are gone for everybody at once is
 * keyspace/db.h's promise. Times are Unix milliseconds. State: keyspace; what changes needs
 * exclusive mode, or an entry that is in no database. The entry never moves; a collection that
 * keeps its members in the entry itself gets a block for them first (entry_with_block). */
#ifndef VALUE_MEMBER_TTL_H
#define VALUE_MEMBER_TTL_H

#include "value/entry.h"

/* Longest member that may have a deadline, and most of them in one collection. */
#define MEMBER_TTL_MAX_BYTES ((size_t)UINT32_MAX)
#define MEMBER_TTL_MAX_COUNT ((uint64_t)UINT32_MAX)

/* True for types whose members may have deadlines: hashes, sets, sorted sets. */
bool member_ttl_supported(const struct entry *e);
/* True while some member has a deadline. */
static inline bool member_ttl_any(const struct entry *e)
{
    return unlikely(e->flags & ENTRY_MEMBER_TTL);
}
/* How many members have one. */
uint64_t member_ttl_count(const struct entry *e);
/* The earliest deadline, ENTRY_NO_EXPIRY without any. */
int64_t member_ttl_next_ms(const struct entry *e);
/* The member's deadline, ENTRY_NO_EXPIRY when it has none or is no member. */
int64_t member_ttl_get(const struct entry *e, struct slice member);
/* True when every member has a deadline and none is after `now_ms`: the key is logically gone.
 * Usually O(1), O(N) at worst. */
bool member_ttl_all_due(const struct entry *e, int64_t now_ms);

/* Gives a member, which is there, of an entry that is ENTRY_EXTERNAL a deadline (not
 * ENTRY_NO_EXPIRY) or another one. False when it is too long or there are too many. X. Whoever has
 * the entry in a database uses db_set_member_ttl. */
bool member_ttl_set(struct entry *e, struct slice member, int64_t at_ms) MUST_CHECK;
/* Takes a member's deadline away; false when it had none. X */
bool member_ttl_drop(struct entry *e, struct slice member);
/* For the verbs that take members out or replace them: drops the deadline before that. X */
static inline void member_ttl_forget(struct entry *e, struct slice member)
{
    if (member_ttl_any(e)) {
        member_ttl_drop(e, member);
    }
}
/* Takes out up to `max` members whose deadlines are not after `now_ms`, earliest first; returns how
 * many. Shows each one to `visit` (may be NULL), which may not touch the entry. The collection may
 * be empty afterwards. X */
typedef void (*member_ttl_visit)(struct slice member, int64_t at_ms, void *context);
uint64_t member_ttl_remove_due(struct entry *e, int64_t now_ms, uint64_t max,
                               member_ttl_visit visit, void *context);

/* Shows all that have a deadline. */
void member_ttl_each(const struct entry *e, member_ttl_visit visit, void *context);

/* For entry.c: gives the copy `to`, which has none, the deadlines of `from`; frees all deadlines;
 * the bytes that they take, going by `samples` of them (0 = all). */
void member_ttl_copy(struct entry *to, const struct entry *from);
void member_ttl_drop_all(struct entry *e);
size_t member_ttl_memory_bytes(const struct entry *e, size_t samples);

/* Aborts when an invariant does not hold (tests, DEBUG). Walks everything. */
void member_ttl_check(const struct entry *e);

#endif
