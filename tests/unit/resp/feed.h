/* A stand-in for a client's input: bytes go in, cut anywhere, and a log of requests and errors
 * comes out. It keeps to the contract of resp/parser.h as a connection does. Used by the unit tests
 * and by the fuzzer. */
#ifndef UNIT_RESP_FEED_H
#define UNIT_RESP_FEED_H

#include "base/buf.h"
#include "base/mem.h"
#include "resp/parser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct feed {
    struct parser parser;
    struct parser_limits limits;
    struct arena arena;
    struct buf data; /* from the first byte of the request being read */
    struct buf log;  /* what came out: "argc:len:bytes,len:bytes, " a request, "- " an empty one,
                        "!text " */
    uint64_t requests;
    uint64_t blob_args; /* arguments that came in blobs */
    bool failed;
    bool exact; /* hand the parser a copy of exactly the bytes there are, so that reading on is seen
                 */
};

static inline void feed_init(struct feed *f, struct parser_limits limits)
{
    *f = (struct feed){.limits = limits, .exact = true};
    parser_init(&f->parser);
    arena_init(&f->arena, 16 * 1024);
}

static inline void feed_deinit(struct feed *f)
{
    parser_deinit(&f->parser);
    arena_deinit(&f->arena);
    buf_deinit(&f->data);
    buf_deinit(&f->log);
}

static inline void feed_log_request(struct feed *f, struct request *request)
{
    f->requests++;
    buf_printf(&f->log, "%d:", request->argc);
    for (int i = 0; i < request->argc; i++) {
        f->blob_args += request->blobs && request->blobs[i];
        buf_printf(&f->log, "%zu:", request->argv[i].len);
        buf_append_slice(&f->log, request->argv[i]);
        buf_append_char(&f->log, ',');
    }
    buf_append_char(&f->log, ' ');
    parser_release(request);
}

/* One call of the parser; true when another one may find more in the bytes that are left. */
static inline bool feed_step(struct feed *f)
{
    struct slice data = buf_slice(&f->data);
    char *copy = NULL;
    if (f->exact) {
        copy = mem_alloc(data.len);
        memcpy(copy, data.ptr, data.len);
        data.ptr = copy;
    }
    struct request request = {0};
    size_t consumed = 0;
    const char *error = NULL;
    enum parser_result result =
        parser_next(&f->parser, &f->limits, data, &f->arena, &request, &consumed, &error);
    switch (result) {
    case PARSER_DONE:
        feed_log_request(f, &request);
        buf_consume(&f->data, consumed);
        break;
    case PARSER_EMPTY:
        buf_append_cstr(&f->log, "- ");
        buf_consume(&f->data, consumed);
        break;
    case PARSER_BIG:
        f->data.len = f->parser.position;
        break;
    case PARSER_ERROR:
        buf_printf(&f->log, "!%s ", error);
        f->failed = true;
        break;
    case PARSER_MORE:
        break;
    }
    mem_free(copy);
    if (result == PARSER_DONE || result == PARSER_EMPTY) {
        if (consumed == 0 || consumed > data.len) {
            abort(); /* no progress, or beyond the end */
        }
        arena_reset(&f->arena);
        return f->data.len > 0;
    }
    return false;
}

/* Gives bytes to the bulk that waits for them; returns how many it took. */
static inline size_t feed_big(struct feed *f, const char *bytes, size_t len)
{
    size_t room = 0;
    char *to = parser_big_reserve(&f->parser, &room);
    if (!to || room == 0) {
        abort();
    }
    size_t taken = room < len ? room : len;
    memcpy(to, bytes, taken);
    f->parser.big->len += taken;
    return taken;
}

/* Gives the next bytes of the stream. */
static inline void feed_bytes(struct feed *f, const char *bytes, size_t len)
{
    while (len > 0 && !f->failed) {
        size_t taken = len;
        if (parser_big_missing(&f->parser) > 0) {
            taken = feed_big(f, bytes, len);
        } else {
            buf_append(&f->data, bytes, taken);
        }
        bytes += taken;
        len -= taken;
        while (parser_big_missing(&f->parser) == 0 && feed_step(f)) {
        }
    }
}

/* The whole log of a stream given in pieces of `step` bytes, `first` bytes first. The caller frees
 * it. */
static inline struct buf feed_log_of(struct slice stream, struct parser_limits limits, size_t first,
                                     size_t step)
{
    struct feed f;
    feed_init(&f, limits);
    first = first < stream.len ? first : stream.len;
    feed_bytes(&f, stream.ptr, first);
    for (size_t at = first; at < stream.len; at += step) {
        size_t left = stream.len - at;
        feed_bytes(&f, stream.ptr + at, left < step ? left : step);
    }
    struct buf log = f.log;
    f.log = (struct buf){0};
    feed_deinit(&f);
    return log;
}

#endif
