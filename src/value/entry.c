/* See entry.h for the layout. */
#include "value/entry.h"

#include "base/mem.h"
#include "value/member_ttl.h"

#include <string.h>

static inline uint8_t shape_flags(struct slice key, bool external, int64_t expiry_ms)
{
    return (uint8_t)((expiry_ms != ENTRY_NO_EXPIRY ? ENTRY_EXPIRES : 0) |
                     (external ? ENTRY_EXTERNAL : 0) | (key.len > 255 ? ENTRY_LONG_KEY : 0));
}

static inline size_t key_field_bytes(uint8_t flags)
{
    return flags & ENTRY_LONG_KEY ? sizeof(uint32_t) : 0;
}

/* Bytes of a block of this shape, not rounded. A block is as large as the allocator's size class,
 * so that an overwrite may use all of it. */
static inline size_t shape_bytes(uint8_t flags, size_t key_len, size_t embedded_len)
{
    return sizeof(struct entry) + entry_fixed_bytes(flags) + key_field_bytes(flags) + key_len +
           embedded_len;
}

/* An empty slice may have no address, which memcpy does not take. */
static inline void copy_bytes(char *to, struct slice from)
{
    if (from.len > 0) {
        memcpy(to, from.ptr, from.len);
    }
}

/* The encoding as it stands in an entry's word: without its fourth bit. */
static uint32_t encoding_bits(enum value_type type, enum encoding encoding)
{
    assert((type >= ENTRY_LONE_TYPE) == (encoding >= ENTRY_LONE_ENCODING));
    return ((uint32_t)encoding & 7) << 29;
}

static struct entry *create(struct slice key, enum value_type type, enum encoding encoding,
                            uint8_t flags, size_t embedded_len, int64_t expiry_ms)
{
    assert(key.len <= UINT32_MAX && embedded_len <= ENTRY_EMBEDDED_MAX);
    struct entry *e = mem_alloc(mem_size_class(shape_bytes(flags, key.len, embedded_len)));
    atomic_init(&e->word, ((uint32_t)type << 24) | encoding_bits(type, encoding));
    e->flags = flags;
    e->short_key_len = (uint8_t)key.len;
    e->embedded_len = (uint16_t)embedded_len;
    if (flags & ENTRY_EXPIRES) {
        memcpy(e->body, &expiry_ms, sizeof(expiry_ms));
    }
    char *at = e->body + entry_fixed_bytes(flags);
    if (flags & ENTRY_LONG_KEY) {
        uint32_t len = (uint32_t)key.len;
        memcpy(at, &len, sizeof(len));
        at += sizeof(len);
    }
    copy_bytes(at, key);
    return e;
}

static inline char *word_field(const struct entry *e)
{
    assert(e->flags & ENTRY_EXTERNAL);
    return (char *)e->body + ((e->flags & ENTRY_EXPIRES) << 3);
}

struct entry *entry_create_pointer(struct slice key, enum value_type type, enum encoding encoding,
                                   void *pointer_take, int64_t expiry_ms)
{
    assert(pointer_take != NULL);
    struct entry *e = create(key, type, encoding, shape_flags(key, true, expiry_ms), 0, expiry_ms);
    entry_set_pointer(e, pointer_take);
    return e;
}

/* What the class of a block with `bytes` of payload leaves for it. */
static size_t payload_room(uint8_t flags, size_t key_len, size_t bytes)
{
    size_t head = shape_bytes(flags, key_len, 0);
    size_t room = mem_size_class(head + bytes) - head;
    return room < ENTRY_EMBEDDED_MAX ? room : ENTRY_EMBEDDED_MAX;
}

struct entry *entry_create_payload(struct slice key, enum value_type type, enum encoding encoding,
                                   size_t bytes, int64_t expiry_ms)
{
    assert(bytes <= ENTRY_EMBEDDED_MAX);
    uint8_t flags = shape_flags(key, false, expiry_ms);
    return create(key, type, encoding, flags, payload_room(flags, key.len, bytes), expiry_ms);
}

bool entry_embeds(struct slice key, int64_t expiry_ms, size_t bytes)
{
    if (bytes > ENTRY_EMBEDDED_MAX) {
        return false;
    }
    size_t inside = shape_bytes(shape_flags(key, false, expiry_ms), key.len, bytes);
    size_t outside = shape_bytes(shape_flags(key, true, expiry_ms), key.len, 0);
    return mem_size_class(inside) <= mem_size_class(outside) + mem_size_class(bytes);
}

struct entry *entry_create_integer(struct slice key, int64_t value, int64_t expiry_ms)
{
    struct entry *e = create(key, VALUE_STRING, ENCODING_INTEGER, shape_flags(key, true, expiry_ms),
                             0, expiry_ms);
    entry_set_integer(e, value);
    return e;
}

struct entry *entry_create_string(struct slice key, struct slice value, int64_t expiry_ms)
{
    if (value.len > ENTRY_EMBEDDED_MAX) {
        return entry_create_pointer(key, VALUE_STRING, ENCODING_BLOB, blob_create_copy(value),
                                    expiry_ms);
    }
    struct entry *e = create(key, VALUE_STRING, ENCODING_EMBEDDED,
                             shape_flags(key, false, expiry_ms), value.len, expiry_ms);
    copy_bytes(entry_payload(e), value);
    return e;
}

void entry_set_pointer(struct entry *e, void *pointer_take)
{
    void *at = word_field(e);
    if (unlikely(e->flags & ENTRY_MEMBER_TTL)) {
        void *between;
        memcpy(&between, at, sizeof(between));
        at = between;
    }
    memcpy(at, &pointer_take, sizeof(pointer_take));
}

void entry_set_integer(struct entry *e, int64_t value)
{
    memcpy(word_field(e), &value, sizeof(value));
}

void entry_set_encoding(struct entry *e, enum encoding encoding)
{
    uint32_t word = entry_word(e) & ~((uint32_t)7 << 29);
    atomic_store_explicit(&e->word, word | encoding_bits(entry_type(e), encoding),
                          memory_order_relaxed);
}

size_t entry_block_bytes(const struct entry *e)
{
    return mem_size_class(shape_bytes(e->flags, entry_key(e).len, e->embedded_len));
}

bool entry_overwrite_embedded(struct entry *e, struct slice value)
{
    if (entry_type(e) != VALUE_STRING || entry_encoding(e) != ENCODING_EMBEDDED ||
        value.len > ENTRY_EMBEDDED_MAX) {
        return false;
    }
    struct slice key = entry_key(e);
    if (value.len != e->embedded_len) {
        /* The same class, not merely enough room: a block's size must follow from its fields. */
        size_t now = mem_size_class(shape_bytes(e->flags, key.len, e->embedded_len));
        if (mem_size_class(shape_bytes(e->flags, key.len, value.len)) != now) {
            return false;
        }
        e->embedded_len = (uint16_t)value.len;
    }
    e->flags &= (uint8_t)~ENTRY_RAW;
    copy_bytes((char *)key.ptr + key.len, value);
    return true;
}

static void free_block(struct entry *e)
{
    mem_free_sized(e, entry_block_bytes(e));
}

static void put_stamp(struct entry *e, const void *stamp)
{
    if (stamp) {
        memcpy((void *)entry_stamp(e), stamp, ENTRY_STAMP_BYTES);
    }
}

/* A block like `e` with another key, expiry and stamp (NULL: none); the value's bytes, pointer or
 * integer are carried over. `e` is freed. */
static struct entry *reshape(struct entry *e, struct slice key, int64_t expiry_ms,
                             const void *stamp)
{
    bool external = e->flags & ENTRY_EXTERNAL;
    uint8_t flags = shape_flags(key, external, expiry_ms) | (stamp ? ENTRY_STAMPED : 0) |
                    (e->flags & (ENTRY_RAW | ENTRY_MEMBER_TTL));
    struct entry *result =
        create(key, entry_type(e), entry_encoding(e), flags, e->embedded_len, expiry_ms);
    entry_set_clock(result, entry_clock(e));
    put_stamp(result, stamp);
    if (external) {
        entry_set_integer(result, entry_integer(e));
    } else {
        memcpy(entry_payload(result), entry_payload(e), e->embedded_len);
    }
    free_block(e);
    return result;
}

/* What goes over to a block made anew for the same key; `from` is freed. */
static void keep_head(struct entry *to, struct entry *from)
{
    entry_set_clock(to, entry_clock(from));
    put_stamp(to, entry_stamp(from));
    to->flags |= from->flags & ENTRY_RAW;
    free_block(from);
}

/* The flags of a block for the key, expiry and stamp of `e`. */
static uint8_t same_flags(const struct entry *e, bool external)
{
    return shape_flags(entry_key(e), external, entry_expiry_ms(e)) | (e->flags & ENTRY_STAMPED);
}

struct entry *entry_with_room(struct entry *e, size_t bytes)
{
    assert(!member_ttl_any(e));
    assert(bytes <= ENTRY_EMBEDDED_MAX);
    struct slice key = entry_key(e);
    uint8_t flags = same_flags(e, false);
    struct entry *result = create(key, entry_type(e), entry_encoding(e), flags,
                                  payload_room(flags, key.len, bytes), entry_expiry_ms(e));
    if (!(e->flags & ENTRY_EXTERNAL)) {
        size_t kept =
            e->embedded_len < result->embedded_len ? e->embedded_len : result->embedded_len;
        memcpy(entry_payload(result), entry_payload(e), kept);
    }
    keep_head(result, e);
    return result;
}

struct entry *entry_with_pointer(struct entry *e, enum encoding encoding, void *pointer_take)
{
    if (e->flags & ENTRY_EXTERNAL) {
        entry_set_pointer(e, pointer_take);
        entry_set_encoding(e, encoding);
        return e;
    }
    struct entry *result =
        create(entry_key(e), entry_type(e), encoding, same_flags(e, true), 0, entry_expiry_ms(e));
    entry_set_pointer(result, pointer_take);
    keep_head(result, e);
    return result;
}

struct entry *entry_with_block(struct entry *e)
{
    if (e->flags & ENTRY_EXTERNAL) {
        return e;
    }
    size_t bytes = entry_payload_room(e);
    void *block = memcpy(mem_alloc(bytes), entry_payload(e), bytes);
    return entry_with_pointer(e, entry_encoding(e), block);
}

struct entry *entry_with_expiry(struct entry *e, int64_t expiry_ms)
{
    bool expires = expiry_ms != ENTRY_NO_EXPIRY;
    if (expires == !!(e->flags & ENTRY_EXPIRES)) {
        if (expires) {
            memcpy(e->body, &expiry_ms, sizeof(expiry_ms));
        }
        return e;
    }
    return reshape(e, entry_key(e), expiry_ms, entry_stamp(e));
}

struct entry *entry_with_key(struct entry *e, struct slice key)
{
    return reshape(e, key, entry_expiry_ms(e), entry_stamp(e));
}

struct entry *entry_with_stamp(struct entry *e, const void *stamp)
{
    if (!stamp != !(e->flags & ENTRY_STAMPED)) {
        return reshape(e, entry_key(e), entry_expiry_ms(e), stamp);
    }
    put_stamp(e, stamp);
    return e;
}

struct entry *entry_copy(const struct entry *e, struct slice key, int64_t expiry_ms)
{
    struct entry *result;
    if (!(e->flags & ENTRY_EXTERNAL)) {
        result = create(key, entry_type(e), entry_encoding(e), shape_flags(key, false, expiry_ms),
                        e->embedded_len, expiry_ms);
        memcpy(entry_payload(result), entry_payload(e), e->embedded_len);
    } else if (entry_encoding(e) == ENCODING_INTEGER) {
        result = entry_create_integer(key, entry_integer(e), expiry_ms);
    } else {
        result = entry_create_pointer(key, entry_type(e), entry_encoding(e),
                                      value_ops_of[entry_type(e)]->copy(e), expiry_ms);
    }
    result->flags |= e->flags & ENTRY_RAW;
    if (e->flags & ENTRY_MEMBER_TTL) {
        member_ttl_copy(result, e);
    }
    return result;
}

void entry_destroy(struct entry **e)
{
    struct entry *dropped = *e;
    *e = NULL;
    if (!dropped) {
        return;
    }
    if (dropped->flags & ENTRY_EXTERNAL) {
        if (unlikely(dropped->flags & ENTRY_MEMBER_TTL)) {
            member_ttl_drop_all(dropped);
        }
        value_ops_of[entry_type(dropped)]->destroy(dropped);
    }
    free_block(dropped);
}

size_t entry_memory_bytes(const struct entry *e, size_t samples)
{
    return entry_block_bytes(e) + value_ops_of[entry_type(e)]->memory(e, samples) +
           member_ttl_memory_bytes(e, samples);
}

size_t entry_free_effort(const struct entry *e)
{
    return value_ops_of[entry_type(e)]->free_effort(e) + member_ttl_count(e);
}
