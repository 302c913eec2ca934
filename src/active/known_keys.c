/* See known_keys.h. Open addressing, at most half full. */
#include "active/known_keys.h"

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"

#include <assert.h>

#define LEAST_CAPACITY 64
/* A name that is no longer is hashed on the stack. */
#define SHORT_BYTES 256

void known_keys_init(struct known_keys *k, uint64_t names)
{
    *k = (struct known_keys){.capacity = LEAST_CAPACITY};
    while (k->capacity < 2 * names) {
        k->capacity *= 2;
    }
    k->slots = mem_calloc(k->capacity, sizeof(*k->slots));
}

void known_keys_deinit(struct known_keys *k)
{
    mem_free(k->slots);
    *k = (struct known_keys){0};
}

/* Two hashes, of two texts: the name, and the name behind its database. */
static struct known_keys_print print_of(int db, struct slice name)
{
    char text[sizeof(uint32_t) + SHORT_BYTES];
    uint32_t number = (uint32_t)db;
    struct known_keys_print p = {.a = hash_slice(name) ^
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

static struct known_keys_print *slot_of(const struct known_keys *k, struct known_keys_print p)
{
    for (uint64_t at = p.a;; at++) {
        struct known_keys_print *slot = &k->slots[at & (k->capacity - 1)];
        if (slot->b == 0 || (slot->a == p.a && slot->b == p.b)) {
            return slot;
        }
    }
}

bool known_keys_add(struct known_keys *k, int db, struct slice name)
{
    struct known_keys_print p = print_of(db, name);
    struct known_keys_print *slot = slot_of(k, p);
    if (slot->b != 0) {
        return false;
    }
    *slot = p;
    k->count++;
    assert(k->count < k->capacity);
    return true;
}

bool known_keys_has(const struct known_keys *k, int db, struct slice name)
{
    return slot_of(k, print_of(db, name))->b != 0;
}
