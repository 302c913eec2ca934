/* The AOF's manifest (persist/aof_manifest.h) under arbitrary bytes. Oracles: what is taken has at
 * most one base, increments in order, plain names; written and read again it is the same; what is
 * refused leaves nothing behind. */
#include "persist/aof_manifest.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "manifest: %s\n", what);
        abort();
    }
}

static void check(const struct aof_manifest *m)
{
    int64_t seq = 0;
    for (int i = 0; i < m->count; i++) {
        const struct aof_file *f = &m->files[i];
        require(*f->name && !strchr(f->name, '/') && f->seq > 0, "a plain name and a number");
        require(f->kind != AOF_BASE || i == 0, "one base, first");
        if (f->kind == AOF_INCREMENT) {
            require(f->seq > seq, "increments are in order");
            seq = f->seq;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct aof_manifest m = {0}, again = {0};
    struct buf text = {0}, more = {0};
    const char *error = NULL;
    int line;
    if (!aof_manifest_parse(&m, slice_of((const char *)bytes, len), &error, &line)) {
        require(error && m.count == 0 && !m.files, "refused and empty");
        return 0;
    }
    check(&m);
    aof_manifest_format(&m, &text);
    if (m.count > 0 && aof_manifest_parse(&again, buf_slice(&text), &error, &line)) {
        aof_manifest_format(&again, &more);
        require(slice_equal(buf_slice(&text), buf_slice(&more)), "the same when written again");
    } else {
        /* Comments alone, or names that become too long a line when quoted. */
        require(m.count == 0 || strstr(error, "too long"), "what is written can be read");
    }
    aof_manifest_retire(&m, 1);
    check(&m);
    aof_manifest_forget_history(&m);
    check(&m);
    aof_manifest_deinit(&m);
    aof_manifest_deinit(&again);
    buf_deinit(&text);
    buf_deinit(&more);
    return 0;
}
