/* See peer_links_priv.h: a whole data set that comes by a link, and is merged
 * (full_sync_receive.h).
 *
 * Several links may bring one at a time; they are merged one after the other, and one whose writes
 * are all here by then, since another one had them, is not merged at all. */
#include "active/active.h"
#include "active/full_sync_receive.h"
#include "active/peer_links_priv.h"
#include "base/log.h"
#include "engine/snapshot.h"
#include "keyspace/reclaim.h"
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

/* The one that is merged; keyspace. */
static struct full_sync *merging;
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

static int open_aside(const struct peer_link *l)
{
    char name[40];
    snprintf(name, sizeof(name), "temp-full-sync-%d.keys", l->number);
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        log_warning("Can't take the data set of active peer %s:%d: %s: %s", l->host, l->port, name,
                    strerror(errno));
    } else {
        unlink(name);
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

/* Some more; with the last key it is over. */
static void step(struct full_sync *c, uint64_t budget_us) REQUIRES(keyspace_lock);
static void step(struct full_sync *c, uint64_t budget_us)
{
    full_sync_step(c, active_node(), replica_clock_ms(), budget_us);
    figures.merged = full_sync_keys_merged(c);
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
    if (dots_wanted) {
        error = "it cannot be merged while the append-only file is on, in this version";
    } else if (full_sync_begin(c, active_node(), &error)) {
        merging = c;
        figures.merges = true;
        figures.merged = 0;
        snapshot_set_unfinished(finish);
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

static bool merge(struct peer_link *l, struct full_sync *c)
{
    int64_t begun_ms = replica_clock_ms();
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
    full_sync_destroy(&c);
    return fine;
}
