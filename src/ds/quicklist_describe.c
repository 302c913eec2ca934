/* What DEBUG shows of a quicklist. */
#include "ds/quicklist_priv.h"

#include "base/mem.h"

#include <assert.h>

struct quicklist_figures quicklist_figures(const struct quicklist *q)
{
    struct quicklist_figures f = {.nodes = q->nodes, .depth = q->depth};
    for (const struct quicklist_node *n = q->head; n; n = n->next) {
        f.bytes += n->bytes;
        f.compressed_nodes += n->packed > 0;
    }
    bool by_bytes = q->limits.count == UINT32_MAX;
    f.fill = by_bytes ? -1 : (int64_t)q->limits.count;
    for (uint32_t bytes = q->limits.bytes; by_bytes && bytes > 4096; bytes /= 2) {
        f.fill--;
    }
    return f;
}

static void describe_elements(const struct quicklist_node *n, struct buf *out)
{
    if (n->plain) {
        return;
    }
    unsigned char *raw = n->packed ? quicklist_node_decompressed(n) : NULL;
    listpack_describe(raw ? raw : n->data, out);
    mem_free(raw);
}

void quicklist_describe(const struct quicklist *q, bool elements, struct buf *out)
{
    uint64_t index = 0;
    buf_printf(out, "quicklist: %llu elements, %llu nodes, %u uncompressed at each end\n",
               (unsigned long long)q->count, (unsigned long long)q->nodes, q->depth);
    for (const struct quicklist_node *n = q->head; n; n = n->next) {
        buf_printf(out, "node %llu: %s, %u elements, %zu bytes", (unsigned long long)index++,
                   n->plain ? "plain" : "packed", n->count, n->bytes);
        if (n->packed) {
            buf_printf(out, ", compressed to %u", n->packed);
        }
        buf_append_char(out, '\n');
        if (elements) {
            describe_elements(n, out);
        }
    }
}
