/* Sorted sets: distinct members, each with a score (a double, never NaN), in the order of (score,
 * member by memcmp). Small ones are a listpack of member, score, member, score ... (Redis's format:
 * a score that is a whole number within 2^62 is an integer, so that -0 becomes 0; others are
 * shortest text); large ones are a skiplist whose nodes a table finds by member. A small one
 * becomes large when it would pass the limits below, never the other way; what STORE commands make
 * is encoded by its size. A sorted set in the keyspace is never empty. State: keyspace; verbs that
 * change need exclusive mode, the entry never moves. Ranks count from 0, members before the first.
 */
#ifndef VALUE_ZSET_H
#define VALUE_ZSET_H

#include "base/option.h"
#include "ds/listpack.h"
#include "ds/skiplist.h"
#include "value/entry.h"

struct zset_order;
struct zset_building;

extern const struct value_ops zset_ops;
/* zset-max-listpack-entries, zset-max-listpack-value, with their old names. */
extern const struct option zset_options[];

/* Whatever the options say, a listpack has no more members and none longer: walking it costs that
 * much. */
#define ZSET_LISTPACK_ENTRIES_CAP 8192
#define ZSET_LISTPACK_VALUE_CAP (64 * 1024)
/* Longest member there is. */
#define ZSET_MAX_MEMBER_BYTES SKIPLIST_MAX_BYTES
/* Room that a view of a member needs: members that are integers are kept as such. */
#define ZSET_TEXT_BYTES LISTPACK_TEXT_BYTES

/* A new sorted set without members, small; `first_member_bytes` decides where even one member is
 * too long. No lock. */
struct entry *zset_create(struct slice key, size_t first_member_bytes);
/* Number of members. */
uint64_t zset_count(const struct entry *e);
/* True and the member's score when it is there. */
bool zset_score(const struct entry *e, struct slice member, double *score);
/* True and the member's rank and score when it is there. */
bool zset_rank(const struct entry *e, struct slice member, uint64_t *rank, double *score);

/* Conditions and kinds of zset_add. */
enum zset_add_flag {
    ZSET_ADD_NX = 1 << 0,   /* only new members */
    ZSET_ADD_XX = 1 << 1,   /* only members that are there */
    ZSET_ADD_GT = 1 << 2,   /* of those there, only to a greater score */
    ZSET_ADD_LT = 1 << 3,   /* of those there, only to a smaller score */
    ZSET_ADD_INCR = 1 << 4, /* the score is an increment of what is there */
};
enum zset_added {
    ZSET_SKIPPED,   /* a condition did not hold */
    ZSET_UNCHANGED, /* it has that score already */
    ZSET_UPDATED,
    ZSET_ADDED,
    ZSET_NAN, /* the sum is no number; nothing changed */
};
/* Gives `member` (at most ZSET_MAX_MEMBER_BYTES) the score `*score`, or adds it to the one it has;
 * *score is what it has then, unless skipped. X */
enum zset_added zset_add(struct entry *e, struct slice member, unsigned flags, double *score);
/* Removes a member with its deadline (member_ttl.h); false when it was not there. The set may be
 * empty afterwards. X */
bool zset_remove(struct entry *e, struct slice member);
/* Removes the members of ranks start .. stop-1, stop at most the count, with their deadlines. X */
void zset_remove_ranks(struct entry *e, uint64_t start, uint64_t stop);

/* Ranges. */
struct zset_score_range {
    double min, max;
    bool min_excluded, max_excluded;
};
enum zset_lex_kind { ZSET_LEX_MEMBER, ZSET_LEX_LOWEST, ZSET_LEX_HIGHEST };
struct zset_lex_bound {
    enum zset_lex_kind kind;
    struct slice member;
    bool excluded;
};
struct zset_lex_range {
    struct zset_lex_bound min, max;
};
/* Reads a bound as clients write it: "-", "+", "[member", "(member"; the member is a part of
 * `text`. False for anything else. */
bool zset_parse_lex_bound(struct slice text, struct zset_lex_bound *bound) MUST_CHECK;
/* Members as ranks start .. stop-1; start == stop when there are none. */
struct zset_span {
    uint64_t start, stop;
};
struct zset_span zset_span_of_scores(const struct entry *e, const struct zset_score_range *range);
/* By members; of use where all scores are equal. */
struct zset_span zset_span_of_members(const struct entry *e, const struct zset_lex_range *range);

/* Walking, from a rank, up or down. Valid while nothing changes. */
struct zset_cursor {
    const unsigned char *listpack; /* NULL for a skiplist */
    const unsigned char *at;       /* the member in the listpack, NULL behind the end */
    const struct skiplist_node *node;
    bool down;
};
/* A cursor on the member of rank `rank` (behind the end when there is none). */
struct zset_cursor zset_cursor_at(const struct entry *e, uint64_t rank, bool down);
static inline bool zset_cursor_valid(const struct zset_cursor *c)
{
    return c->at || c->node;
}
/* The member: a view of the set's bytes or of `text` (ZSET_TEXT_BYTES). */
struct slice zset_cursor_member(const struct zset_cursor *c, char *text);
double zset_cursor_score(const struct zset_cursor *c);
void zset_cursor_step(struct zset_cursor *c);

/* Visits members as table_scan does: all of a small set at once, some buckets of a large one, until
 * about `count` were seen. Returns the next cursor, 0 at the end. */
typedef void (*zset_visit_fn)(struct slice member, double score, void *context);
uint64_t zset_scan(const struct entry *e, uint64_t cursor, uint64_t count, zset_visit_fn visit,
                   void *context);

/* Shows `count` random members, each drawn from all; the set is not empty. */
void zset_draw(const struct entry *e, uint64_t count, zset_visit_fn visit, void *context);

/* A draft: members being gathered for a result, no value yet. A large one can be put in order and
 * made a value bit by bit. No lock; owned by the caller. */
struct zset_draft {
    struct skiplist_node **nodes; /* in order after zset_draft_sort; NULL once it is built */
    uint64_t count, capacity;
    size_t bytes, longest; /* of the members */
    size_t shared;         /* bytes that all members begin with, as far as looked at */
    struct table *index;   /* by member; NULL when members are known to be distinct */
    bool sorted;
    bool lost;                /* there was no memory for all of it: of no use but to be given up */
    struct zset_order *order; /* being sorted */
    struct zset_building *building; /* being built, or built */
};
/* An empty draft; `indexed` when zset_draft_find will be called. */
void zset_draft_init(struct zset_draft *d, bool indexed);
void zset_draft_deinit(struct zset_draft *d);
/* Adds a member that is not there yet. Where that takes a large allocation that is refused,
 * nothing, and from then on: the draft is lost. Before it is sorted. */
void zset_draft_add(struct zset_draft *d, struct slice member, double score);
/* The score of a member of an indexed draft, to be read and changed; NULL when it is not there. */
double *zset_draft_find(struct zset_draft *d, struct slice member);
/* The score of a member of an indexed draft, to be changed; one that is not there is added with
 * `score`, and NULL returned (also when the draft is lost). Before it is sorted. */
double *zset_draft_find_or_add(struct zset_draft *d, struct slice member, double score);
/* Puts the nodes into the order of sorted sets. */
void zset_draft_sort(struct zset_draft *d);
/* The same for about `steps` looks at a member; true when they are in order (or the draft is lost).
 */
bool zset_draft_sort_some(struct zset_draft *d, uint64_t steps) MUST_CHECK;
/* Prepares zset_draft_finish of a sorted draft for about `steps` members; true when nothing is left
 * of it that takes long. */
bool zset_draft_build_some(struct zset_draft *d, uint64_t steps) MUST_CHECK;
/* Makes a sorted set of a sorted draft, not empty, which is empty then. */
struct entry *zset_draft_finish(struct zset_draft *d, struct slice key, int64_t expiry_ms);

/* Aborts when an invariant does not hold (tests, DEBUG). */
void zset_check(const struct entry *e);

#endif
