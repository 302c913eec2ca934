/* Reading RDB bytes, from memory, a file, or as they come (a feed). Every length is compared with
 * the bytes that are left before it is believed; of a feed nobody knows how many really come, so
 * memory for what is read grows with what has come. The first fault is kept with its offset, and
 * every verb fails from then on. State: that of its owner. */
#ifndef PERSIST_RDB_READER_H
#define PERSIST_RDB_READER_H

#include "base/buf.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes that come one after the other: from a connection. */
struct rdb_feed {
    /* The next ones, 1 to `most`, valid until the next call; NULL then, else why there are none (a
     * text that lives forever). May wait: what is being built holds no lock. */
    const char *(*next)(void *context, uint64_t most, struct slice *bytes);
    void *context;
    uint64_t length; /* how many come, as the other side says; RDB_FEED_OPEN: it does not say */
};
/* More than there can be, and far from the end of the numbers. */
#define RDB_FEED_OPEN (UINT64_C(1) << 62)

struct rdb_reader {
    const unsigned char *at, *end; /* bytes at hand */
    const unsigned char *summed;   /* up to where crc has come */
    unsigned char *window;         /* a file's; NULL otherwise */
    const struct rdb_feed *feed;   /* NULL: none */
    uint64_t behind;               /* bytes of the file or feed behind those at hand */
    uint64_t offset;               /* of `end` in the source */
    uint64_t crc;                  /* of what was read before `summed` */
    const char *error;             /* the first fault, NULL without one */
    uint64_t error_offset;         /* where it was found */
    int fd;
    /* Called between two windows of a file, or pieces of a feed, when set: where the next one
     * starts. False ends the reading. What is being built then must not hold a lock. */
    bool (*step)(void *context, uint64_t offset);
    void *step_context;
};

/* Reads `bytes`, which outlive the reader. */
void rdb_reader_init(struct rdb_reader *r, struct slice bytes);
/* Reads an open file of `size` bytes from its current position, its start. The file stays the
 * caller's. */
void rdb_reader_init_file(struct rdb_reader *r, int fd, uint64_t size);
/* Reads a feed, which outlives the reader. */
void rdb_reader_init_feed(struct rdb_reader *r, const struct rdb_feed *feed);
void rdb_reader_deinit(struct rdb_reader *r);
/* Notes a fault (a text that lives forever), unless there is one already; false. */
bool rdb_fail(struct rdb_reader *r, const char *error);
/* Bytes left, and where the next one stands. */
uint64_t rdb_left(const struct rdb_reader *r);
uint64_t rdb_offset(const struct rdb_reader *r);
/* The CRC-64 of everything read so far. */
uint64_t rdb_checksum(struct rdb_reader *r);

/* The next `len` bytes. */
bool rdb_read(struct rdb_reader *r, void *out, size_t len) MUST_CHECK;
bool rdb_read_byte(struct rdb_reader *r, unsigned *byte) MUST_CHECK;
/* Numbers of fixed width, little-endian. */
bool rdb_read_u64(struct rdb_reader *r, uint64_t *value) MUST_CHECK;
bool rdb_read_double(struct rdb_reader *r, double *value) MUST_CHECK;
/* A number in the form of lengths. */
bool rdb_read_len(struct rdb_reader *r, uint64_t *len) MUST_CHECK;
/* The same, counting things of at least `each` bytes that follow: fails when they cannot be there.
 */
bool rdb_read_count(struct rdb_reader *r, size_t each, uint64_t *count) MUST_CHECK;
/* A string, which replaces the buffer's content. */
bool rdb_read_string(struct rdb_reader *r, struct buf *out) MUST_CHECK;
/* Reads over a string. */
bool rdb_skip_string(struct rdb_reader *r) MUST_CHECK;

#endif
