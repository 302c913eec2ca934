/* DEBUG's subcommands about keys and tables. They run while the world stands still, and take the
 * keyspace lock for the background threads' and the analysis' sake: where they read keys in
 * exclusive mode, since members that are due must go first (keyspace/db.h). */
#include "commands/debug_priv.h"
#include "base/num.h"
#include "keyspace/expire.h"
#include "value/module.h"
#include "value/string.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#define SHA1_BYTES 20

/* Entries a scan step visits at most; only the number of calls depends on it. */
#define DEBUG_SCAN_STEP 1024

/* ---- Digests: equal for equal data, whatever the order in which it was written ---- */

static void digest_of_bytes(const void *bytes, size_t len, uint8_t digest[SHA1_BYTES])
{
    unsigned digest_len = 0;
    int ok = EVP_Digest(bytes, len, digest, &digest_len, EVP_sha1(), NULL);
    assert(ok == 1 && digest_len == SHA1_BYTES);
    (void)ok;
}

static void digest_xor(uint8_t into[SHA1_BYTES], const uint8_t from[SHA1_BYTES])
{
    for (int i = 0; i < SHA1_BYTES; i++) {
        into[i] ^= from[i];
    }
}

/* A value's digest with its type, and whether it will expire (not when: two servers may read the
 * clock differently). */
static void digest_of_value(const struct entry *e, uint8_t digest[SHA1_BYTES])
{
    struct {
        uint8_t value[SHA1_BYTES];
        uint8_t type, expires;
    } parts = {.type = (uint8_t)entry_type(e), .expires = entry_expiry_ms(e) != ENTRY_NO_EXPIRY};
    static_assert(sizeof(parts) == SHA1_BYTES + 2, "no padding is hashed");
    value_ops_of[entry_type(e)]->digest(e, parts.value);
    digest_of_bytes(&parts, sizeof(parts), digest);
}

struct digest_walk {
    uint8_t sum[SHA1_BYTES];
    uint8_t db;
};

static void digest_visit(struct entry *e, void *context)
{
    struct digest_walk *walk = context;
    struct {
        uint8_t key[SHA1_BYTES], value[SHA1_BYTES];
        uint8_t db;
    } parts = {.db = walk->db};
    static_assert(sizeof(parts) == 2 * SHA1_BYTES + 1, "no padding is hashed");
    struct slice key = entry_key(e);
    digest_of_bytes(key.ptr, key.len, parts.key);
    digest_of_value(e, parts.value);
    uint8_t digest[SHA1_BYTES];
    digest_of_bytes(&parts, sizeof(parts), digest);
    digest_xor(walk->sum, digest);
}

static void digest_reply(struct reply *r, const uint8_t digest[SHA1_BYTES])
{
    char text[2 * SHA1_BYTES + 1];
    for (int i = 0; i < SHA1_BYTES; i++) {
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    }
    reply_status(r, text);
}

void debug_digest(struct call *c)
{
    struct digest_walk walk = {{0}, 0};
    keyspace_lock_exclusive();
    expire_run_all(c->now_ms);
    for (int i = 0; i < db_count(); i++) {
        uint64_t cursor = 0;
        walk.db = (uint8_t)i;
        module_value_db = i;
        do {
            cursor = db_scan(db_at(i), cursor, DEBUG_SCAN_STEP, c->now_ms, digest_visit, &walk);
        } while (cursor);
    }
    module_value_db = -1;
    keyspace_unlock_exclusive();
    digest_reply(c->reply, walk.sum);
}

void debug_digest_value(struct call *c)
{
    reply_array(c->reply, (uint64_t)c->argc - 2);
    keyspace_lock_exclusive();
    for (int i = 2; i < c->argc; i++) {
        struct key key = key_of(c->argv[i]);
        const struct entry *e = db_read(c->db, &key, c->now_ms, DB_NO_TOUCH | DB_NO_STATS);
        uint8_t digest[SHA1_BYTES] = {0};
        if (e) {
            module_value_db = c->db->id;
            digest_of_value(e, digest);
            module_value_db = -1;
        }
        digest_reply(c->reply, digest);
    }
    keyspace_unlock_exclusive();
}

/* ---- DEBUG POPULATE ---- */

/* Longest prefix and value that POPULATE makes. */
#define POPULATE_MAX_PREFIX_BYTES (64 * 1024)
#define POPULATE_MAX_VALUE_BYTES (512ll << 20)

struct populate {
    int64_t count, size; /* size -1: as long as the text */
    struct slice prefix;
};

static bool populate_parse(struct call *c, struct populate *p)
{
    static const char error[] = "ERR value is out of range, must be positive";
    *p = (struct populate){.size = -1, .prefix = SLICE("key")};
    if (!call_arg_i64_error(c, 2, &p->count, error)) {
        return false;
    }
    if (c->argc > 4 && !call_arg_i64_error(c, 4, &p->size, error)) {
        return false;
    }
    if (p->count < 0 || (c->argc > 4 && p->size < 0)) {
        reply_error(c->reply, error);
        return false;
    }
    if (c->argc > 3) {
        p->prefix = c->argv[3];
    }
    if (p->size > POPULATE_MAX_VALUE_BYTES || p->prefix.len > POPULATE_MAX_PREFIX_BYTES) {
        reply_error(c->reply, "ERR prefix or size is too large");
        return false;
    }
    return true;
}

/* Makes key number `i` unless it is there: its value is "value:i", cut or padded with zero bytes to
 * the size. */
static void populate_one(struct call *c, const struct populate *p, int64_t i, struct buf *name,
                         struct buf *value) REQUIRES(keyspace_lock)
{
    buf_clear(name);
    buf_append_slice(name, p->prefix);
    buf_printf(name, ":%lld", (long long)i);
    struct key key = key_of(buf_slice(name));
    struct keyref ref;
    db_open(&ref, c->db, &key, c->now_ms, 0);
    if (ref.entry) {
        return;
    }
    buf_clear(value);
    buf_printf(value, "value:%lld", (long long)i);
    size_t size = p->size < 0 ? value->len : (size_t)p->size;
    if (size > value->len) {
        memset(buf_reserve(value, size - value->len), 0, size - value->len);
    }
    struct slice content = slice_of(value->data, size);
    db_put(&ref, string_create(key.name, content, ENTRY_NO_EXPIRY));
    c->dirty++;
}

void debug_populate(struct call *c)
{
    struct populate p;
    if (!populate_parse(c, &p)) {
        return;
    }
    struct buf name = {0}, value = {0};
    keyspace_lock_exclusive();
    for (int64_t i = 0; i < p.count; i++) {
        populate_one(c, &p, i, &name, &value);
    }
    keyspace_unlock_exclusive();
    buf_deinit(&name);
    buf_deinit(&value);
    reply_ok(c->reply);
}

/* ---- The tables ---- */

/* Buckets with more entries are counted together. */
#define HTSTATS_LONGEST 50

struct htstats {
    uint64_t buckets, entries, tagged;
    uint64_t by_length[HTSTATS_LONGEST + 1];
    unsigned in_bucket, longest;
};

static void htstats_visit(uintptr_t *slot, void *context)
{
    struct htstats *s = context;
    s->entries++;
    s->in_bucket++;
    s->tagged += (*slot & DB_TAG_EXPIRES) != 0;
}

static void htstats_walk(const struct table *t, struct htstats *s)
{
    uint64_t cursor = 0;
    do {
        s->in_bucket = 0;
        cursor = table_scan(t, cursor, htstats_visit, s);
        s->buckets++;
        s->longest = s->in_bucket > s->longest ? s->in_bucket : s->longest;
        s->by_length[s->in_bucket < HTSTATS_LONGEST ? s->in_bucket : HTSTATS_LONGEST]++;
    } while (cursor);
}

static void htstats_write(const struct table *t, const struct htstats *s, bool full,
                          struct buf *out)
{
    buf_printf(out,
               "Hash table 0 stats (main hash table):\n"
               " table size: %llu\n number of elements: %llu\n different slots: %llu\n"
               " max chain length: %u\n directory depth: %u\n chained buckets: %llu\n"
               " bytes: %zu\n",
               (unsigned long long)(s->buckets * TABLE_BUCKET_SLOTS),
               (unsigned long long)s->entries, (unsigned long long)(s->buckets - s->by_length[0]),
               s->longest, t->depth, (unsigned long long)(t->bucket_count - s->buckets),
               table_memory_bytes(t));
    if (full) {
        buf_append_cstr(out, " Entries in a bucket:\n");
    }
    for (unsigned i = 0; full && i <= HTSTATS_LONGEST; i++) {
        if (s->by_length[i]) {
            buf_printf(out, "   %s%u: %llu (%.2f%%)\n", i == HTSTATS_LONGEST ? ">= " : "", i,
                       (unsigned long long)s->by_length[i],
                       100.0 * (double)s->by_length[i] / (double)s->buckets);
        }
    }
}

/* Reads the word FULL, which may be argument 3; false with the fault replied. */
static bool htstats_is_full(struct call *c, bool *full) REQUIRES(gil)
{
    *full = c->argc > 3;
    if (*full && !call_arg_is(c, 3, "full")) {
        debug_reply_unknown(c);
        return false;
    }
    return true;
}

void debug_htstats(struct call *c)
{
    int64_t index;
    bool full;
    if (!call_arg_i64(c, 2, &index) || !htstats_is_full(c, &full)) {
        return;
    }
    if (index < 0 || index >= db_count()) {
        reply_error(c->reply, "ERR Out of range database");
        return;
    }
    struct htstats stats = {0};
    struct buf out = {0};
    const struct table *t = &db_at((int)index)->table;
    buf_append_cstr(&out, "[Dictionary HT]\n");
    keyspace_lock_shared();
    htstats_walk(t, &stats);
    htstats_write(t, &stats, full, &out);
    keyspace_unlock_shared();
    buf_printf(&out, "[Expires HT]\nExpiries stand in the entries; entries with one: %llu\n",
               (unsigned long long)stats.tagged);
    reply_verbatim(c->reply, "txt", buf_slice(&out));
    buf_deinit(&out);
}

void debug_htstats_key(struct call *c)
{
    bool full;
    struct key key = key_of(c->argv[2]);
    if (!htstats_is_full(c, &full)) {
        return;
    }
    keyspace_lock_exclusive();
    const struct entry *e = db_read(c->db, &key, c->now_ms, DB_NO_TOUCH | DB_NO_STATS);
    const struct value_ops *ops = e ? value_ops_of[entry_type(e)] : NULL;
    const struct table *t = ops && ops->table ? ops->table(e) : NULL;
    if (t) {
        struct htstats stats = {0};
        struct buf out = {0};
        htstats_walk(t, &stats);
        htstats_write(t, &stats, full, &out);
        reply_verbatim(c->reply, "txt", buf_slice(&out));
        buf_deinit(&out);
    } else if (e) {
        reply_error(c->reply, "ERR The value stored at the specified key is not represented using "
                              "an hash table");
    } else {
        reply_no_such_key(c->reply);
    }
    keyspace_unlock_exclusive();
}

void debug_structsize(struct call *c)
{
    char text[256];
    snprintf(text, sizeof(text),
             "bits:%zu entry:%zu bucket:%zu table:%zu blob:%zu keyref:%zu call:%zu session:%zu",
             8 * sizeof(void *), sizeof(struct entry), sizeof(struct table_bucket),
             sizeof(struct table), sizeof(struct blob), sizeof(struct keyref), sizeof(struct call),
             sizeof(struct session));
    reply_bulk_cstr(c->reply, text);
}
