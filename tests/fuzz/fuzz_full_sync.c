/* A whole data set as a peer may send it (active/full_sync_record.h, full_sync_receive.h): what is
 * accepted is the same however it is cut, keeps its order, and nothing of it is believed before it
 * is checked. */
#include "active/full_sync_receive.h"
#include "base/buf.h"
#include "persist/payload.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void require(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "full sync: %s\n", what);
        abort();
    }
}

struct outcome {
    enum full_sync_phase phase;
    uint64_t keys;
    size_t used;
};

/* Fed in pieces of so many bytes. */
static struct outcome feed(struct slice data, size_t piece)
{
    struct full_sync *c = full_sync_create(memfd_create("full-sync", MFD_CLOEXEC));
    struct outcome o = {.phase = FULL_SYNC_COMING};
    while (o.phase == FULL_SYNC_COMING && o.used < data.len) {
        const char *error = NULL;
        size_t used, left = data.len - o.used, len = piece < left ? piece : left;
        o.phase = full_sync_feed(c, slice_of(data.ptr + o.used, len), &used, &error);
        require(used <= len, "no more is used than there is");
        require((o.phase == FULL_SYNC_BROKEN) == (error != NULL), "who breaks says why");
        o.used += used;
    }
    o.keys = full_sync_keys(c);
    full_sync_destroy(&c);
    return o;
}

/* What records the bytes begin with give the same bytes again. */
static void look_at_records(struct slice data)
{
    struct full_sync_record r;
    struct buf again = {0};
    const char *error;
    size_t consumed;
    while (full_sync_record_next(data, &r, &consumed, &error) == FRAME_WHOLE) {
        buf_clear(&again);
        full_sync_record_put(&again, &r);
        require(slice_equal(buf_slice(&again), slice_of(data.ptr, consumed)), "the same bytes");
        data = slice_of(data.ptr + consumed, data.len - consumed);
    }
    buf_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct slice data = slice_of((const char *)bytes, len);
    payload_trusts_checksums = true;
    look_at_records(data);
    struct outcome whole = feed(data, len + 1), cut = feed(data, 7);
    require(whole.phase == cut.phase && whole.keys == cut.keys, "cuts change nothing");
    require(whole.phase != FULL_SYNC_WHOLE || whole.used == cut.used, "it ends where it ends");
    require(whole.keys <= len / FULL_SYNC_KEY_HEAD_BYTES, "keys have bytes");
    return 0;
}
