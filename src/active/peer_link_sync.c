/* See peer_links_priv.h: a whole data set that comes by a link, and is merged
 * (full_sync_receive.h).
 *
 * Several links may bring one at a time; they are merged one after the other, and one whose writes
 * are all here by then, since another one had them, is not merged at all. */
#include "active/active.h"
#include "active/full_sync_receive.h"
#include "active/peer_links_priv.h"
#include "base/file.h"
#include "base/log.h"
#include "base/num.h"
#include "engine/snapshot.h"
#include "keyspace/reclaim.h"
#include "persist/aof.h"
#include "persist/dots.h"
#include "repl/replica.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Keys are merged for so long in one hold. */
#define HOLD_US 2000
/* The same where nobody else can run. */
#define WORLD_HOLD_US 100000
/* Between two words in the log about how far it is. */
#define PROGRESS_MS 5000

#define ASIDE_NAME_BYTES 40

/* The one that is merged, and its file's name; keyspace. */
static struct full_sync *merging;
static char merging_name[ASIDE_NAME_BYTES];
/* For INFO. */
static struct {
    _Atomic int coming;
    _Atomic bool merges;
    _Atomic uint64_t keys, merged;
} figures;

struct peer_sync_facts peer_sync_facts(void)
{
    return (struct peer_sync_facts){figures.coming > 0, figures.merges, figures.keys,
                                    figures.merged};
}

/* ---- it comes ---- */

static void aside_name(int number, char name[ASIDE_NAME_BYTES])
{
    snprintf(name, ASIDE_NAME_BYTES, "temp-full-sync-%d.keys", number);
}

static int open_aside(const struct peer_link *l)
{
    char name[ASIDE_NAME_BYTES];
    aside_name(l->number, name);
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        log_warning("Can't take the data set of active peer %s:%d: %s: %s", l->host, l->port, name,
                    strerror(errno));
    }
    return fd;
}

/* Until it is whole; false: it will not be. */
static bool take_aside(struct peer_link *l, struct full_sync *c)
{
    const char *error = NULL;
    int64_t said_ms = replica_clock_ms();
    while (full_sync_phase(c) == FULL_SYNC_COMING) {
        size_t consumed;
        if (peer_link_is_interrupted(&l->f) || !peer_link_receive(l) || !peer_link_keep(l)) {
            return false;
        }
        (void)full_sync_feed(c, buf_slice(&l->in), &consumed, &error);
        buf_consume(&l->in, consumed);
        figures.keys = full_sync_keys(c);
        if (replica_clock_ms() - said_ms > PROGRESS_MS) {
            said_ms = replica_clock_ms();
            log_notice("The data set of active peer %s:%d comes: %" PRIu64 " keys so far", l->host,
                       l->port, full_sync_keys(c));
        }
    }
    if (full_sync_phase(c) == FULL_SYNC_BROKEN) {
        log_warning("What active peer %s:%d sends is wrong: %s", l->host, l->port, error);
        return false;
    }
    return true;
}

/* ---- it is merged ---- */

/* The disk does not give back what it took: there is no way on, and none back. */
static void NORETURN lose(const char *error)
{
    log_warning("%s: what is in memory is half merged with it, so the server ends; its files are "
                "as they were before",
                error);
    _exit(EXIT_FAILURE);
}

static void read_on(struct full_sync *c)
{
    const char *error = NULL;
    if (!full_sync_read(c, &error)) {
        lose(error);
    }
}

/* KEYDB.MERGING file done: what the log says so far has so many of its records. */
static void log_merging(uint64_t done) REQUIRES(keyspace_lock);
static void log_merging(uint64_t done)
{
    char number[NUM_I64_MAX_CHARS];
    const struct slice words[] = {SLICE("KEYDB.MERGING"), slice_cstr(merging_name),
                                  slice_of(number, num_format_u64(number, done))};
    log_head_write(node_head(active_node()), 3, words);
}

/* Some more; with the last key it is over. */
static void step(struct full_sync *c, uint64_t budget_us) REQUIRES(keyspace_lock);
static void step(struct full_sync *c, uint64_t budget_us)
{
    full_sync_step(c, active_node(), replica_clock_ms(), budget_us);
    figures.merged = full_sync_keys_merged(c);
    if (full_sync_is_merging(c)) {
        log_merging(full_sync_done(c));
    }
    keyspace_has_work = true;
    if (!full_sync_is_merging(c)) {
        merging = NULL;
        figures.merges = false;
        snapshot_set_unfinished(NULL);
    }
}

/* For who cannot wait (engine/snapshot.h); the link's thread stands between two steps. */
static void finish(void) NO_THREAD_SAFETY_ANALYSIS
{
    gil_assert_world();
    bool taken = !keyspace_is_exclusive();
    while (merging) {
        struct full_sync *c = merging;
        read_on(c);
        if (taken) {
            keyspace_lock_exclusive();
        }
        step(c, WORLD_HOLD_US);
        if (taken) {
            keyspace_unlock_exclusive();
        }
    }
}

/* From now on it is merged. */
static void enter(struct full_sync *c, int number) REQUIRES(keyspace_lock);
static void enter(struct full_sync *c, int number)
{
    merging = c;
    aside_name(number, merging_name);
    figures.merges = true;
    figures.merged = 0;
    snapshot_set_unfinished(finish);
    log_merging(full_sync_done(c));
}

enum begun { BEGUN, BEGUN_LATER, BEGUN_NEEDLESS, BEGUN_NEVER };

static enum begun begin(struct peer_link *l, struct full_sync *c) REQUIRES(keyspace_lock);
static enum begun begin(struct peer_link *l, struct full_sync *c)
{
    const char *error = NULL;
    if (merging) {
        return BEGUN_LATER;
    }
    if (full_sync_is_known(c, active_node())) {
        return BEGUN_NEEDLESS;
    }
    if (full_sync_begin(c, active_node(), &error)) {
        enter(c, l->number);
        return BEGUN;
    }
    log_warning("The data set of active peer %s:%d is not merged: %s", l->host, l->port, error);
    return BEGUN_NEVER;
}

/* Waits for its turn. */
static enum begun begin_in_turn(struct peer_link *l, struct full_sync *c)
{
    for (;;) {
        if (!peer_link_begin_hold(l)) {
            return BEGUN_NEVER;
        }
        enum begun begun = begin(l, c);
        peer_link_end_hold();
        if (begun != BEGUN_LATER) {
            return begun;
        }
        l->heard_ms = replica_clock_ms(); /* it is we who do not listen */
        peer_link_wait(l, -1, LOOK_MS);
        if (!peer_link_keep(l)) {
            return BEGUN_NEVER;
        }
    }
}

/* Until all is merged, be the link wanted or not; false: the server ends first. */
static bool merge_all(struct peer_link *l, struct full_sync *c) NO_THREAD_SAFETY_ANALYSIS
{
    bool linked = true;
    while (full_sync_is_merging(c)) {
        if (peer_links_are_ending()) {
            return false;
        }
        gil_wake();
        if (full_sync_is_merging(c)) { /* the world may have finished it */
            read_on(c);
            keyspace_lock_exclusive();
            step(c, HOLD_US);
            keyspace_unlock_exclusive();
        }
        gil_sleep();
        reclaim_run();
        l->heard_ms = replica_clock_ms();
        linked = linked && peer_link_keep(l);
    }
    return linked;
}

/* Once the log says that it is merged the file has to be there after a crash. */
static bool make_durable(const struct peer_link *l)
{
    char name[ASIDE_NAME_BYTES];
    aside_name(l->number, name);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    int error = fd < 0 || fdatasync(fd) < 0 ? errno : file_sync_directory(".");
    if (fd >= 0) {
        close(fd);
    }
    if (error) {
        log_warning("Can't keep the data set of active peer %s:%d: %s: %s", l->host, l->port, name,
                    strerror(error));
    }
    return !error;
}

static bool merge(struct peer_link *l, struct full_sync *c)
{
    int64_t begun_ms = replica_clock_ms();
    if (!make_durable(l)) {
        return false;
    }
    enum begun begun = begin_in_turn(l, c);
    if (begun != BEGUN) {
        return begun == BEGUN_NEEDLESS;
    }
    log_notice("Merging the data set of active peer %s:%d: %" PRIu64 " keys", l->host, l->port,
               full_sync_keys(c));
    bool linked = merge_all(l, c);
    if (!full_sync_is_merging(c)) {
        log_notice("The data set of active peer %s:%d is merged, in %" PRId64
                   " ms; keys that could "
                   "not be taken: %" PRIu64,
                   l->host, l->port, replica_clock_ms() - begun_ms, full_sync_keys_refused(c));
    }
    return linked;
}

/* Its file is needed no more; while the log on the disk may say otherwise it stays. */
static void drop_aside(int number, const struct full_sync *c)
{
    char name[ASIDE_NAME_BYTES];
    aside_name(number, name);
    if (full_sync_phase(c) < FULL_SYNC_THEIRS || !dots_wanted ||
        (full_sync_phase(c) == FULL_SYNC_MERGED && aof_sync())) {
        unlink(name);
    }
}

bool peer_link_sync(struct peer_link *l)
{
    int fd = open_aside(l);
    if (fd < 0) {
        return false;
    }
    struct full_sync *c = full_sync_create(fd);
    log_notice("Active peer %s:%d sends all that it has", l->host, l->port);
    figures.coming++;
    bool whole = take_aside(l, c);
    figures.coming--;
    bool fine = whole && merge(l, c);
    drop_aside(l->number, c);
    full_sync_destroy(&c);
    return fine;
}

/* ---- in the life before ---- */

static void drop_all_but(struct slice kept)
{
    for (int i = 0; i < PEER_LINKS_MAX; i++) {
        char name[ASIDE_NAME_BYTES];
        aside_name(i, name);
        if (!slice_equal(kept, slice_cstr(name))) {
            unlink(name);
        }
    }
}

static bool merge_again(struct full_sync *c, uint64_t done, int number, const char **error)
{
    if (!full_sync_reopen(c, done, error)) {
        return false;
    }
    keyspace_lock_exclusive();
    bool fine = full_sync_begin(c, active_node(), error);
    if (fine) {
        enter(c, number);
    }
    keyspace_unlock_exclusive();
    if (fine) {
        finish();
    }
    return fine;
}

bool peer_links_resume(struct slice file, uint64_t done)
{
    char name[ASIDE_NAME_BYTES] = "";
    const char *error = "no such name";
    int number = 0;
    drop_all_but(file);
    if (file.len == 0) {
        return true;
    }
    for (int i = 0; i < PEER_LINKS_MAX && !slice_equal(file, slice_cstr(name)); i++) {
        aside_name(i, name);
        number = i;
    }
    int fd = open(name, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        error = strerror(errno);
    }
    struct full_sync *c = fd < 0 ? NULL : full_sync_create(fd);
    log_notice("A peer's data set was being merged: going on with %s", name);
    bool fine = c && merge_again(c, done, number, &error);
    if (fine) {
        log_notice("It is merged");
        drop_aside(number, c);
    } else {
        log_warning("The append-only file says that a peer's data set was being merged from %.*s, "
                    "which cannot be gone on with: %s. The file belongs to the log: put it back.",
                    (int)file.len, file.ptr, error);
    }
    full_sync_destroy(&c);
    return fine;
}
