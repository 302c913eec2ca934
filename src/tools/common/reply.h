/* A server's reply as a tree, RESP2 and RESP3 alike.
 *
 * Owns: its strings and, inline in `items`, its children. State: plain value of one thread.
 * Who reads replies from bytes is reader.h. */
#ifndef TOOLS_COMMON_REPLY_H
#define TOOLS_COMMON_REPLY_H

#include <stdbool.h>
#include <stddef.h>

enum reply_type {
    REPLY_NIL,       /* _ or $-1 or *-1 */
    REPLY_STATUS,    /* + */
    REPLY_ERROR,     /* - and ! */
    REPLY_INTEGER,   /* : */
    REPLY_STRING,    /* $ */
    REPLY_VERBATIM,  /* =, `text` without the three letters and the colon of its format */
    REPLY_DOUBLE,    /* comma, `text` as the server wrote it */
    REPLY_BIGNUMBER, /* ( */
    REPLY_BOOL,      /* # */
    REPLY_ARRAY,     /* * */
    REPLY_SET,       /* ~ */
    REPLY_MAP,       /* %, items are key, value, key, value ... */
    REPLY_PUSH,      /* > */
    REPLY_ATTRIBUTE, /* |, as a map; the reader drops it and never returns it */
};

struct reply {
    enum reply_type type;
    bool boolean;        /* BOOL */
    char verbatim[4];    /* VERBATIM: the format's three letters and a zero */
    long long integer;   /* INTEGER */
    char *text;          /* STATUS ERROR STRING VERBATIM DOUBLE BIGNUMBER, zero behind; else NULL */
    size_t len;          /* bytes of `text` */
    struct reply *items; /* ARRAY SET MAP PUSH; NULL when there are none */
    size_t count;        /* of items; a map of n pairs has 2n */
    size_t capacity;     /* of the allocation behind `items` */
};

/* Makes `r` a nil without anything allocated. */
void reply_init(struct reply *r);

/* Frees what hangs off `r` and leaves a nil. Recursion is as deep as the tree, which the reader
 * bounds. */
void reply_deinit(struct reply *r);

/* Frees a reply that was allocated alone, and nulls the pointer. */
void reply_destroy(struct reply **r);

/* Whether the type has items. */
bool reply_is_aggregate(enum reply_type type);

/* Whether `r` is a status, string or verbatim string that equals `text` regardless of case. */
bool reply_text_is(const struct reply *r, const char *text);

/* The value that belongs to `key` in a map, or in an array of alternating keys and values, which
 * is what RESP2 makes of a map. NULL when there is none. The result belongs to `map`. */
const struct reply *reply_map_get(const struct reply *map, const char *key);

#endif
