/* See sets_index.h. A member of a packed set is either an integer or bytes that are none, so the
 * two are told apart without writing the integer out. */
#include "commands/sets_index.h"

#include "base/mem.h"

#define HEADS 256 /* a power of two */

struct indexed {
    uint64_t hash;
    const char *bytes; /* NULL: an integer */
    int64_t value;     /* that, or the number of bytes */
    unsigned next;     /* as in `head` */
};

struct sets_index {
    unsigned count;
    uint16_t head[HEADS]; /* 1 + the number of the last member; 0: none */
    struct indexed members[SETS_INDEX_MEMBERS];
};

struct sets_index *sets_index_create(void)
{
    struct sets_index *index = mem_alloc(sizeof(*index));
    index->count = 0;
    memset(index->head, 0, sizeof(index->head));
    return index;
}

void sets_index_destroy(struct sets_index *index)
{
    mem_free(index);
}

static inline struct indexed describe(struct set_member *m)
{
    if (m->facts & SET_MEMBER_INTEGER) {
        uint64_t hash = hash_fold((uint64_t)m->integer ^ hash_secret.word[0], hash_secret.word[1]);
        return (struct indexed){.hash = hash, .value = m->integer};
    }
    struct slice bytes = set_member_bytes(m);
    return (struct indexed){
        .hash = set_member_hash(m), .bytes = bytes.ptr, .value = (int64_t)bytes.len};
}

static inline bool is_same(const struct indexed *a, const struct indexed *b)
{
    return a->hash == b->hash && a->value == b->value && !a->bytes == !b->bytes &&
           (!a->bytes || memcmp(a->bytes, b->bytes, (size_t)a->value) == 0);
}

static inline bool has(const struct sets_index *index, const struct indexed *wanted)
{
    for (unsigned at = index->head[wanted->hash % HEADS]; at; at = index->members[at - 1].next) {
        if (is_same(&index->members[at - 1], wanted)) {
            return true;
        }
    }
    return false;
}

bool sets_index_has(const struct sets_index *index, struct set_member *m)
{
    struct indexed wanted = describe(m);
    return has(index, &wanted);
}

bool sets_index_add(struct sets_index *index, struct set_member *m)
{
    struct indexed added = describe(m);
    if (has(index, &added)) {
        return false;
    }
    assert(index->count < SETS_INDEX_MEMBERS);
    uint16_t *head = &index->head[added.hash % HEADS];
    added.next = *head;
    index->members[index->count++] = added;
    *head = (uint16_t)index->count;
    return true;
}
