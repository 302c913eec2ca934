/* RDB files (persist/rdb_walk.h) of arbitrary bytes. Oracles: every value that is shown holds its
 * type's invariants; what is refused has a reason, and an offset within the file; whether a
 * checksum is compared changes nothing before the file's end. */
#include "base/rand.h"
#include "persist/rdb_format.h"
#include "persist/rdb_walk.h"

#include "check_value.h"

#include <sys/mman.h>
#include <unistd.h>

struct seen {
    uint64_t keys, empty, aux, libraries;
};

static bool take_key(struct rdb_walk *w, struct rdb_walk_key *key)
{
    struct seen *seen = w->context;
    if (!key->e) {
        seen->empty++;
        return true;
    }
    check(key->e);
    uint8_t digest[20] = {0};
    value_ops_of[entry_type(key->e)]->digest(key->e, digest);
    entry_destroy(&key->e);
    seen->keys++;
    return true;
}

static bool take_aux(struct rdb_walk *w, struct slice name, struct slice value)
{
    require(name.ptr && value.ptr, "words of the file");
    ((struct seen *)w->context)->aux++;
    return true;
}

static bool take_library(struct rdb_walk *w, struct slice source)
{
    (void)source;
    ((struct seen *)w->context)->libraries++;
    return true;
}

static bool take_select(struct rdb_walk *w, uint64_t db)
{
    (void)w;
    (void)db;
    return true;
}

static const struct rdb_walk_visitor visitor = {
    .key = take_key, .aux = take_aux, .library = take_library, .select = take_select};

static bool walk(int fd, size_t len, bool checksum, bool alone, struct seen *seen)
{
    struct rdb_walk w;
    *seen = (struct seen){0};
    require(lseek(fd, 0, SEEK_SET) == 0, "back to the beginning");
    rdb_walk_init(&w, &visitor, seen, fd, len);
    w.checksum = checksum;
    w.alone = alone;
    bool fine = rdb_walk_run(&w);
    require(fine || (w.r.error && w.r.error_offset <= len), "a refusal says why and where");
    rdb_walk_deinit(&w);
    return fine;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    prepare_values();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct seen with, without, part;
    int fd = memfd_create("rdb", 0);
    require(fd >= 0 && write(fd, bytes, len) == (ssize_t)len, "a file to read");
    rand_set_seed(1);
    bool fine = walk(fd, len, true, true, &with);
    rand_set_seed(1);
    bool also = walk(fd, len, false, true, &without);
    require(with.keys == without.keys && with.aux == without.aux && with.empty == without.empty,
            "the checksum comes last");
    require(also || !fine, "what is fine with its checksum is fine without");
    rand_set_seed(1);
    require(walk(fd, len, false, false, &part) || !also, "and when more may follow");
    close(fd);
    return 0;
}
