/* See active_known.h. Open addressing, at most half full. */
#include "repl/active_known.h"

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"

#include <assert.h>

#define LEAST_CAPACITY 64
/* A name that is no longer is hashed on the stack. */
#define SHORT_BYTES 256

void active_known_init(struct active_known *k, uint64_t names)
{
    *k = (struct active_known){.capacity = LEAST_CAPACITY};
    while (k->capacity < 2 * names) {
        k->capacity *= 2;
    }
    k->slots = mem_calloc(k->capacity, sizeof(*k->slots));
}

void active_known_deinit(struct active_known *k)
{
    mem_free(k->slots);
    *k = (struct active_known){0};
}

/* Two hashes, of two texts: the name, and the name behind its database. */
static struct active_known_print print_of(int db, struct slice name)
{
    char text[sizeof(uint32_t) + SHORT_BYTES];
    uint32_t number = (uint32_t)db;
    struct active_known_print p = {.a = hash_slice(name) ^
                                        (number + 1) * UINT64_C(0x9e3779b97f4a7c15)};
    if (name.len <= SHORT_BYTES) {
        memcpy(text, &number, sizeof(number));
        memcpy(text + sizeof(number), name.len ? name.ptr : "", name.len);
        p.b = hash_bytes(text, sizeof(number) + name.len);
    } else {
        struct buf all = {0};
        buf_append(&all, (const char *)&number, sizeof(number));
        buf_append_slice(&all, name);
        p.b = hash_slice(buf_slice(&all));
        buf_deinit(&all);
    }
    p.b |= 1;
    return p;
}

static struct active_known_print *slot_of(const struct active_known *k, struct active_known_print p)
{
    for (uint64_t at = p.a;; at++) {
        struct active_known_print *slot = &k->slots[at & (k->capacity - 1)];
        if (slot->b == 0 || (slot->a == p.a && slot->b == p.b)) {
            return slot;
        }
    }
}

bool active_known_add(struct active_known *k, int db, struct slice name)
{
    struct active_known_print p = print_of(db, name);
    struct active_known_print *slot = slot_of(k, p);
    if (slot->b != 0) {
        return false;
    }
    *slot = p;
    k->count++;
    assert(k->count < k->capacity);
    return true;
}

bool active_known_has(const struct active_known *k, int db, struct slice name)
{
    return slot_of(k, print_of(db, name))->b != 0;
}
