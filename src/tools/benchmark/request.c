/* The request templates of request.h. */
#include "tools/benchmark/request.h"

#include <assert.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PIPELINE_BYTES_MAX (UINT64_C(1) << 30)

static_assert(sizeof(BENCH_SLOT_TEXT) - 1 == BENCH_SLOT_LEN, "digits fit the slot's text");

static size_t slots_find(const struct bench_request *request, uint32_t *slots)
{
    size_t count = 0;
    const char *at = request->bytes;
    const char *end = request->bytes + request->len;
    while ((at = memmem(at, (size_t)(end - at), BENCH_SLOT_TEXT, BENCH_SLOT_LEN)) != NULL) {
        if (slots != NULL) {
            slots[count] = (uint32_t)(at - request->bytes);
        }
        count++;
        at += BENCH_SLOT_LEN;
    }
    return count;
}

/* Puts the bytes in a file as well where that pays. Without one everything is sent from memory. */
static void file_create(struct bench_request *request)
{
    size_t slots = request->slot_count;
    request->file_from = slots == 0 ? 0 : request->slots[slots - 1] + BENCH_SLOT_LEN;
    if (request->len - request->file_from < BENCH_FILE_MIN) {
        return;
    }
    int file = memfd_create("keydb-benchmark", MFD_CLOEXEC);
    size_t written = 0;
    while (file >= 0 && written < request->len) {
        ssize_t wrote = write(file, request->bytes + written, request->len - written);
        if (wrote <= 0) {
            close(file);
            return;
        }
        written += (size_t)wrote;
    }
    request->file = file;
}

int bench_request_build_raw(struct bench_request *request, const char *text, size_t len,
                            uint32_t pipeline, int patch)
{
    assert(request != NULL && text != NULL && len > 0 && pipeline > 0);
    *request = BENCH_REQUEST_EMPTY;
    request->single_len = len;
    request->pipeline = pipeline;
    if (len > PIPELINE_BYTES_MAX / pipeline) {
        return -1;
    }
    request->len = len * pipeline;
    request->bytes = malloc(request->len);
    if (request->bytes == NULL) {
        goto no_memory;
    }
    for (uint32_t i = 0; i < pipeline; i++) {
        memcpy(request->bytes + (size_t)i * len, text, len);
    }
    if (patch) {
        request->slot_count = slots_find(request, NULL);
    }
    if (request->slot_count > 0) {
        request->slots = malloc(request->slot_count * sizeof(request->slots[0]));
        if (request->slots == NULL) {
            goto no_memory;
        }
        slots_find(request, request->slots);
    }
    file_create(request);
    return 0;

no_memory:
    bench_request_deinit(request);
    return -1;
}

int bench_request_build(struct bench_request *request, int argc, const char *const *argv,
                        const size_t *lens, uint32_t pipeline, int patch)
{
    assert(argc > 0 && argv != NULL && lens != NULL);
    *request = BENCH_REQUEST_EMPTY;
    char *command = NULL;
    /* hiredis 0.14 declares argv without the const that it keeps. */
    int len = (int)redisFormatCommandArgv(&command, argc, (const char **)(uintptr_t)argv, lens);
    if (len <= 0) {
        return -1;
    }
    int rc = bench_request_build_raw(request, command, (size_t)len, pipeline, patch);
    redisFreeCommand(command);
    return rc;
}

int bench_request_copy(struct bench_request *copy, const struct bench_request *request)
{
    assert(copy != NULL && request != NULL && request->bytes != NULL);
    *copy = *request;
    copy->slots = NULL;
    copy->file = request->file < 0 ? -1 : dup(request->file);
    copy->bytes = malloc(request->len);
    if (request->slot_count > 0) {
        copy->slots = malloc(request->slot_count * sizeof(copy->slots[0]));
    }
    if (copy->bytes == NULL || (request->slot_count > 0 && copy->slots == NULL)) {
        bench_request_deinit(copy);
        return -1;
    }
    memcpy(copy->bytes, request->bytes, request->len);
    if (request->slot_count > 0) {
        memcpy(copy->slots, request->slots, request->slot_count * sizeof(copy->slots[0]));
    }
    return 0;
}

void bench_request_deinit(struct bench_request *request)
{
    assert(request != NULL);
    free(request->bytes);
    free(request->slots);
    if (request->file >= 0) {
        close(request->file);
    }
    *request = BENCH_REQUEST_EMPTY;
}

void bench_request_digits(char *at, uint64_t number)
{
    assert(number < BENCH_KEYSPACE_MAX);
    /* Two halves of six digits: 32-bit divisions by constants are multiplications. */
    uint32_t high = (uint32_t)(number / 1000000);
    uint32_t low = (uint32_t)(number % 1000000);
    for (int i = 5; i >= 0; i--) {
        at[i] = (char)('0' + high % 10);
        at[i + 6] = (char)('0' + low % 10);
        high /= 10;
        low /= 10;
    }
}

char *bench_request_expand(const char *text, size_t text_len, const char *data, size_t data_len,
                           size_t *len)
{
    assert(text != NULL && len != NULL && (data != NULL || data_len == 0));
    const size_t mark_len = sizeof(BENCH_DATA_TEXT) - 1;
    const char *end = text + text_len;
    size_t marks = 0;
    for (const char *at = text; (at = memmem(at, (size_t)(end - at), BENCH_DATA_TEXT, mark_len));) {
        marks++;
        at += mark_len;
    }
    if (marks > 0 && data_len > PIPELINE_BYTES_MAX / marks) {
        return NULL;
    }
    *len = text_len - marks * mark_len + marks * data_len;
    char *expanded = malloc(*len + 1);
    if (expanded == NULL) {
        return NULL;
    }
    char *out = expanded;
    const char *at = text;
    for (size_t i = 0; i < marks; i++) {
        const char *mark = memmem(at, (size_t)(end - at), BENCH_DATA_TEXT, mark_len);
        memcpy(out, at, (size_t)(mark - at));
        out += mark - at;
        if (data_len > 0) {
            memcpy(out, data, data_len);
        }
        out += data_len;
        at = mark + mark_len;
    }
    memcpy(out, at, (size_t)(end - at));
    out[end - at] = '\0';
    return expanded;
}
