/* See jobs.h. */
#include "script/jobs.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stats.h"
#include "base/thread.h"
#include "engine/acl.h"
#include "engine/busy.h"
#include "engine/cron.h"
#include "engine/execute.h"
#include "engine/gate.h"
#include "engine/propagate.h"
#include "engine/tracking.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "keyspace/schedule.h"

#include <stdio.h>
#include <string.h>

#define ARENA_BYTES ((size_t)16 * 1024)
/* Between two looks at what keeps jobs from running. */
#define HELD_UP_MS 100
/* The same failure of a job is not logged more often. */
#define LOG_PERIOD_MS 60000
/* So many failures are known to be logged already; two may share a place. */
#define LOGGED_MAX 251
#define SHOWN_BYTES 128

static struct {
    pthread_t thread;
    bool started;
    _Atomic bool stop;
    bool followed; /* another server ran the jobs when we looked last */
    struct arena arena;
    struct reply reply;
    /* Failures logged lately: whose and what, as one hash, and when. */
    struct {
        uint64_t hash;
        int64_t at_ms;
    } logged[LOGGED_MAX];
} runner;

/* ---- failures ---- */

static int shown(struct slice text)
{
    return text.len < SHOWN_BYTES ? (int)text.len : SHOWN_BYTES;
}

static void log_failure(struct slice key, struct slice why, int64_t now_ms)
{
    uint64_t hash = hash_slice(key) * 31 + hash_slice(why);
    size_t at = hash % LOGGED_MAX;
    if (hash == runner.logged[at].hash && now_ms - runner.logged[at].at_ms < LOG_PERIOD_MS) {
        return;
    }
    runner.logged[at].hash = hash;
    runner.logged[at].at_ms = now_ms;
    log_warning("The job '%.*s' failed: %.*s", shown(key), key.ptr, shown(why), why.ptr);
}

/* ---- one job ---- */

/* EVAL script numkeys key... arg..., in memory of the arena: the job may go while it runs. */
static void make_request(struct call *c, const struct job_terms *t)
{
    uint32_t count = t->word_count + 3;
    struct slice *argv = arena_alloc(&runner.arena, count * sizeof(*argv));
    char *number = arena_alloc(&runner.arena, PROPAGATE_NUMBER_BYTES);
    argv[0] = SLICE("EVAL");
    argv[1] = t->script;
    argv[2] = propagate_number(t->key_count, number);
    memcpy(argv + 3, t->words, t->word_count * sizeof(*argv));
    for (uint32_t i = 1; i < count; i++) {
        char *copy = arena_alloc(&runner.arena, argv[i].len + 1);
        if (argv[i].len > 0) {
            memcpy(copy, argv[i].ptr, argv[i].len);
        }
        argv[i].ptr = copy;
    }
    c->argc = (int)count;
    c->argv = argv;
}

/* Makes the session one of the job's user; false when it is not to run. */
static bool become_user(struct session *s, const struct scheduled *job)
{
    const struct acl_user *user = acl_user_find(job->job->terms.user);
    s->db_index = job->db->id;
    if (!user || !user->enabled) {
        return false;
    }
    s->acl = user;
    s->user = user->name;
    s->authenticated = true;
    return true;
}

/* The key of a job that runs once. */
static void remove_key(struct db *db, struct slice name, int64_t now_ms) REQUIRES(keyspace_lock)
{
    struct keyref ref;
    struct key key = key_of(name);
    db_open(&ref, db, &key, now_ms, 0);
    if (db_delete(&ref, false)) {
        stats_add(STAT_DIRTY, 1);
        propagate_delete(db, name, false);
        event_key_changed(db, name);
        event_notify(EVENT_GENERIC, "del", db->id, name);
    }
}

static void run_call(struct call *c, struct slice key) REQUIRES(keyspace_lock)
{
    call_prepare(c, &runner.arena);
    c->held = ACCESS_EXCLUSIVE;
    reply_begin(&runner.reply, 2);
    uint64_t begin = clock_ticks();
    call_run(c);
    uint64_t ticks = clock_ticks() - begin;
    c->duration_ticks = ticks ? ticks : 1;
    if (c->refusal.ptr || c->failed) {
        log_failure(key, c->refusal.ptr ? c->refusal : runner.reply.last_error, c->now_ms);
    }
    reply_end(&runner.reply);
    call_account(c, 1, 0, c->now_ms * 1000);
}

static void run_job(struct session *s, const struct scheduled *job, int64_t now_ms)
    REQUIRES(keyspace_lock)
{
    struct call c = {.session = s, .reply = &runner.reply, .now_ms = now_ms};
    struct db *db = job->db;
    char *name = arena_alloc(&runner.arena, job->key_len + 1);
    memcpy(name, job->key, job->key_len);
    struct slice key = slice_of(name, job->key_len);
    bool allowed = become_user(s, job);
    make_request(&c, &job->job->terms);
    propagate_begin_unit();
    if (job->job->terms.single) {
        remove_key(db, key, now_ms);
    } else {
        schedule_advance(now_ms);
    }
    if (allowed) {
        run_call(&c, key);
    } else {
        log_failure(key, SLICE("the user who made it is not there, or off"), now_ms);
    }
    if (!busy_is_at_end()) {
        propagate_end_unit();
    }
}

/* ---- the thread ---- */

/* Whether jobs may not run now. */
static bool is_held_up(void)
{
    static const struct session anybody = {.internal = false};
    runner.followed |= expire_is_elsewhere();
    return expire_is_elsewhere() || cron_is_paused() || gate_is_loading() ||
           expire_is_suspended() || gate_write_refusal(&anybody) != NULL;
}

/* Runs the first job if it is due. */
static void run_due(struct session *s, int64_t now_ms) REQUIRES(keyspace_lock)
{
    if (runner.followed) {
        /* The times that have passed were another server's. */
        runner.followed = false;
        schedule_skip(now_ms);
    }
    const struct scheduled *job = schedule_first();
    if (job && job->due_ms <= now_ms && !schedule_is_ours(job)) {
        schedule_leave(now_ms);
    } else if (job && job->due_ms <= now_ms) {
        tracking_writer = 0;
        run_job(s, job, now_ms);
    }
    if (expire_has_notes()) {
        expire_run_notes(now_ms);
    }
}

/* Has the first job run if it is due. False when something holds it up. */
static bool run_first(void)
{
    struct session session;
    bool runs = !is_held_up();
    session_init(&session, session_next_id());
    snprintf(session.peer, sizeof(session.peer), "cron");
    if (runs && keyspace_try_exclusive()) {
        run_due(&session, keyspace_time_ms(clock_wall_ms()));
        keyspace_unlock_exclusive();
        reclaim_run();
    } else {
        runs = false; /* a script takes long */
    }
    session_deinit(&session);
    reply_reset(&runner.reply);
    arena_reset(&runner.arena);
    return runs;
}

static void *run(void *argument)
{
    bool held_up = false;
    (void)argument;
    thread_enter("jobs");
    arena_init(&runner.arena, ARENA_BYTES);
    reply_init(&runner.reply);
    while (!runner.stop) {
        if (schedule_sleep(held_up ? HELD_UP_MS : 0) && !runner.stop) {
            gil_wake();
            held_up = !run_first();
            gil_sleep();
        }
    }
    reply_deinit(&runner.reply);
    arena_deinit(&runner.arena);
    thread_leave();
    return NULL;
}

void jobs_start(void)
{
    int error = thread_start(&runner.thread, run, NULL);
    runner.started = error == 0;
    if (error) {
        log_warning("Can't start the thread that runs jobs: %s", strerror(error));
    }
}

void jobs_stop(void)
{
    if (runner.started) {
        runner.stop = true;
        schedule_wake();
        pthread_join(runner.thread, NULL);
        runner.started = false;
    }
}
