/* keydb-check-rdb: reads an RDB file as the server would, without a server, and says what is in it
 * or at which offset it is damaged. Ends with 0 when it can be loaded, else with 1. What it prints
 * has the shape of redis-check-rdb's, which scripts know. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/option.h"
#include "base/thread.h"
#include "base/version.h"
#include "persist/rdb_format.h"
#include "persist/rdb_walk.h"
#include "value/hash.h"
#include "value/list.h"
#include "value/set.h"
#include "value/stream.h"
#include "value/zset.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    f->expired += key->expiry_ms <= f->now_ms;
    f->empty += !key->e && key->type != RDB_KEYDB_CRON;
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

static bool check(int fd, uint64_t size)
{
    struct rdb_walk walk;
    struct figures f = {.now_ms = clock_wall_ms()};
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
    if (fine && rdb_left(&walk.r) > 0) {
        printf("[info] %" PRIu64 " bytes follow: the file is an AOF with a preamble, or damaged\n",
               rdb_left(&walk.r));
    }
    rdb_walk_deinit(&walk);
    return fine;
}

static bool check_file(const char *name)
{
    struct stat about;
    printf("[offset 0] Checking RDB file %s\n", name);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &about) < 0) {
        fprintf(stderr, "Cannot open file %s: %s\n", name, strerror(errno));
        return false;
    }
    bool fine = check(fd, about.st_size > 0 ? (uint64_t)about.st_size : 0);
    close(fd);
    return fine;
}

static void setup(void)
{
    clock_setup();
    hash_setup();
    thread_enter("check-rdb");
    for (size_t i = 0; i < sizeof(value_options) / sizeof(value_options[0]); i++) {
        for (const struct option *o = value_options[i]; o->name; o++) {
            option_store_initial(o);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 2 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0) {
        fprintf(stderr, "Usage: keydb-check-rdb <rdb-file-name>\n");
        return 1;
    }
    if (strcmp(argv[1], "-v") == 0 || strcmp(argv[1], "--version") == 0) {
        printf("keydb-check-rdb %s\n", KEYDB_VERSION);
        return 0;
    }
    setup();
    bool fine = check_file(argv[1]);
    thread_leave();
    return fine && fflush(stdout) == 0 ? 0 : 1;
}
