/* Reading a file of commands, record by record: arrays of bulk strings, and between them lines that
 * begin with # (time stamps). Nothing that the file says is believed: a length is compared with
 * what is left of the file before a byte is read for it. Used by the loader and
 * keydb-check-aof.
 * State: that of its owner. */
#ifndef PERSIST_AOF_READER_H
#define PERSIST_AOF_READER_H

#include "base/buf.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

/* Most words of a command. */
#define AOF_MAX_WORDS (1 << 27)

enum aof_record {
    AOF_COMMAND,
    AOF_NOTE,      /* a line that begins with #: argv[0] is the line without it and its end */
    AOF_END,       /* the file ends behind the last record */
    AOF_TORN,      /* it ends within a record, or in zeros from within a record on */
    AOF_DAMAGED,   /* this is no record: see error */
    AOF_UNREADABLE /* the system says so: errno */
};

struct aof_reader {
    int fd;            /* borrowed */
    uint64_t size;     /* bytes of the file */
    struct buf window; /* of the file, from `from` on */
    uint64_t from;
    uint64_t at;       /* where the next record begins */
    const char *error; /* of AOF_DAMAGED; lives forever */
    uint64_t error_at;
    int argc; /* the last record's words; valid until the next one is read */
    struct slice *argv;
    int capacity;
};

/* Reads from offset `at` on. */
void aof_reader_init(struct aof_reader *r, int fd, uint64_t size, uint64_t at);
void aof_reader_deinit(struct aof_reader *r);
/* The next record; r->at moves behind it only for AOF_COMMAND and AOF_NOTE. */
enum aof_record aof_reader_next(struct aof_reader *r) MUST_CHECK;
/* Goes on at that offset. */
void aof_reader_seek(struct aof_reader *r, uint64_t at);

#endif
