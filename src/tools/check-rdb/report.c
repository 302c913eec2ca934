/* See report.h. */
#include "tools/check-rdb/report.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/option.h"
#include "base/thread.h"
#include "persist/rdb_format.h"
#include "persist/rdb_module.h"
#include "persist/rdb_walk.h"
#include "value/hash.h"
#include "value/list.h"
#include "value/set.h"
#include "value/stream.h"
#include "value/zset.h"

#include <inttypes.h>
#include <stdio.h>

/* Longer names are cut in what is printed. */
#define SHOWN_BYTES 256

static const struct option *const value_options[] = {hash_options, list_options, set_options,
                                                     zset_options, stream_options};

static const char *const type_names[RDB_TYPE_COUNT] = {
    [RDB_STRING] = "string",
    [RDB_LIST] = "list-linked",
    [RDB_SET] = "set-hashtable",
    [RDB_ZSET] = "zset-v1",
    [RDB_HASH] = "hash-hashtable",
    [RDB_ZSET_2] = "zset-v2",
    [RDB_MODULE] = "module-value",
    [RDB_HASH_ZIPMAP] = "hash-zipmap",
    [RDB_LIST_ZIPLIST] = "list-ziplist",
    [RDB_SET_INTSET] = "set-intset",
    [RDB_ZSET_ZIPLIST] = "zset-ziplist",
    [RDB_HASH_ZIPLIST] = "hash-ziplist",
    [RDB_LIST_QUICKLIST] = "quicklist",
    [RDB_STREAM] = "stream",
    [RDB_HASH_LISTPACK] = "hash-listpack",
    [RDB_ZSET_LISTPACK] = "zset-listpack",
    [RDB_LIST_QUICKLIST_2] = "quicklist-v2",
    [RDB_STREAM_2] = "stream-v2",
    [RDB_SET_LISTPACK] = "set-listpack",
    [RDB_STREAM_3] = "stream-v3",
    [RDB_HASH_METADATA] = "hash-metadata",
    [RDB_HASH_LISTPACK_EX] = "hash-listpack-ex",
    [RDB_KEYDB_CRON] = "keydb-cron",
    [RDB_MEMBER_TTL] = "member-ttl",
    [RDB_NESTED] = "nested-hash",
    [RDB_JOB] = "job",
};

struct figures {
    uint64_t keys, expires, expired, empty, libraries;
    int64_t now_ms;
};

/* Prints text of the file with what is no printable character as \xHH. */
static void print_text(struct slice text)
{
    for (size_t i = 0; i < text.len && i < SHOWN_BYTES; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c >= 0x20 && c < 0x7f && c != '\\') {
            putchar(c);
        } else {
            printf("\\x%02x", c);
        }
    }
    if (text.len > SHOWN_BYTES) {
        printf("... (%zu bytes)", text.len);
    }
}

static void print_offset(const struct rdb_walk *w)
{
    printf("[offset %" PRIu64 "] ", rdb_offset(&w->r));
}

static bool see_key(struct rdb_walk *w, struct rdb_walk_key *key)
{
    struct figures *f = w->context;
    f->keys++;
    f->expires += key->expiry_ms != ENTRY_NO_EXPIRY;
    f->expired += entry_is_over(key->expiry_ms, f->now_ms);
    f->empty += !key->e && key->type != RDB_MODULE;
    if (key->e) {
        entry_destroy(&key->e);
    }
    return true;
}

static bool see_aux(struct rdb_walk *w, struct slice name, struct slice value)
{
    print_offset(w);
    printf("AUX FIELD ");
    print_text(name);
    printf(" = '");
    print_text(value);
    printf("'\n");
    return true;
}

static bool see_library(struct rdb_walk *w, struct slice source)
{
    struct figures *f = w->context;
    (void)source;
    f->libraries++;
    return true;
}

static bool see_select(struct rdb_walk *w, uint64_t db)
{
    print_offset(w);
    printf("Selecting DB ID %" PRIu64 "\n", db);
    return true;
}

static const struct rdb_walk_visitor visitor = {
    .key = see_key, .aux = see_aux, .library = see_library, .select = see_select};

static void print_fault(const struct rdb_walk *w)
{
    printf("--- RDB ERROR DETECTED ---\n[offset %" PRIu64 "] %s\n", w->r.error_offset, w->r.error);
    printf("[additional info] While doing: %s\n", w->doing);
    if (w->has_key) {
        printf("[additional info] Reading key '");
        print_text(buf_slice(&w->key));
        printf("'\n");
    }
    if (w->doing_type < RDB_TYPE_COUNT && type_names[w->doing_type]) {
        printf("[additional info] Reading type %u (%s)\n", w->doing_type,
               type_names[w->doing_type]);
    }
}

static void print_end(const struct rdb_walk *w)
{
    print_offset(w);
    printf(w->sum_told ? "Checksum OK\n" : "RDB file was saved with checksum disabled\n");
    print_offset(w);
    printf("\\o/ RDB looks OK! \\o/\n");
}

bool rdb_report_run(int fd, uint64_t size, const char *name, uint64_t *end)
{
    struct rdb_walk walk;
    struct figures f = {.now_ms = clock_wall_ms()};
    printf("[offset 0] Checking RDB file %s\n", name);
    rdb_module_skips = true;
    rdb_walk_init(&walk, &visitor, &f, fd, size);
    bool fine = rdb_walk_run(&walk);
    if (fine) {
        print_end(&walk);
    } else {
        print_fault(&walk);
    }
    printf("[info] %" PRIu64 " keys read\n[info] %" PRIu64 " expires\n[info] %" PRIu64
           " already expired\n",
           f.keys, f.expires, f.expired);
    if (f.empty) {
        printf("[info] %" PRIu64 " empty collections, which the server leaves out\n", f.empty);
    }
    if (f.libraries) {
        printf("[info] %" PRIu64 " libraries of functions\n", f.libraries);
    }
    *end = rdb_offset(&walk.r);
    rdb_walk_deinit(&walk);
    return fine;
}

void rdb_report_setup(const char *thread_name)
{
    clock_setup();
    hash_setup();
    thread_enter(thread_name);
    for (size_t i = 0; i < sizeof(value_options) / sizeof(value_options[0]); i++) {
        for (const struct option *o = value_options[i]; o->name; o++) {
            option_store_initial(o);
        }
    }
}

void rdb_report_teardown(void)
{
    thread_leave();
}
