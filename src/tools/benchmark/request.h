/*
 * Requests built once and patched in place before each send.
 *
 * A template holds the bytes of one whole pipeline: the same command `pipeline` times. Each
 * `__rand_int__` in it is a slot of 12 bytes; patching writes 12 decimal digits there, so the
 * length never changes and sending is one patch and one send.
 *
 * State: thread-owned. Each worker patches a copy of its own.
 */
#ifndef TOOLS_BENCHMARK_REQUEST_H
#define TOOLS_BENCHMARK_REQUEST_H

#include <stddef.h>
#include <stdint.h>

/* The text that users write for a random number, and its length, which the digits keep. */
#define BENCH_SLOT_TEXT "__rand_int__"
#define BENCH_SLOT_LEN 12
/* The text that users write for a payload of -d bytes. */
#define BENCH_DATA_TEXT "__data__"
/* Numbers of 12 digits: the largest key space. */
#define BENCH_KEYSPACE_MAX UINT64_C(1000000000000)

/* A tail from this length on is worth a file; shorter ones are copied as fast as handed over. */
#define BENCH_FILE_MIN (128 * 1024)

/* An empty template. */
#define BENCH_REQUEST_EMPTY ((struct bench_request){.file = -1})

/* Plain value; `bytes`, `slots` and `file` are owned by whoever holds the struct. */
struct bench_request {
    char *bytes;
    size_t len;        /* of the whole pipeline */
    size_t single_len; /* of one command */
    uint32_t pipeline; /* commands, hence replies */
    uint32_t *slots;   /* offsets of the slots, ascending */
    size_t slot_count;
    int file;         /* a descriptor that holds `bytes` too, or -1: see bench_request_build */
    size_t file_from; /* from this offset on nothing is ever patched */
};

/*
 * Builds a template of `pipeline` times the command `argv`, whose arguments may hold NUL bytes
 * (`lens`). Slots are looked for only when `patch` is not 0. Returns 0, or -1 when there is no
 * memory or the pipeline would pass 1 GiB; then *request is empty.
 *
 * Where at least BENCH_FILE_MIN bytes follow the last slot, the template also lies in a file in
 * memory, so that they can be sent with sendfile: the kernel then hands over the file's pages
 * instead of copying them, which halves what a large value costs the generator.
 */
int bench_request_build(struct bench_request *request, int argc, const char *const *argv,
                        const size_t *lens, uint32_t pipeline, int patch);

/* As bench_request_build, for a request that is sent as `text` stands (an inline command). */
int bench_request_build_raw(struct bench_request *request, const char *text, size_t len,
                            uint32_t pipeline, int patch);

/* Makes `copy` a template of its own with the same content. Returns 0, or -1 without memory. */
int bench_request_copy(struct bench_request *copy, const struct bench_request *request);

/* Frees what the template owns and empties it. An empty one may be passed. */
void bench_request_deinit(struct bench_request *request);

/* Writes `number` (below BENCH_KEYSPACE_MAX) as 12 digits with leading zeros to `at`. */
void bench_request_digits(char *at, uint64_t number);

/*
 * Replaces every `__data__` in `text` by `data_len` bytes of `data`. Returns a new string owned by
 * the caller with its length in *len, or NULL when there is no memory or it would pass 1 GiB.
 */
char *bench_request_expand(const char *text, size_t text_len, const char *data, size_t data_len,
                           size_t *len);

#endif
