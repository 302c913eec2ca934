/* See quicklist_priv.h: the nodes of a quicklist and their compression. */
#include "ds/quicklist_priv.h"

#include "base/mem.h"

#include <assert.h>
#include <lzf.h>
#include <string.h>

/* Smaller nodes are not worth a block of their own size class, nor is saving fewer bytes. */
#define COMPRESS_MIN_BYTES 48
#define COMPRESS_MIN_SAVED 8
/* Four of the largest nodes that the limits allow: a larger element stays as it is, since whoever
 * opens it would need its bytes again and, under the lock, milliseconds (some 300 MB/s). */
#define COMPRESS_MAX_BYTES ((size_t)256 << 10)

struct quicklist_node *quicklist_node_of_listpack(unsigned char *lp_take)
{
    struct quicklist_node *n = mem_calloc(1, sizeof(*n));
    quicklist_node_set(n, lp_take);
    return n;
}

struct quicklist_node *quicklist_node_of_element(struct slice element, bool plain)
{
    if (!plain) {
        return quicklist_node_of_listpack(listpack_append(listpack_create(0), element));
    }
    struct quicklist_node *n = mem_calloc(1, sizeof(*n));
    n->plain = true;
    n->count = 1;
    n->bytes = element.len;
    n->data = mem_alloc(element.len);
    if (element.len > 0) {
        memcpy(n->data, element.ptr, element.len);
    }
    return n;
}

void quicklist_node_destroy(struct quicklist_node *n)
{
    if (n->plain || n->packed) {
        mem_free(n->data);
    } else {
        listpack_destroy(n->data);
    }
    mem_free_sized(n, sizeof(*n));
}

struct quicklist_node *quicklist_node_copy(const struct quicklist_node *n)
{
    struct quicklist_node *copy = mem_alloc(sizeof(*copy));
    *copy = *n;
    copy->prev = copy->next = NULL;
    if (n->plain || n->packed) {
        size_t bytes = n->packed ? n->packed : n->bytes;
        copy->data = mem_alloc(bytes);
        memcpy(copy->data, n->data, bytes);
    } else {
        copy->data = listpack_copy(n->data);
    }
    return copy;
}

unsigned char *quicklist_node_decompressed(const struct quicklist_node *n)
{
    assert(n->packed > 0);
    unsigned char *raw = mem_alloc(n->bytes);
    unsigned got = lzf_decompress(n->data, n->packed, raw, (unsigned)n->bytes);
    assert(got == n->bytes);
    (void)got;
    return raw;
}

bool quicklist_node_open(struct quicklist_node *n)
{
    if (likely(!n->packed)) {
        return false;
    }
    unsigned char *raw = quicklist_node_decompressed(n);
    mem_free(n->data);
    n->data = raw;
    n->packed = 0;
    return true;
}

void quicklist_node_compress(struct quicklist_node *n)
{
    if (n->packed || n->bytes < COMPRESS_MIN_BYTES || n->bytes > COMPRESS_MAX_BYTES) {
        return;
    }
    size_t room = n->bytes - COMPRESS_MIN_SAVED;
    /* As long as an element that a client sent; without memory for it the node stays as it is. */
    unsigned char *packed = mem_try_alloc(room);
    unsigned bytes = packed ? lzf_compress(n->data, (unsigned)n->bytes, packed, (unsigned)room) : 0;
    if (bytes == 0) {
        mem_free(packed);
        return;
    }
    if (n->plain) {
        mem_free(n->data);
    } else {
        listpack_destroy(n->data);
    }
    n->data = mem_realloc(packed, bytes);
    n->packed = bytes;
}

void quicklist_node_set(struct quicklist_node *n, unsigned char *lp)
{
    assert(!n->plain && !n->packed);
    n->data = lp;
    n->bytes = listpack_bytes(lp);
    n->count = listpack_count(lp);
}
