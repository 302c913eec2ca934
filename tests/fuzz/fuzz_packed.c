/* Foreign listpacks and intsets (ds/listpack.h, ds/intset.h): what validate lets through is read
 * and changed in every way; nothing outside it is touched, and a listpack stays one. The first byte
 * chooses. */
#include "base/mem.h"
#include "ds/intset.h"
#include "ds/listpack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "packed: %s\n", what);
        abort();
    }
}

static void check_intset(const uint8_t *data, size_t size)
{
    void *bytes = mem_alloc(size);
    memcpy(bytes, data, size);
    if (intset_validate(bytes, size)) {
        struct intset *s = bytes;
        bool changed;
        for (uint32_t i = 0; i < s->count; i++) {
            require(intset_contains(s, intset_at(s, i)), "every value is found");
        }
        s = intset_add(s, INT64_MAX, &changed);
        s = intset_remove(s, intset_at(s, 0), &changed);
        require(changed && intset_validate(s, intset_bytes(s)), "an intset stays one");
        bytes = s;
    }
    mem_free(bytes);
}

static uint32_t walk(const unsigned char *lp)
{
    char text[LISTPACK_TEXT_BYTES];
    uint32_t forwards = 0, backwards = 0;
    for (const unsigned char *at = listpack_first(lp); at; at = listpack_next(lp, at)) {
        require(listpack_equals(at, listpack_get(at, text)) || listpack_get(at, text).ptr != text,
                "an integer equals its text");
        forwards++;
    }
    for (const unsigned char *at = listpack_last(lp); at; at = listpack_prev(lp, at)) {
        backwards++;
    }
    require(forwards == backwards && forwards == listpack_count(lp), "both ways are as long");
    return forwards;
}

static void check_listpack(const uint8_t *data, size_t size)
{
    unsigned char *lp = mem_alloc(size);
    memcpy(lp, data, size);
    if (listpack_validate(lp, size, NULL, NULL)) {
        uint32_t count = walk(lp);
        lp = listpack_append(lp, SLICE("needle"));
        lp = listpack_prepend(lp, SLICE("-70000"));
        require(walk(lp) == count + 2, "two more");
        require(listpack_find(lp, listpack_first(lp), SLICE("needle"), 0) != NULL, "is found");
        unsigned char *at = listpack_seek(lp, count / 2);
        lp = listpack_replace(lp, &at, SLICE("something longer than it was, perhaps"));
        lp = listpack_remove(lp, &at);
        lp = listpack_remove_range(lp, -2, 2);
        walk(lp);
        require(listpack_validate(lp, listpack_bytes(lp), NULL, NULL), "a listpack stays one");
    }
    listpack_destroy(lp);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    if (data[0] & 1) {
        check_intset(data + 1, size - 1);
    } else {
        check_listpack(data + 1, size - 1);
    }
    return 0;
}
