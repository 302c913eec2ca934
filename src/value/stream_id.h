/* IDs of stream entries: milliseconds and a sequence number, written "ms-seq". Pure functions. */
#ifndef VALUE_STREAM_ID_H
#define VALUE_STREAM_ID_H

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct stream_id {
    uint64_t ms, seq;
};

#define STREAM_ID_MIN ((struct stream_id){0, 0})
#define STREAM_ID_MAX ((struct stream_id){UINT64_MAX, UINT64_MAX})
/* Bytes of an ID as a radix key, and room for its text. */
#define STREAM_ID_KEY_BYTES 16
#define STREAM_ID_TEXT_BYTES 41

/* <0, 0, >0 as `a` is before, equal to or behind `b`. */
static inline int stream_id_compare(struct stream_id a, struct stream_id b)
{
    if (a.ms != b.ms) {
        return a.ms < b.ms ? -1 : 1;
    }
    return (a.seq > b.seq) - (a.seq < b.seq);
}
static inline bool stream_id_is_zero(struct stream_id id)
{
    return id.ms == 0 && id.seq == 0;
}

/* The ID as 16 bytes whose memcmp order is the order of IDs (two big-endian numbers), and back. */
struct slice stream_id_key(struct stream_id id, char key[STREAM_ID_KEY_BYTES]);
struct stream_id stream_id_of_key(const char key[STREAM_ID_KEY_BYTES]);

/* The following or preceding ID; false when there is none. */
bool stream_id_increment(struct stream_id *id) MUST_CHECK;
bool stream_id_decrement(struct stream_id *id) MUST_CHECK;

/* Writes "ms-seq" (no NUL) and returns it. */
struct slice stream_id_format(struct stream_id id, char text[STREAM_ID_TEXT_BYTES]);
/* Reads "ms-seq", or "ms", where the sequence number is `missing_seq` then. False for anything else
 * ("-" and "+" included). */
bool stream_id_parse(struct slice text, uint64_t missing_seq, struct stream_id *id) MUST_CHECK;
/* The same, and "ms-*": *any_seq says whether the sequence number is left open (and 0 in *id). */
bool stream_id_parse_open(struct slice text, uint64_t missing_seq, struct stream_id *id,
                          bool *any_seq) MUST_CHECK;
/* "-" and "+" as well, for the smallest and the greatest ID: bounds of ranges. */
bool stream_id_parse_bound(struct slice text, uint64_t missing_seq,
                           struct stream_id *id) MUST_CHECK;

#endif
