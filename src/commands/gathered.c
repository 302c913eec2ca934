/* See gathered.h. */
#include "commands/gathered.h"

#include "base/mem.h"
#include "base/num.h"

#include <assert.h>
#include <string.h>

/* Strings are kept in blobs that double from the first to the last of these. */
#define FIRST_BLOB_BYTES ((size_t)2 * 1024)
#define LAST_BLOB_BYTES ((size_t)1024 * 1024)

/* The blob with room for `bytes` more; NULL when there is no memory. */
static struct blob *find_room(struct gathered *g, size_t bytes)
{
    size_t capacity = FIRST_BLOB_BYTES;
    if (g->blob_count > 0) {
        struct blob *last = g->blobs[g->blob_count - 1];
        if (last->capacity - last->len >= bytes) {
            return last;
        }
        capacity = last->capacity * 2 < LAST_BLOB_BYTES ? last->capacity * 2 : LAST_BLOB_BYTES;
    }
    struct blob *blob = blob_try_create(capacity > bytes ? capacity : bytes);
    if (!blob) {
        return NULL;
    }
    if (g->blob_count == g->blob_capacity) {
        g->blob_capacity = g->blob_capacity ? g->blob_capacity * 2 : 4;
        g->blobs = mem_realloc(g->blobs, g->blob_capacity * sizeof(struct blob *));
    }
    g->blobs[g->blob_count++] = blob;
    return blob;
}

bool gathered_add(struct gathered *g, struct slice text)
{
    struct blob *blob = find_room(g, text.len + NUM_I64_MAX_CHARS + 5);
    if (!blob) {
        return false;
    }
    char *at = blob->bytes + blob->len;
    *at++ = '$';
    at += num_format_u64(at, text.len);
    memcpy(at, "\r\n", 2);
    memcpy(at + 2, text.ptr, text.len);
    memcpy(at + 2 + text.len, "\r\n", 2);
    blob->len = (size_t)(at + text.len + 4 - blob->bytes);
    assert(blob->len <= blob->capacity);
    g->count++;
    return true;
}

bool gathered_add_raw(struct gathered *g, struct slice bytes)
{
    struct blob *blob = find_room(g, bytes.len);
    if (!blob) {
        return false;
    }
    memcpy(blob->bytes + blob->len, bytes.ptr, bytes.len);
    blob->len += bytes.len;
    return true;
}

void gathered_reply(struct reply *r, const struct gathered *g)
{
    for (size_t i = 0; i < g->blob_count; i++) {
        reply_raw_blob(r, g->blobs[i]);
    }
}

void gathered_deinit(struct gathered *g)
{
    for (size_t i = 0; i < g->blob_count; i++) {
        blob_release(&g->blobs[i]);
    }
    mem_free(g->blobs);
    *g = (struct gathered){0};
}
