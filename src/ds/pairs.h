/* Pairs: small texts, a field and a value in turn, packed into bytes that are walked forward only.
 * The encoding of small hashes. Denser than a listpack (listpack.h), which has two bytes beside
 * each text and seven in all, since a hash never walks backwards:
 *
 *   u32: bytes in use (low 18 bits, this word included), pairs (high 14 bits), little-endian
 *   pair: head | field | value
 *
 *   head: high four bits  0-14  a field of that many bytes and 1 follows
 *                         15    a listpack's element without the length behind it
 *         low four bits   0-14  a value of that many bytes and 2 follows
 *                         15    a listpack's element without the length behind it
 *
 * Of the two forms a text has the shorter one (elements hold integers in few bytes), the first when
 * they are equal: a text is written in one way only, and looking for it compares bytes.
 *
 * The bytes stand wherever their owner puts them; who changes them has made room first. Listpacks
 * in files and payloads are made of them and into them pair by pair. State: that of the owner. No
 * verb allocates. */
#ifndef DS_PAIRS_H
#define DS_PAIRS_H

#include "base/buf.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAIRS_HEADER_BYTES ((size_t)4)
#define PAIRS_MAX_BYTES (((size_t)1 << 18) - 1)
#define PAIRS_MAX_COUNT (((uint32_t)1 << 14) - 1)
/* Room that an integer's text needs in pairs_get. */
#define PAIRS_TEXT_BYTES 24

/* Makes PAIRS_HEADER_BYTES at `p` into no pairs. */
void pairs_init(unsigned char *p);
/* Bytes in use, and number of pairs. */
size_t pairs_bytes(const unsigned char *p);
uint32_t pairs_count(const unsigned char *p);
/* Bytes that a pair takes. */
size_t pairs_pair_bytes(struct slice field, struct slice value);

/* Positions: pointers to pairs, NULL behind the last. Void after any change and any move. */
unsigned char *pairs_first(const unsigned char *p);
unsigned char *pairs_next(const unsigned char *p, const unsigned char *at);
/* The position of pair `index`, which is there. */
unsigned char *pairs_seek(const unsigned char *p, uint32_t index);
/* The position of a field; NULL when it is not there. */
unsigned char *pairs_find(const unsigned char *p, struct slice field);
/* The field and the value of the pair at `at`: views, or of integers the text in `text`
 * (PAIRS_TEXT_BYTES). */
struct slice pairs_field(const unsigned char *at, char *text);
struct slice pairs_value(const unsigned char *at, char *text);

/* A change that is known but not made yet, so that its owner can make room in between.
 *
 *   struct pairs_change change;
 *   pairs_plan_set(p, field, value, &change);
 *   ... room for change.bytes_after at p, which may have moved ...
 *   pairs_apply(p, &change);
 *
 * It borrows the texts and holds no address of p. */
struct pairs_text {
    struct slice tail;
    size_t bytes; /* without the pair's head */
    uint8_t code; /* four bits of the pair's head */
    uint8_t head_len;
    unsigned char head[9];
};
struct pairs_change {
    size_t offset, removed; /* where, and how many bytes give way */
    size_t bytes_after;     /* of all pairs */
    bool is_new;            /* the field is not there yet */
    struct pairs_text field, value;
};
/* Plans to set a field. The result may pass PAIRS_MAX_BYTES or PAIRS_MAX_COUNT: then it must not be
 * applied. */
void pairs_plan_set(const unsigned char *p, struct slice field, struct slice value,
                    struct pairs_change *change);
void pairs_apply(unsigned char *p, const struct pairs_change *change);
/* Removes the pair at `at`. */
void pairs_remove(unsigned char *p, unsigned char *at);

/* Appends lines that tell where each pair stands (DEBUG). */
void pairs_describe(const unsigned char *p, struct buf *out);

/* True when the `size` bytes are pairs and nothing else (tests, checks): every length, the count,
 * the end. */
bool pairs_are_valid(const unsigned char *p, size_t size);

#endif
