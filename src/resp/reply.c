/* See reply.h. A run is the bytes written since the last piece was closed; it always lies in one
 * chunk. */
#include "resp/reply.h"

#include "base/mem.h"
#include "base/num.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

/* Chunks kept over a reset: a turn's usual replies. */
#define CHUNKS_KEPT 16
/* A type byte, 20 digits and CR LF, and some room. */
#define HEADER_BYTES 32
/* The hole that a deferred length is written into, at its end. */
#define HOLE_BYTES 24

struct reply_chunk {
    struct reply_chunk *next;
    size_t capacity;
    char data[];
};

/* Room of an ordinary chunk, which with its head is 64 KiB: a size that the allocator has. */
#define CHUNK_BYTES ((size_t)64 * 1024 - sizeof(struct reply_chunk))

void reply_init(struct reply *r)
{
    *r = (struct reply){.proto = 2};
}

static void free_chunks(struct reply_chunk *chunk)
{
    while (chunk) {
        struct reply_chunk *next = chunk->next;
        mem_free(chunk);
        chunk = next;
    }
}

void reply_deinit(struct reply *r)
{
    reply_reset(r);
    free_chunks(r->chunks);
    free_chunks(r->spare);
    mem_free(r->pieces);
    reply_init(r);
}

static void release_pieces(struct reply *r, uint32_t from)
{
    for (uint32_t i = from; unlikely(r->has_blobs) && i < r->piece_count; i++) {
        if (r->pieces[i].blob) {
            blob_release(&r->pieces[i].blob);
        }
    }
    r->piece_count = from;
}

static void start_chunk(struct reply *r, struct reply_chunk *chunk)
{
    r->pos = r->piece_start = chunk ? chunk->data : NULL;
    r->end = chunk ? chunk->data + chunk->capacity : NULL;
}

void reply_reset(struct reply *r)
{
    release_pieces(r, 0);
    r->has_blobs = false;
    /* The current chunk stays current; the others become spare ones, or go. */
    struct reply_chunk *rest = r->chunks ? r->chunks->next : NULL;
    int kept = 0;
    for (struct reply_chunk *c = r->spare; c; c = c->next) {
        kept++;
    }
    while (rest) {
        struct reply_chunk *next = rest->next;
        if (rest->capacity == CHUNK_BYTES && kept < CHUNKS_KEPT) {
            rest->next = r->spare;
            r->spare = rest;
            kept++;
        } else {
            mem_free(rest);
        }
        rest = next;
    }
    if (r->chunks) {
        r->chunks->next = NULL;
        if (r->chunks->capacity != CHUNK_BYTES) {
            mem_free(r->chunks);
            r->chunks = NULL;
        }
    }
    start_chunk(r, r->chunks);
    r->bytes = 0;
    r->errors = 0;
    r->last_error = slice_of(NULL, 0);
}

static __attribute__((noinline)) void grow_pieces(struct reply *r)
{
    r->piece_capacity = r->piece_capacity ? 2 * r->piece_capacity : 64;
    r->pieces = mem_realloc(r->pieces, r->piece_capacity * sizeof(*r->pieces));
}

static ALWAYS_INLINE void add_piece(struct reply *r, struct reply_piece piece)
{
    if (unlikely(r->piece_count == r->piece_capacity)) {
        grow_pieces(r);
    }
    r->has_blobs |= piece.blob != NULL;
    r->pieces[r->piece_count++] = piece;
    r->bytes += piece.len;
}

static ALWAYS_INLINE void close_run(struct reply *r)
{
    if (r->pos != r->piece_start) {
        add_piece(r, (struct reply_piece){r->piece_start, (size_t)(r->pos - r->piece_start), NULL});
        r->piece_start = r->pos;
    }
}

static void push_chunk(struct reply *r, struct reply_chunk *chunk)
{
    close_run(r);
    chunk->next = r->chunks;
    r->chunks = chunk;
    start_chunk(r, chunk);
}

static __attribute__((noinline)) void new_chunk(struct reply *r, size_t need)
{
    struct reply_chunk *chunk = r->spare;
    if (chunk && need <= chunk->capacity) {
        r->spare = chunk->next;
    } else {
        size_t capacity = need > CHUNK_BYTES ? need : CHUNK_BYTES;
        chunk = mem_alloc(sizeof(*chunk) + capacity);
        chunk->capacity = capacity;
    }
    push_chunk(r, chunk);
}

/* Bulk strings from this length on may be left out where the memory for a copy is missing. */
#define LARGE_BULK_BYTES ((size_t)1 << 20)

/* Makes room for a large bulk string, or loses the reply. */
static bool make_large_room(struct reply *r, size_t need)
{
    if (!r->may_lose || (size_t)(r->end - r->pos) >= need) {
        return true;
    }
    struct reply_chunk *chunk = mem_try_alloc(sizeof(*chunk) + need);
    if (!chunk) {
        r->lost = true;
        return false;
    }
    chunk->capacity = need;
    push_chunk(r, chunk);
    return true;
}

/* Room for `need` bytes in one run. */
static inline char *room(struct reply *r, size_t need)
{
    if (unlikely((size_t)(r->end - r->pos) < need)) {
        new_chunk(r, need);
    }
    return r->pos;
}

uint32_t reply_begin(struct reply *r, int proto)
{
    assert(r->pos == r->piece_start);
    r->proto = proto;
    r->errors = 0;
    return r->piece_count;
}

uint32_t reply_end(struct reply *r)
{
    close_run(r);
    return r->piece_count;
}

void reply_drop(struct reply *r, uint32_t mark)
{
    close_run(r);
    for (uint32_t i = mark; i < r->piece_count; i++) {
        r->bytes -= r->pieces[i].len;
    }
    release_pieces(r, mark);
}

void reply_rewind(struct reply *r, struct reply_mark mark)
{
    r->errors = mark.errors;
    if (likely(r->piece_count == mark.piece_count)) {
        r->pos = mark.run_bytes ? r->piece_start + mark.run_bytes : r->piece_start;
        return;
    }
    /* The run that was open at the mark is the first piece after it now. */
    struct reply_piece run = r->pieces[mark.piece_count];
    assert(mark.run_bytes == 0 || (!run.blob && run.len >= mark.run_bytes));
    reply_drop(r, mark.piece_count);
    if (mark.run_bytes > 0) {
        add_piece(r, (struct reply_piece){run.ptr, mark.run_bytes, NULL});
    }
}

/* Bytes of pieces that are not in blobs. */
static size_t plain_bytes(const struct reply *r)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < r->piece_count; i++) {
        bytes += r->pieces[i].blob ? 0 : r->pieces[i].len;
    }
    return bytes;
}

void reply_copy(struct reply *to, const struct reply *from)
{
    assert(from->pos == from->piece_start && !to->chunks && !to->pieces);
    size_t capacity = plain_bytes(from);
    struct reply_chunk *chunk = mem_alloc(sizeof(*chunk) + capacity);
    *chunk = (struct reply_chunk){.capacity = capacity};
    char *at = chunk->data;
    to->chunks = chunk;
    to->proto = from->proto;
    to->piece_capacity = from->piece_count;
    to->pieces = mem_alloc(from->piece_count * sizeof(*to->pieces));
    for (uint32_t i = 0; i < from->piece_count; i++) {
        struct reply_piece piece = from->pieces[i];
        if (piece.blob) {
            blob_acquire(piece.blob);
        } else {
            memcpy(at, piece.ptr, piece.len);
            piece.ptr = at;
            at += piece.len;
        }
        add_piece(to, piece);
    }
    to->pos = to->piece_start = to->end = at;
}

size_t reply_bytes(const struct reply *r)
{
    return r->bytes + (size_t)(r->pos - r->piece_start);
}

void reply_set_proto(struct reply *r, int proto)
{
    r->proto = proto;
}

/* ---- the wire ---- */

/* Nothing may have no address, which memcpy does not take. */
static inline char *put_bytes(char *p, struct slice bytes)
{
    if (likely(bytes.len > 0)) {
        memcpy(p, bytes.ptr, bytes.len);
    }
    return p + bytes.len;
}

static inline char *put_crlf(char *p)
{
    p[0] = '\r';
    p[1] = '\n';
    return p + 2;
}

/* Type byte, number, CR LF. */
static inline char *put_header(char *p, char type, uint64_t n)
{
    *p++ = type;
    if (likely(n < 10)) {
        *p++ = (char)('0' + n);
    } else if (likely(n < 100)) {
        *p++ = (char)('0' + n / 10);
        *p++ = (char)('0' + n % 10);
    } else {
        p += num_format_u64(p, n);
    }
    return put_crlf(p);
}

static inline void header(struct reply *r, char type, uint64_t n)
{
    r->pos = put_header(room(r, HEADER_BYTES), type, n);
}

void reply_raw(struct reply *r, struct slice bytes)
{
    if (bytes.len > 0) {
        r->pos = put_bytes(room(r, bytes.len), bytes);
    }
}

void reply_ok(struct reply *r)
{
    char *p = room(r, 5);
    memcpy(p, "+OK\r\n", 5);
    r->pos = p + 5;
}

/* One line of text: CR and LF inside become blanks. */
static void line(struct reply *r, char type, struct slice text)
{
    char *p = room(r, text.len + 3);
    *p++ = type;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        *p++ = c == '\r' || c == '\n' ? ' ' : c;
    }
    r->pos = put_crlf(p);
}

void reply_status(struct reply *r, const char *text)
{
    line(r, '+', slice_cstr(text));
}

void reply_status_slice(struct reply *r, struct slice text)
{
    line(r, '+', text);
}

void reply_error_slice(struct reply *r, struct slice text)
{
    line(r, '-', text);
    r->errors++;
    r->last_error = slice_of(r->pos - 2 - text.len, text.len);
}

void reply_error(struct reply *r, const char *text)
{
    reply_error_slice(r, slice_cstr(text));
}

void reply_errorf(struct reply *r, const char *format, ...)
{
    struct buf text = {0};
    char fixed[512];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(fixed, sizeof(fixed), format, args);
    va_end(args);
    assert(len >= 0);
    if ((size_t)len < sizeof(fixed)) {
        reply_error_slice(r, slice_of(fixed, (size_t)len));
        return;
    }
    va_start(args, format);
    vsnprintf(buf_reserve(&text, (size_t)len + 1), (size_t)len + 1, format, args);
    va_end(args);
    reply_error_slice(r, slice_of(text.data, (size_t)len));
    buf_deinit(&text);
}

void reply_i64(struct reply *r, int64_t value)
{
    char *p = room(r, HEADER_BYTES);
    if (likely((uint64_t)value < 10)) {
        r->pos = put_header(p, ':', (uint64_t)value);
        return;
    }
    *p++ = ':';
    p += num_format_i64(p, value);
    r->pos = put_crlf(p);
}

void reply_bulk(struct reply *r, struct slice bytes)
{
    if (unlikely(bytes.len >= LARGE_BULK_BYTES) && !make_large_room(r, bytes.len + HEADER_BYTES)) {
        return;
    }
    char *p = put_header(room(r, bytes.len + HEADER_BYTES), '$', bytes.len);
    r->pos = put_crlf(put_bytes(p, bytes));
}

void reply_bulk_cstr(struct reply *r, const char *text)
{
    reply_bulk(r, slice_cstr(text));
}

void reply_bulkf(struct reply *r, const char *format, ...)
{
    struct buf text = {0};
    va_list args;
    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(len >= 0);
    va_start(args, format);
    vsnprintf(buf_reserve(&text, (size_t)len + 1), (size_t)len + 1, format, args);
    va_end(args);
    reply_bulk(r, slice_of(text.data, (size_t)len));
    buf_deinit(&text);
}

void reply_bulk_i64(struct reply *r, int64_t value)
{
    char digits[NUM_I64_MAX_CHARS];
    reply_bulk(r, slice_of(digits, num_format_i64(digits, value)));
}

void reply_blob_part(struct reply *r, struct blob *blob, size_t offset, size_t len)
{
    assert(offset <= blob->len && len <= blob->len - offset);
    if (len < REPLY_REFERENCE_BYTES) {
        reply_bulk(r, slice_of(blob->bytes + offset, len));
        return;
    }
    header(r, '$', len);
    close_run(r);
    add_piece(r, (struct reply_piece){blob->bytes + offset, len, blob_acquire(blob)});
    r->pos = put_crlf(room(r, 2));
}

void reply_blob(struct reply *r, struct blob *blob)
{
    reply_blob_part(r, blob, 0, blob->len);
}

void reply_raw_blob(struct reply *r, struct blob *blob)
{
    if (blob->len < REPLY_REFERENCE_BYTES) {
        reply_raw(r, blob_slice(blob));
        return;
    }
    close_run(r);
    add_piece(r, (struct reply_piece){blob->bytes, blob->len, blob_acquire(blob)});
}

void reply_null(struct reply *r)
{
    if (r->proto >= 3) {
        reply_raw(r, SLICE("_\r\n"));
    } else {
        reply_raw(r, SLICE("$-1\r\n"));
    }
}

void reply_null_array(struct reply *r)
{
    if (r->proto >= 3) {
        reply_raw(r, SLICE("_\r\n"));
    } else {
        reply_raw(r, SLICE("*-1\r\n"));
    }
}

void reply_array(struct reply *r, uint64_t count)
{
    header(r, '*', count);
}

void reply_map(struct reply *r, uint64_t pairs)
{
    header(r, r->proto >= 3 ? '%' : '*', r->proto >= 3 ? pairs : 2 * pairs);
}

void reply_set(struct reply *r, uint64_t count)
{
    header(r, r->proto >= 3 ? '~' : '*', count);
}

void reply_push(struct reply *r, uint64_t count)
{
    header(r, r->proto >= 3 ? '>' : '*', count);
}

void reply_attribute(struct reply *r, uint64_t pairs)
{
    assert(r->proto >= 3);
    header(r, '|', pairs);
}

void reply_double(struct reply *r, double value)
{
    char text[40];
    size_t len = num_format_double(text, value);
    if (r->proto >= 3) {
        line(r, ',', slice_of(text, len));
    } else {
        reply_bulk(r, slice_of(text, len));
    }
}

void reply_bool(struct reply *r, bool value)
{
    if (r->proto >= 3) {
        reply_raw(r, value ? SLICE("#t\r\n") : SLICE("#f\r\n"));
    } else {
        reply_i64(r, value);
    }
}

void reply_big_number(struct reply *r, struct slice digits)
{
    if (r->proto >= 3) {
        line(r, '(', digits);
    } else {
        reply_bulk(r, digits);
    }
}

void reply_verbatim(struct reply *r, const char *format3, struct slice text)
{
    assert(strlen(format3) == 3);
    if (r->proto < 3) {
        reply_bulk(r, text);
        return;
    }
    char *p = put_header(room(r, text.len + HEADER_BYTES), '=', text.len + 4);
    memcpy(p, format3, 3);
    p[3] = ':';
    r->pos = put_crlf(put_bytes(p + 4, text));
}

/* ---- deferred lengths ---- */

uint32_t reply_deferred(struct reply *r)
{
    char *hole = room(r, HOLE_BYTES);
    close_run(r);
    add_piece(r, (struct reply_piece){hole, 0, NULL});
    r->pos = r->piece_start = hole + HOLE_BYTES;
    return r->piece_count - 1;
}

static void fill_hole(struct reply *r, uint32_t handle, char type, uint64_t n)
{
    char text[HEADER_BYTES];
    size_t len = (size_t)(put_header(text, type, n) - text);
    struct reply_piece *piece = &r->pieces[handle];
    assert(handle < r->piece_count && piece->len == 0 && len <= HOLE_BYTES);
    char *at = (char *)piece->ptr + HOLE_BYTES - len;
    memcpy(at, text, len);
    *piece = (struct reply_piece){at, len, NULL};
    r->bytes += len;
}

void reply_set_deferred_array(struct reply *r, uint32_t handle, uint64_t count)
{
    fill_hole(r, handle, '*', count);
}

void reply_set_deferred_map(struct reply *r, uint32_t handle, uint64_t pairs)
{
    fill_hole(r, handle, r->proto >= 3 ? '%' : '*', r->proto >= 3 ? pairs : 2 * pairs);
}

void reply_set_deferred_set(struct reply *r, uint32_t handle, uint64_t count)
{
    fill_hole(r, handle, r->proto >= 3 ? '~' : '*', count);
}

void reply_set_deferred_push(struct reply *r, uint32_t handle, uint64_t count)
{
    fill_hole(r, handle, r->proto >= 3 ? '>' : '*', count);
}

void reply_set_deferred_attribute(struct reply *r, uint32_t handle, uint64_t pairs)
{
    assert(r->proto >= 3);
    fill_hole(r, handle, '|', pairs);
}

/* ---- the usual errors ---- */

void reply_wrong_type(struct reply *r)
{
    reply_error(r, "WRONGTYPE Operation against a key holding the wrong kind of value");
}

void reply_syntax_error(struct reply *r)
{
    reply_error(r, "ERR syntax error");
}

void reply_not_integer(struct reply *r)
{
    reply_error(r, "ERR value is not an integer or out of range");
}

void reply_out_of_range(struct reply *r)
{
    reply_error(r, "ERR index out of range");
}

void reply_no_such_key(struct reply *r)
{
    reply_error(r, "ERR no such key");
}
