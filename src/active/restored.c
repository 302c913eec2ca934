/* See restored.h. */
#include "active/restored.h"

#include "base/mem.h"
#include "base/num.h"
#include "keyspace/db.h"

#include <string.h>

/* A conflict in a head: 4 database, 8 stamp, 4 length, the key. */
#define CONFLICT_HEAD_BYTES 16
/* Entries that a step of a walk looks at. */
#define WALK_ENTRIES 1024

/* What the head of a unit says, but for its dot. */
enum fact_kind { FACT_DOT, FACT_CONFLICT, FACT_RESOLVED, FACT_LIBRARY, FACT_GAVE, FACT_HEARD };
struct fact {
    enum fact_kind kind;
    int db;
    struct dot dot; /* FACT_CONFLICT: its stamp is the state's */
    size_t len;     /* of the key, or the row, which follows */
};

void restored_init(struct restored *p, int first_db, int dbs)
{
    *p = (struct restored){.first_db = first_db, .dbs = dbs};
    origins_init(&p->origins);
    p->conflicts = conflicts_create(0, 0);
}

void restored_deinit(struct restored *p)
{
    origins_deinit(&p->origins);
    conflicts_destroy(&p->conflicts);
    dot_table_deinit(&p->table);
    buf_deinit(&p->facts);
    buf_deinit(&p->merging);
    mem_free(p->merging_had);
    p->merging_had = NULL;
    buf_deinit(&p->libraries);
    gives_deinit(&p->gives);
}

/* ---- the head of a file: writing ---- */

struct conflicts_text {
    const struct conflicts *conflicts;
    struct buf *out;
};

static void put_conflict(int db, struct slice key, void *context)
{
    struct conflicts_text *t = context;
    le_put(t->out, (uint64_t)db, 4);
    le_put(t->out, conflicts_stamp(t->conflicts, db, key), 8);
    le_put(t->out, key.len, 4);
    buf_append_slice(t->out, key);
}

static void put_library(struct slice row, void *out)
{
    buf_append_slice(out, row);
}

void restored_tell(const uint8_t *id, uint64_t clock, const struct origins *o,
                   const struct conflicts *d, const struct libraries *l, const struct gives *g,
                   restored_put put, void *context)
{
    char text[NUM_I64_MAX_CHARS];
    struct buf bytes = {0};
    for (int i = 0; i < ORIGIN_NODE_BYTES; i++) {
        buf_printf(&bytes, "%02x", id[i]);
    }
    put("active-node", buf_slice(&bytes), context);
    put("active-clock", slice_of(text, num_format_u64(text, clock)), context);
    buf_clear(&bytes);
    dot_table_put(o, &bytes);
    put("active-positions", buf_slice(&bytes), context);
    buf_clear(&bytes);
    conflicts_each(d, put_conflict, &(struct conflicts_text){d, &bytes});
    if (bytes.len > 0) {
        put("active-conflicts", buf_slice(&bytes), context);
    }
    buf_clear(&bytes);
    libraries_each(l, false, put_library, &bytes);
    if (bytes.len > 0) {
        put("active-libraries", buf_slice(&bytes), context);
    }
    buf_clear(&bytes);
    for (size_t i = 0; i < g->count; i++) {
        if (gives_at(g, i)->words > 0) {
            gives_put_row(gives_at(g, i), &bytes);
        }
    }
    if (bytes.len > 0) {
        put("active-gives", buf_slice(&bytes), context);
    }
    buf_deinit(&bytes);
}

/* ---- reading ---- */

static const char *take_node(struct restored *p, struct slice value)
{
    char text[ORIGIN_CHARS];
    struct origin_id id;
    memset(text, '0', sizeof(text)); /* an origin's text, but for the epoch */
    if (value.len == 2 * ORIGIN_NODE_BYTES) {
        memcpy(text, value.ptr, value.len);
    }
    if (value.len != 2 * ORIGIN_NODE_BYTES || !origin_parse(slice_of(text, sizeof(text)), &id)) {
        return "an id of a node that is damaged";
    }
    memcpy(p->id, id.node, sizeof(p->id));
    p->has_id = true;
    return NULL;
}

static const char *take_clock(struct restored *p, struct slice value)
{
    uint64_t clock;
    if (!num_parse_u64(value, &clock)) {
        return "a clock that is damaged";
    }
    p->clock = clock > p->clock ? clock : p->clock;
    return NULL;
}

static const char *take_positions(struct restored *p, struct slice value)
{
    dot_table_deinit(&p->table);
    if (!dot_table_get(&p->table, &p->origins, value)) {
        return "positions that are damaged";
    }
    for (uint32_t i = 1; i < p->table.count; i++) {
        origins_advance(&p->origins, p->table.ours[i], p->table.positions[i]);
    }
    return NULL;
}

static bool is_db(const struct restored *p, uint64_t db)
{
    return db < (uint64_t)p->dbs;
}

static const char *take_conflicts(struct restored *p, struct slice value)
{
    const char *at = value.ptr, *end = value.ptr + value.len;
    while (at < end) {
        uint64_t len = (size_t)(end - at) < CONFLICT_HEAD_BYTES ? UINT64_MAX : le_get(at + 12, 4);
        if (len > (size_t)(end - at) - CONFLICT_HEAD_BYTES || !is_db(p, le_get(at, 4))) {
            return "keys in conflict that are damaged";
        }
        conflicts_note(p->conflicts, (int)le_get(at, 4), slice_of(at + CONFLICT_HEAD_BYTES, len),
                       le_get(at + 4, 8), 0);
        at += CONFLICT_HEAD_BYTES + len;
    }
    return NULL;
}

static const char *take_libraries(struct restored *p, struct slice value)
{
    struct library_row row;
    struct slice rest = value;
    while (rest.len > 0) {
        if (!library_row_next(&rest, &row)) {
            return "what it says of libraries is damaged";
        }
    }
    buf_append_slice(&p->libraries, value);
    return NULL;
}

static const char *take_gives(struct restored *p, struct slice value)
{
    struct give give;
    while (value.len > 0) {
        if (!gives_next_row(&value, &give) || !is_db(p, (uint64_t)give.db)) {
            return "what was given to others' clients is damaged";
        }
        gives_add(&p->gives, &give);
    }
    return NULL;
}

const char *restored_take(struct restored *p, struct slice name, struct slice value, bool *known)
{
    static const struct {
        const char *name;
        const char *(*take)(struct restored *p, struct slice value);
    } fields[] = {{"active-node", take_node},           {"active-clock", take_clock},
                  {"active-positions", take_positions}, {"active-conflicts", take_conflicts},
                  {"active-libraries", take_libraries}, {"active-gives", take_gives}};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (slice_equal(name, slice_cstr(fields[i].name))) {
            *known = true;
            return fields[i].take(p, value);
        }
    }
    *known = false;
    return NULL;
}

const char *restored_take_dot(const struct restored *p, struct slice value, struct dot *dot)
{
    if (!dot_get(&p->table, value, dot)) {
        return "a dot that is damaged, or of an origin that the file does not name";
    }
    return dot->stamp <= p->clock ? NULL : "a dot that is later than the file's clock";
}

/* ---- heads of units ---- */

static void add_fact(struct restored *p, enum fact_kind kind, int db, struct dot dot,
                     struct slice key)
{
    struct fact f = {.kind = kind, .db = db, .dot = dot, .len = key.len};
    buf_append(&p->facts, (const char *)&f, sizeof(f));
    buf_append_slice(&p->facts, key);
}

/* <origin> <sequence> <stamp>, of which the origin is entered where that is wanted. */
static bool parse_dot(struct restored *p, const struct slice *argv, bool enters, struct dot *dot)
{
    struct origin_id id;
    uint64_t sequence, stamp;
    if (!origin_parse(argv[0], &id) || !num_parse_u64(argv[1], &sequence) ||
        !num_parse_u64(argv[2], &stamp) || sequence == 0 || sequence > ORIGIN_SEQUENCE_MAX ||
        stamp == 0) {
        return false;
    }
    uint16_t index = enters ? origins_enter(&p->origins, &id) : origins_find(&p->origins, &id);
    *dot = dot_of(stamp, index, sequence);
    return index != 0;
}

/* The words of a head that begin facts. */
struct form {
    const char *name;
    int words;
    enum fact_kind kind;
};
static const struct form forms[] = {{"KEY", 3, FACT_DOT},
                                    {"DOT", 6, FACT_DOT},
                                    {"CONFLICT", 4, FACT_CONFLICT},
                                    {"RESOLVED", 3, FACT_RESOLVED}};
#define DOT_WORDS 6

static const struct form *form_of(struct slice word)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (slice_equal_nocase(word, forms[i].name)) {
            return &forms[i];
        }
    }
    return NULL;
}

static bool is_library(const struct restored *p, struct slice row)
{
    struct library_row said;
    (void)p;
    return library_row_next(&row, &said) && row.len == 0;
}

static bool is_give(const struct restored *p, struct slice row)
{
    struct give give;
    return gives_next_row(&row, &give) && row.len == 0 && is_db(p, (uint64_t)give.db);
}

static bool is_heard(const struct restored *p, struct slice row)
{
    struct gives none = {.rows = NULL};
    (void)p;
    return gives_hear_row(&none, row);
}

/* The words of a head with a row behind them. */
static const struct row_form {
    const char *name;
    enum fact_kind kind;
    bool (*is_row)(const struct restored *p, struct slice row);
} row_forms[] = {{"LIBRARY", FACT_LIBRARY, is_library},
                 {"GAVE", FACT_GAVE, is_give},
                 {"HEARD", FACT_HEARD, is_heard}};

static const struct row_form *row_form_of(struct slice word)
{
    for (size_t i = 0; i < sizeof(row_forms) / sizeof(row_forms[0]); i++) {
        if (slice_equal_nocase(word, row_forms[i].name)) {
            return &row_forms[i];
        }
    }
    return NULL;
}

/* A word of a head with what follows it: takes it, and returns how many words it was; 0: damage. */
static int take_fact(struct restored *p, int argc, const struct slice *argv)
{
    uint64_t db;
    struct dot dot = p->dot;
    const struct form *f = form_of(argv[0]);
    const struct row_form *r = row_form_of(argv[0]);
    if (r && argc > 1 && r->is_row(p, argv[1])) {
        add_fact(p, r->kind, 0, p->dot, argv[1]);
        return 2;
    }
    if (!f || argc < f->words || !num_parse_u64(argv[1], &db) || !is_db(p, db)) {
        return 0;
    }
    /* Of a data set there may be origins of which nothing else was heard. */
    bool enters = p->dot.stamp == 0;
    if (f->words == DOT_WORDS && !parse_dot(p, argv + 3, enters, &dot)) {
        return 0;
    }
    if (f->kind == FACT_CONFLICT && !num_parse_u64(argv[3], &dot.stamp)) {
        return 0;
    }
    p->has_keys |= f->kind == FACT_DOT;
    add_fact(p, f->kind, (int)db, dot, argv[2]);
    return f->words;
}

/* KEYDB.AUX name value. */
static const char *take_aux(struct restored *p, const struct slice *argv, bool *alone)
{
    bool known;
    *alone = !slice_equal_nocase(argv[1], "active-dot");
    p->is_base = true;
    return *alone ? restored_take(p, argv[1], argv[2], &known)
                  : restored_take_dot(p, argv[2], &p->dot);
}

/* The words of a head from `first` on. */
static const char *take_facts(struct restored *p, int argc, const struct slice *argv, int first,
                              bool *alone)
{
    *alone = argc > first && slice_equal_nocase(argv[argc - 1], "alone");
    int words = argc - *alone;
    for (int i = first; i < words;) {
        bool none = slice_equal_nocase(argv[i], "nokey");
        int taken = none ? 1 : take_fact(p, words - i, argv + i);
        if (taken == 0) {
            return "what it says of keys is damaged";
        }
        p->has_keys |= none;
        i += taken;
    }
    return NULL;
}

static const char *take_dot_record(struct restored *p, int argc, const struct slice *argv,
                                   bool *alone)
{
    if (argc < 4 || !parse_dot(p, argv + 1, true, &p->dot)) {
        return "a dot that is damaged, or too many origins";
    }
    uint64_t position = origins_at(&p->origins, dot_origin(p->dot))->position;
    if (dot_sequence(p->dot) != position + 1) {
        return "it is not the next write of its origin";
    }
    return take_facts(p, argc, argv, 4, alone);
}

/* KEYDB.DOTS: no write of an origin, keys of a data set. */
static const char *take_dots_record(struct restored *p, int argc, const struct slice *argv,
                                    bool *alone)
{
    const char *error = take_facts(p, argc, argv, 1, alone);
    p->has_keys = true; /* or none is meant */
    return error;
}

static void forget_merging(struct restored *p)
{
    buf_clear(&p->merging);
    mem_free(p->merging_had);
    p->merging_had = NULL;
}

/* KEYDB.MERGING file done [positions]: the first one of a data set has them. */
static const char *take_merging(struct restored *p, int argc, const struct slice *argv)
{
    if ((argc != 3 && argc != 4) || !num_parse_u64(argv[2], &p->merging_done) || argv[1].len == 0 ||
        memchr(argv[1].ptr, '/', argv[1].len) || memchr(argv[1].ptr, '\0', argv[1].len)) {
        return "it names no file";
    }
    struct version_vector *had = argc == 4 ? version_vector_decode(&p->origins, argv[3]) : NULL;
    if (argc == 4 && !had) {
        return "positions that are damaged";
    }
    if (had || !slice_equal(buf_slice(&p->merging), argv[1])) {
        forget_merging(p);
        p->merging_had = had;
    }
    buf_clear(&p->merging);
    buf_append_slice(&p->merging, argv[1]);
    return NULL;
}

/* KEYDB.MERGED clock positions. */
static const char *take_merged(struct restored *p, int argc, const struct slice *argv)
{
    struct version_vector *positions =
        argc == 3 ? version_vector_decode(&p->origins, argv[2]) : NULL;
    if (!positions || take_clock(p, argv[1])) {
        mem_free(positions);
        return "positions that are damaged";
    }
    for (uint32_t i = 1; i < positions->count; i++) {
        origins_advance(&p->origins, (uint16_t)i, positions->sequence[i]);
    }
    mem_free(positions);
    forget_merging(p);
    return NULL;
}

/* KEYDB.PARTED: the node's life was over, and the keys were nobody's then. */
static const char *take_parted(struct restored *p)
{
    origins_deinit(&p->origins);
    origins_init(&p->origins);
    conflicts_destroy(&p->conflicts);
    p->conflicts = conflicts_create(0, 0);
    dot_table_deinit(&p->table);
    forget_merging(p);
    buf_clear(&p->libraries);
    gives_deinit(&p->gives);
    p->has_parted = true;
    return NULL;
}

const char *restored_take_record(struct restored *p, int argc, const struct slice *argv,
                                 bool *alone)
{
    *alone = true;
    p->is_base = p->has_keys = p->has_parted = false;
    p->dot = (struct dot){0, 0};
    buf_clear(&p->facts);
    if (slice_equal_nocase(argv[0], "keydb.dot")) {
        return take_dot_record(p, argc, argv, alone);
    }
    if (slice_equal_nocase(argv[0], "keydb.dots")) {
        return take_dots_record(p, argc, argv, alone);
    }
    if (slice_equal_nocase(argv[0], "keydb.merging")) {
        return take_merging(p, argc, argv);
    }
    if (slice_equal_nocase(argv[0], "keydb.merged")) {
        return take_merged(p, argc, argv);
    }
    if (argc == 1 && slice_equal_nocase(argv[0], "keydb.parted")) {
        return take_parted(p);
    }
    return argc == 3 ? take_aux(p, argv, alone) : "it has not three words";
}

static void set_dot(int db, struct slice name, struct dot dot) REQUIRES(keyspace_lock)
{
    struct key key = key_of(name);
    db_set_stamp(db_at(db), &key, &dot);
}

static void add_give(struct restored *p, struct slice row)
{
    struct give give;
    if (gives_next_row(&row, &give)) { /* it was looked at */
        gives_add(&p->gives, &give);
    }
}

/* A fact that is not about a key. */
static void apply_row(struct restored *p, enum fact_kind kind, struct slice row)
{
    if (kind == FACT_LIBRARY) {
        buf_append_slice(&p->libraries, row);
    } else if (kind == FACT_GAVE) {
        add_give(p, row);
    } else {
        gives_hear_row(&p->gives, row);
    }
}

static void apply_facts(struct restored *p) REQUIRES(keyspace_lock)
{
    for (size_t at = 0; at < p->facts.len;) {
        struct fact f;
        memcpy(&f, p->facts.data + at, sizeof(f));
        struct slice key = slice_of(p->facts.data + at + sizeof(f), f.len);
        if (f.kind == FACT_DOT) {
            set_dot(p->first_db + f.db, key, f.dot);
            p->clock = f.dot.stamp > p->clock ? f.dot.stamp : p->clock;
        } else if (f.kind >= FACT_LIBRARY) {
            apply_row(p, f.kind, key);
        } else if (f.kind == FACT_CONFLICT) {
            conflicts_note(p->conflicts, f.db, key, f.dot.stamp, 0);
        } else {
            conflicts_resolve(p->conflicts, f.db, key, UINT64_MAX);
        }
        at += sizeof(f) + f.len;
    }
    buf_clear(&p->facts);
}

static void void_stamp(struct entry *e, void *context)
{
    (void)context;
    entry_void_stamp(e);
}

void restored_void_dots(int first_db, int dbs)
{
    for (int i = first_db; i < first_db + dbs; i++) {
        uint64_t cursor = 0;
        do {
            cursor = db_scan(db_at(i), cursor, WALK_ENTRIES, 0, void_stamp, NULL);
        } while (cursor);
    }
}

void restored_apply(struct restored *p, int db, struct slice key)
{
    if (p->has_parted) {
        restored_void_dots(p->first_db, p->dbs);
    }
    if (!p->has_keys && key.len > 0 && p->dot.stamp != 0) {
        set_dot(db, key, p->dot);
    }
    apply_facts(p);
    if (!p->is_base && p->dot.stamp != 0) {
        origins_advance(&p->origins, dot_origin(p->dot), dot_sequence(p->dot));
        p->clock = p->dot.stamp > p->clock ? p->dot.stamp : p->clock;
    }
}
