/* See peer_links_priv.h: a whole data set that comes by a link, and is merged
 * (full_sync_receive.h).
 *
 * Several links may bring one at a time; they are merged one after the other, and one whose writes
 * are all here by then, since another one had them, is not merged at all. */
#include "active/active.h"
#include "active/aside_file.h"
#include "active/full_sync_receive.h"
#include "active/peer_links_priv.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "engine/gate.h"
#include "engine/snapshot.h"
#include "keyspace/reclaim.h"
#include "persist/aof.h"
#include "persist/dots.h"
#include "repl/replica.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Keys are merged for so long in one hold. */
#define HOLD_US 2000
/* The same where nobody else can run. */
#define WORLD_HOLD_US 100000
/* Between two words in the log about how far it is. */
#define PROGRESS_MS 5000

/* A data set and the file that it stands in. */
struct aside {
    struct full_sync *set; /* NULL: none */
    char name[ASIDE_NAME_BYTES];
};

/* The one that is merged; keyspace. It stays its link's, which merges it in holds of its own, being
 * awake for each (the GIL in shared mode); so the world may merge all the rest between any two. Is
 * the process about to end before, it is left here. */
static struct aside merging;
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

static bool open_aside(struct peer_link *l, struct aside *a)
{
    if (!peer_link_begin_hold(l)) {
        return false;
    }
    uint64_t epoch = node_epoch(active_node());
    peer_link_end_hold();
    int fd = aside_file_create(epoch, a->name);
    if (fd < 0) {
        log_warning("Can't take the data set of active peer %s:%d: %s: %s", l->host, l->port,
                    a->name, strerror(errno));
        return false;
    }
    a->set = full_sync_create(fd);
    full_sync_note_had(a->set, l->had);
    l->had = NULL;
    return true;
}

/* It is tried again later, as after a fault of the peer's: each try has it write everything. */
static void say_broken(struct peer_link *l, const struct full_sync *c, const char *error)
{
    int disk_error = full_sync_disk_error(c);
    if (disk_error) {
        log_warning("Can't take the data set of active peer %s:%d: %s", l->host, l->port,
                    strerror(disk_error));
    } else {
        log_warning("What active peer %s:%d sends is wrong: %s", l->host, l->port, error);
    }
    l->wrong = true;
}

/* Until it is whole; false: it will not be. */
static bool take_aside(struct peer_link *l, struct full_sync *c)
{
    const char *error = NULL;
    int64_t said_ms = replica_clock_ms();
    bool here = l->in.len > 0; /* some of it came with the frames */
    full_sync_feeds_asleep(c);
    while (full_sync_phase(c) == FULL_SYNC_COMING) {
        size_t consumed;
        if (peer_link_is_interrupted(&l->f) || (!here && !peer_link_receive(l)) ||
            !peer_link_keep(l)) {
            return false;
        }
        here = false;
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
        say_broken(l, c, error);
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

/* KEYDB.MERGING file done [positions]: what the log says so far has so many of its records. `had`:
 * in the first one of them; NULL: none. */
static void log_merging(uint64_t done, const struct version_vector *had) REQUIRES(keyspace_lock);
static void log_merging(uint64_t done, const struct version_vector *had)
{
    char number[NUM_I64_MAX_CHARS];
    struct node *node = active_node();
    struct buf positions = {0};
    if (had) {
        version_vector_encode(node_origins(node), had, &positions);
    }
    const struct slice words[] = {SLICE("KEYDB.MERGING"), slice_cstr(merging.name),
                                  slice_of(number, num_format_u64(number, done)),
                                  buf_slice(&positions)};
    log_head_write(node_head(node), had ? 4 : 3, words);
    buf_deinit(&positions);
}

/* allow-write-during-load no: clients' writes are refused meanwhile. */
static void set_merging(bool merges)
{
    figures.merges = merges;
    peer_links_judge_writes();
}

void peer_links_judge_writes(void)
{
    gate_set(GATE_MERGING, figures.merges && !active_settings.write_during_load);
}

/* Some more; with the last key it is over. */
static void step(struct full_sync *c, uint64_t budget_us) REQUIRES(keyspace_lock);
static void step(struct full_sync *c, uint64_t budget_us)
{
    full_sync_step(c, active_node(), replica_clock_ms(), budget_us);
    figures.merged = full_sync_keys_merged(c);
    if (full_sync_is_merging(c)) {
        log_merging(full_sync_done(c), NULL);
    }
    keyspace_has_work = true;
    if (!full_sync_is_merging(c)) {
        merging.set = NULL;
        set_merging(false);
        snapshot_set_unfinished(NULL);
    }
}

/* For who cannot wait (engine/snapshot.h); the link's thread stands between two steps. */
static void finish(void) NO_THREAD_SAFETY_ANALYSIS
{
    gil_assert_world();
    bool taken = !keyspace_is_exclusive();
    while (merging.set) {
        struct full_sync *c = merging.set;
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
static void enter(const struct aside *a) REQUIRES(keyspace_lock);
static void enter(const struct aside *a)
{
    merging = *a;
    set_merging(true);
    figures.merged = 0;
    snapshot_set_unfinished(finish);
    log_merging(full_sync_done(a->set), full_sync_had(a->set));
}

enum begun { BEGUN, BEGUN_LATER, BEGUN_NEEDLESS, BEGUN_NEVER };

static enum begun begin(struct peer_link *l, const struct aside *a) REQUIRES(keyspace_lock);
static enum begun begin(struct peer_link *l, const struct aside *a)
{
    const char *error = NULL;
    if (merging.set) {
        return BEGUN_LATER;
    }
    if (full_sync_is_known(a->set, active_node())) {
        return BEGUN_NEEDLESS;
    }
    if (full_sync_begin(a->set, active_node(), &error)) {
        enter(a);
        peer_link_prefer(l); /* it has named origins that are new here */
        return BEGUN;
    }
    log_warning("The data set of active peer %s:%d is not merged: %s", l->host, l->port, error);
    return BEGUN_NEVER;
}

/* Waits for its turn. */
static enum begun begin_in_turn(struct peer_link *l, const struct aside *a)
{
    for (;;) {
        if (!peer_link_begin_hold(l)) {
            return BEGUN_NEVER;
        }
        enum begun begun = begin(l, a);
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

/* One hold's worth; false: all of it is merged, and nobody but its link touches it any more. Only
 * who is awake may look at it: the world may be merging the rest else. */
static bool merge_some(struct full_sync *c) EXCLUDES(keyspace_lock);
static bool merge_some(struct full_sync *c)
{
    gil_wake();
    bool more = full_sync_is_merging(c);
    if (more) {
        read_on(c);
        keyspace_lock_exclusive();
        step(c, HOLD_US);
        keyspace_unlock_exclusive();
        more = full_sync_is_merging(c);
    }
    gil_sleep();
    reclaim_run();
    return more;
}

/* Until all is merged, be the link wanted or not; false: the process ends first. */
static bool merge_all(struct peer_link *l, struct full_sync *c, bool *linked)
{
    *linked = true;
    while (merge_some(c)) {
        if (peer_links_are_ending()) {
            return false;
        }
        l->heard_ms = replica_clock_ms();
        *linked = *linked && peer_link_keep(l);
    }
    return true;
}

/* Once the log says that it is merged the file has to be there after a crash. */
static bool make_durable(const struct peer_link *l, const struct aside *a)
{
    int error = aside_file_sync(a->name);
    if (error) {
        log_warning("Can't keep the data set of active peer %s:%d: %s: %s", l->host, l->port,
                    a->name, strerror(error));
    }
    return !error;
}

static bool is_logged(void)
{
    keyspace_lock_shared();
    bool logged = dots_wanted;
    keyspace_unlock_shared();
    return logged;
}

/* Whoever wants it merged before the process has ended (SAVE) still can; else a log has the next
 * start go on with it. */
static void leave_to_others(struct aside *a)
{
    if (!is_logged()) {
        aside_file_remove(a->name);
    }
    a->set = NULL;
}

/* False: the link is to be closed. */
static bool merge(struct peer_link *l, struct aside *a)
{
    int64_t begun_ms = replica_clock_ms();
    bool linked;
    if (!make_durable(l, a)) {
        return false;
    }
    enum begun begun = begin_in_turn(l, a);
    if (begun != BEGUN) {
        return begun == BEGUN_NEEDLESS;
    }
    log_notice("Merging the data set of active peer %s:%d: %" PRIu64 " keys", l->host, l->port,
               full_sync_keys(a->set));
    if (!merge_all(l, a->set, &linked)) {
        leave_to_others(a);
        return false;
    }
    log_notice("The data set of active peer %s:%d is merged, in %" PRId64 " ms; keys that could "
               "not be taken: %" PRIu64,
               l->host, l->port, replica_clock_ms() - begun_ms, full_sync_keys_refused(a->set));
    return linked;
}

/* Its file is needed no more; while the log on the disk may say otherwise it stays, for the next
 * start at the longest. */
static void close_aside(struct aside *a)
{
    if (a->set) {
        enum full_sync_phase phase = full_sync_phase(a->set);
        if (phase < FULL_SYNC_THEIRS || !is_logged() || (phase == FULL_SYNC_MERGED && aof_sync())) {
            aside_file_remove(a->name);
        }
        full_sync_destroy(&a->set);
    }
}

bool peer_link_sync(struct peer_link *l)
{
    struct aside a;
    if (!open_aside(l, &a)) {
        return false;
    }
    log_notice("Active peer %s:%d sends all that it has", l->host, l->port);
    figures.coming++;
    bool whole = take_aside(l, a.set);
    figures.coming--;
    bool fine = whole && merge(l, &a);
    close_aside(&a);
    return fine;
}

void peer_links_teardown(void)
{
    full_sync_destroy(&merging.set);
}

/* ---- in the life before ---- */

static bool merge_again(const struct aside *a, uint64_t done, const char **error)
{
    if (!full_sync_reopen(a->set, done, error)) {
        return false;
    }
    keyspace_lock_exclusive();
    bool fine = full_sync_begin(a->set, active_node(), error);
    if (fine) {
        enter(a);
    }
    keyspace_unlock_exclusive();
    if (fine) {
        finish();
    }
    return fine;
}

bool peer_links_resume(struct slice file, uint64_t done, struct version_vector *had_take)
{
    struct aside a = {0};
    const char *error = NULL;
    aside_file_remove_others(file);
    if (file.len == 0) {
        mem_free(had_take);
        return true;
    }
    log_notice("A peer's data set was being merged: going on with %.*s", (int)file.len, file.ptr);
    int fd = aside_file_open(file, a.name);
    error = fd < 0 ? strerror(errno) : NULL;
    a.set = fd < 0 ? NULL : full_sync_create(fd);
    if (a.set) {
        full_sync_note_had(a.set, had_take);
    } else {
        mem_free(had_take);
    }
    bool fine = a.set && merge_again(&a, done, &error);
    if (fine) {
        log_notice("It is merged");
        close_aside(&a);
    } else {
        log_warning("The append-only file says that a peer's data set was being merged from %.*s, "
                    "which cannot be gone on with: %s. The file belongs to the log: put it back.",
                    (int)file.len, file.ptr, error);
    }
    full_sync_destroy(&a.set);
    return fine;
}
