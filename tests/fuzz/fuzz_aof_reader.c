/* The records of an AOF (persist/aof_reader.h) in an arbitrary file. Oracles: records follow one
 * another without a gap; words are what stands in the file; a cut makes the last record torn and
 * changes none before it; what is read after going back is the same. */
#include "persist/aof_reader.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void require(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "aof reader: %s\n", what);
        abort();
    }
}

/* Reads all records; the end of the last whole one, and how it ended in *result. */
static uint64_t read_all(int fd, const uint8_t *bytes, uint64_t size, enum aof_record *result)
{
    struct aof_reader r;
    uint64_t whole = 0;
    aof_reader_init(&r, fd, size, 0);
    for (;;) {
        uint64_t before = r.at;
        *result = aof_reader_next(&r);
        if (*result != AOF_COMMAND && *result != AOF_NOTE) {
            require(r.at == before, "only whole records are passed");
            break;
        }
        require(r.at > before && r.at <= size && r.argc >= 1, "a record has bytes and words");
        uint64_t at = before;
        for (int i = 0; i < r.argc; i++) {
            const uint8_t *found = r.argv[i].len
                                       ? memmem(bytes + at, size - at, r.argv[i].ptr, r.argv[i].len)
                                       : bytes + at;
            require(found != NULL, "words stand in the file, in order");
            at = (uint64_t)(found - bytes) + r.argv[i].len;
        }
        if (before % 7 == 0) {
            uint64_t end = r.at;
            aof_reader_seek(&r, before);
            require(aof_reader_next(&r) == *result && r.at == end, "the same once more");
        }
        whole = r.at;
    }
    aof_reader_deinit(&r);
    return whole;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    enum aof_record result, cut_result;
    int fd = memfd_create("aof", 0);
    require(fd >= 0 && write(fd, bytes, len) == (ssize_t)len, "a file to read");
    uint64_t whole = read_all(fd, bytes, len, &result);
    require(result != AOF_UNREADABLE, "the file can be read");
    if (len > 0) {
        uint64_t cut = len - 1;
        uint64_t left = read_all(fd, bytes, cut, &cut_result);
        require(left <= whole && (left == whole || whole == len), "a cut takes the last one only");
    }
    close(fd);
    return 0;
}
