/* Streams: entries in the order of their IDs, each with an ID and pairs of field and value, and
 * consumer groups beside them (stream_group.h). Entries are appended and deleted; a peer's may come
 * in between. They stand in listpacks, the nodes, which a radix tree finds by the ID of each one's
 * master entry. The listpack has the layout of Redis's files:
 *
 *   master  count | deleted | N | field_1 ... field_N | 0
 *   entry   flags | ms - master's | seq - master's | value_1 ... value_N | 3 + N       flags has 2
 *           flags | ms - master's | seq - master's | n | field_1 | value_1 ... | 4 + 2n   else
 *
 * The master's ID is that of the first entry put there, its fields that entry's; in a node from
 * outside the ID may be any that is not behind the first entry's, and the fields any (readers, and
 * Redis's too, add differences and need no more). flags: 1 deleted, 2 the fields are the master's.
 * count are the entries not deleted; an emptied node goes, but for what exact trimming by ID leaves
 * (and may be 0 in a file of Redis). The last number lets a reader go backwards. (Format: Redis's
 * RDB files, public.)
 *
 * State: keyspace; verbs that change need exclusive mode (marked X), the entry never moves. A
 * stream without entries stays, as its IDs do. */
#ifndef VALUE_STREAM_H
#define VALUE_STREAM_H

#include "base/option.h"
#include "ds/listpack.h"
#include "ds/radix.h"
#include "value/entry.h"
#include "value/stream_id.h"

extern const struct value_ops stream_ops;
/* stream-node-max-bytes, stream-node-max-entries. */
extern const struct option stream_options[];

/* Whatever the options say, a node grows no further: walking into it costs that much. A single
 * entry may be larger and has a node of its own then. */
#define STREAM_NODE_BYTES_CAP ((size_t)1 << 20)
#define STREAM_NODE_ENTRIES_CAP 65536
/* Bytes of fields and values of one entry, and their number. */
#define STREAM_ENTRY_MAX_BYTES ((size_t)1 << 29)
#define STREAM_ENTRY_MAX_WORDS (1 << 24)
/* Room that a view of a field or value needs: integers are kept as such. */
#define STREAM_TEXT_BYTES LISTPACK_TEXT_BYTES

/* Where the count of entries that ever were stops: as much as XSETID, files and sums know. */
#define STREAM_ADDED_MAX ((uint64_t)INT64_MAX)

/* What a stream knows beside its entries. Read by all, changed by the verbs of this header. */
struct stream_facts {
    uint64_t length;                 /* entries that are there */
    uint64_t entries_added;          /* that ever were; STREAM_ADDED_MAX: or more */
    struct stream_id first_id;       /* of the first that is there, 0-0 when empty */
    struct stream_id last_id;        /* of the last that ever was */
    struct stream_id max_deleted_id; /* the greatest ever deleted, 0-0 when none was */
};
const struct stream_facts *stream_facts(const struct entry *e);
/* The consumer groups by name: values belong to stream_group.h. For changing: X */
struct radix *stream_groups(const struct entry *e);
/* The nodes by master ID, for XINFO's figures. */
const struct radix *stream_nodes(const struct entry *e);
/* How many entries approximate trimming takes out at most when nobody says: those of a hundred
 * nodes. */
uint64_t stream_trim_usual_limit(void);

/* A new stream without entries and groups. No lock. */
struct entry *stream_create(struct slice key);

/* The ID that XADD's "*" gives: the clock's, or what follows the last one. False when there is none
 * left. */
bool stream_next_id(const struct stream_facts *facts, int64_t now_ms,
                    struct stream_id *id) MUST_CHECK;
/* The ID that "ms-*" gives: id->ms is set, id->seq will be. False when it would not be greater than
 * the last one. */
bool stream_next_seq(const struct stream_facts *facts, struct stream_id *id) MUST_CHECK;

/* IDs of an active node (active/DESIGN.md) are like no other node's: the lower half of the sequence
 * numbers that the two above choose is its tag. 0: they are Redis's, whose lowest follows. While
 * there is a tag entries may come in between, and groups do not count what they read. World. */
void stream_set_id_tag(uint32_t tag);
extern uint32_t stream_id_tag;

/* Appends an entry with an ID greater than last_id; `words` are field, value, field, value ...
 * (`count` of them, even, within the limits above: stream_entry_fits). X */
void stream_append(struct entry *e, struct stream_id id, const struct slice *words, int count);
/* Puts an entry where its ID belongs, also before others; one that has this ID goes. It counts as
 * added in any case. O(bytes of a node). X */
void stream_insert(struct entry *e, struct stream_id id, const struct slice *words, int count);
/* True when an entry of these words is within the limits; *need_bytes is then what adding it to
 * `e` (NULL: a new stream) may allocate at once. */
bool stream_entry_fits(const struct entry *e, const struct slice *words, int count,
                       size_t *need_bytes);
/* Deletes an entry; false when it is not there. X */
bool stream_delete(struct entry *e, struct stream_id id);

enum stream_trim_kind { STREAM_TRIM_NONE, STREAM_TRIM_LENGTH, STREAM_TRIM_ID };
struct stream_trim {
    enum stream_trim_kind kind;
    bool approximate;    /* whole nodes only */
    uint64_t length;     /* STREAM_TRIM_LENGTH: so many entries stay */
    struct stream_id id; /* STREAM_TRIM_ID: entries before it go */
    uint64_t limit;      /* approximate: at most so many entries go; 0: no limit */
};
/* Deletes entries from the front; returns how many. Touches nothing but them and first_id (no
 * tombstone: max_deleted_id stays). X */
uint64_t stream_trim(struct entry *e, const struct stream_trim *trim);
/* XSETID: last_id, and unless NULL the two others. X */
void stream_set_facts(struct entry *e, struct stream_id last_id, const uint64_t *entries_added,
                      const struct stream_id *max_deleted_id);

/* ---- Walking ---- */

/* Entries from first to last, both included, ascending or descending. Void after any change. */
struct stream_cursor {
    struct stream_id id;  /* of the entry the walk is on */
    uint64_t field_count; /* its pairs */
    /* Below: the walk's own. */
    struct stream_id first, last; /* the range */
    bool down;
    bool same_fields;             /* the entry's fields are the master's */
    struct radix_cursor node;     /* whose listpack the walk is in */
    const unsigned char *lp;      /* NULL: the walk has ended */
    const unsigned char *fields;  /* the master's first field */
    const unsigned char *entries; /* the node's first entry */
    uint64_t master_fields;
    struct stream_id base;      /* master ID */
    const unsigned char *flags; /* where the entry starts; NULL: before the node's first one */
    const unsigned char *at;    /* its next field or value */
    const unsigned char *field; /* its next field in the master */
    uint64_t left;              /* pairs from there on */
};
/* A walk that is before its first entry. */
void stream_walk(struct stream_cursor *c, const struct entry *e, struct stream_id first,
                 struct stream_id last, bool down);
/* Goes to the next entry: sets id and field_count; false at the end. */
bool stream_walk_next(struct stream_cursor *c);
/* The next pair of the entry; called at most field_count times. Views of the listpack or of the
 * texts (STREAM_TEXT_BYTES each). */
void stream_walk_pair(struct stream_cursor *c, struct slice *field, struct slice *value,
                      char *field_text, char *value_text);
/* True when the entry is there; a cursor on it for its pairs. */
bool stream_find(const struct entry *e, struct stream_id id, struct stream_cursor *c);

/* Aborts when an invariant does not hold (tests, DEBUG). */
void stream_check(const struct entry *e);

#endif
