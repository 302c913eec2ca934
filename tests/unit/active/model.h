/* A tiny model of the data, as an executor for the merge: two databases of ten keys, values of the
 * types of which the rules speak, no expiry by itself. Contents are plain structs, so that copies,
 * payloads and comparisons are of bytes. */
#ifndef TESTS_UNIT_ACTIVE_MODEL_H
#define TESTS_UNIT_ACTIVE_MODEL_H

#include "active/merge.h"

#define MODEL_DBS 2
#define MODEL_KEYS 10
#define MODEL_MEMBERS 6
#define MODEL_TEXT_MAX 160
#define MODEL_LIST_MAX 160

enum model_type { MODEL_NONE, MODEL_STRING, MODEL_HASH, MODEL_SET, MODEL_ZSET, MODEL_LIST };

/* Bytes that mean nothing are zero. */
struct model_value {
    int64_t deadline_ms;
    double number[MODEL_MEMBERS]; /* a hash's integers, a sorted set's scores */
    int64_t member_deadline_ms[MODEL_MEMBERS];
    uint8_t there[MODEL_MEMBERS];
    uint8_t type;
    uint8_t padding;
    uint16_t len; /* of text or list */
    char text[MODEL_TEXT_MAX];
    uint16_t list[MODEL_LIST_MAX];
    uint16_t padding_too[3];
};

struct model {
    struct model_value values[MODEL_DBS][MODEL_KEYS];
    struct dot dots[MODEL_DBS][MODEL_KEYS];
    const struct origins *origins; /* for the order of dots */
    bool changed;                  /* something, by what was run last */
};

extern const struct merge_executor model_executor;

/* Keys are "k0".."k9", members "m0".."m5". */
struct slice model_key_name(int key);
bool model_run(struct model *m, int db, int argc, const struct slice *argv);
/* The value as text, for who looks at a failure. */
void model_describe(const struct model_value *v, struct buf *out);

#endif
