/* See rdb_writer.h. */
#include "persist/rdb_writer.h"

#include "base/crc.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"
#include "persist/rdb_format.h"

#include <errno.h>
#include <lzf.h>
#include <unistd.h>

/* A piece of a file that is synced often (Redis's size). */
#define SYNC_BYTES ((uint64_t)4 * 1024 * 1024)
#define FLUSH_BYTES ((size_t)256 * 1024)
/* Shorter strings are not worth the attempt. */
#define COMPRESS_MIN_BYTES 21

void rdb_writer_init(struct rdb_writer *w, int fd, bool compress, bool checksum)
{
    *w = (struct rdb_writer){.fd = fd, .compress = compress, .checksum = checksum};
}

void rdb_writer_deinit(struct rdb_writer *w)
{
    buf_deinit(&w->out);
}

/* Hands bytes to the file. */
static void put(struct rdb_writer *w, const char *bytes, size_t len)
{
    if (w->checksum) {
        w->crc = crc64(w->crc, bytes, len);
    }
    if (!w->error) {
        w->error = file_write_all(w->fd, slice_of(bytes, len));
    }
    if (w->error) {
        return;
    }
    w->written += len;
    if (w->sync_often && w->written - w->synced >= SYNC_BYTES) {
        w->synced = w->written;
        w->error = fdatasync(w->fd) < 0 ? errno : 0;
    }
}

bool rdb_writer_flush(struct rdb_writer *w)
{
    if (w->fd >= 0) {
        put(w, w->out.data, w->out.len);
        buf_clear(&w->out);
    }
    return w->error == 0;
}

void rdb_write(struct rdb_writer *w, const void *bytes, size_t len)
{
    if (w->fd >= 0 && w->out.len + len > FLUSH_BYTES) {
        put(w, w->out.data, w->out.len);
        buf_clear(&w->out);
        if (len > FLUSH_BYTES) {
            put(w, bytes, len);
            return;
        }
    }
    buf_append(&w->out, bytes, len);
}

void rdb_write_byte(struct rdb_writer *w, unsigned byte)
{
    unsigned char b = (unsigned char)byte;
    rdb_write(w, &b, 1);
}

void rdb_write_len(struct rdb_writer *w, uint64_t len)
{
    unsigned char b[9];
    if (len < 1 << 6) {
        b[0] = (unsigned char)len;
        rdb_write(w, b, 1);
    } else if (len < 1 << 14) {
        b[0] = (unsigned char)(RDB_LEN_14 << 6 | len >> 8);
        b[1] = (unsigned char)len;
        rdb_write(w, b, 2);
    } else {
        size_t bytes = len <= UINT32_MAX ? 4 : 8;
        b[0] = len <= UINT32_MAX ? RDB_LEN_32 : RDB_LEN_64;
        for (size_t i = 0; i < bytes; i++) {
            b[1 + i] = (unsigned char)(len >> 8 * (bytes - 1 - i));
        }
        rdb_write(w, b, 1 + bytes);
    }
}

void rdb_write_u64(struct rdb_writer *w, uint64_t value)
{
    unsigned char b[8];
    for (int i = 0; i < 8; i++) {
        b[i] = (unsigned char)(value >> 8 * i);
    }
    rdb_write(w, b, sizeof(b));
}

void rdb_write_double(struct rdb_writer *w, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    rdb_write_u64(w, bits);
}

/* Writes the string as a number, where it is the text of a 32-bit one. */
static bool write_integer(struct rdb_writer *w, struct slice s)
{
    int64_t value;
    if (s.len > 11 || s.len == 0 || (unsigned char)s.ptr[0] > '9' || !num_parse_i64(s, &value) ||
        value < INT32_MIN || value > INT32_MAX) {
        return false;
    }
    unsigned encoding = value >= INT8_MIN && value <= INT8_MAX     ? RDB_INT8
                        : value >= INT16_MIN && value <= INT16_MAX ? RDB_INT16
                                                                   : RDB_INT32;
    unsigned char b[5] = {(unsigned char)(RDB_LEN_ENCODED << 6 | encoding)};
    size_t bytes = (size_t)1 << encoding;
    for (size_t i = 0; i < bytes; i++) {
        b[1 + i] = (unsigned char)((uint64_t)value >> 8 * i);
    }
    rdb_write(w, b, 1 + bytes);
    return true;
}

/* Writes the string compressed, where that makes it shorter. */
static bool write_compressed(struct rdb_writer *w, struct slice s)
{
    if (s.len > UINT32_MAX) {
        return false;
    }
    char *packed = mem_try_alloc(s.len);
    unsigned len = 0;
    if (packed) {
        /* Four bytes less at least, as the two lengths cost something. */
        len = lzf_compress(s.ptr, (unsigned)s.len, packed, (unsigned)s.len - 4);
    }
    if (len > 0) {
        rdb_write_byte(w, RDB_LEN_ENCODED << 6 | RDB_LZF);
        rdb_write_len(w, len);
        rdb_write_len(w, s.len);
        rdb_write(w, packed, len);
    }
    mem_free(packed);
    return len > 0;
}

void rdb_write_string(struct rdb_writer *w, struct slice s)
{
    if (write_integer(w, s)) {
        return;
    }
    if (w->compress && s.len >= COMPRESS_MIN_BYTES && write_compressed(w, s)) {
        return;
    }
    if (s.len < 1 << 6 && w->out.capacity - w->out.len > s.len &&
        (w->fd < 0 || w->out.len + s.len < FLUSH_BYTES)) {
        /* Most strings: put where they belong. */
        char *p = w->out.data + w->out.len;
        *p = (char)s.len;
        memcpy(p + 1, s.ptr, s.len);
        w->out.len += 1 + s.len;
        return;
    }
    rdb_write_len(w, s.len);
    rdb_write(w, s.ptr, s.len);
}
