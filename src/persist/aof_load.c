/* See aof_load.h. */
#include "persist/aof_load.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/stats.h"
#include "engine/execute.h"
#include "engine/propagation_error.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "persist/aof_reader.h"
#include "persist/dots.h"
#include "persist/load.h"
#include "persist/notes.h"
#include "persist/rdb_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Commands that one hold of the lock runs. */
#define HOLD_COMMANDS 64
/* Length of a command's name that an error repeats. */
#define ECHO_MAX 64
#define ARENA_BYTES ((size_t)64 * 1024)

struct replay {
    struct aof_reader r;
    struct aof_load *load;
    struct session session;
    struct arena arena;
    struct reply reply;
    uint64_t done_bytes; /* of files before */
    bool in_unit;        /* a transaction, whose EXEC is there, is being run */
    bool has_head;       /* a head (dots.h) has been read, and its unit comes */
    int held;            /* commands run in this hold, 0: the lock is not held */
};

/* ---- the lock ---- */

static void take_lock(struct replay *p) NO_THREAD_SAFETY_ANALYSIS
{
    if (p->held++ == 0) {
        keyspace_lock_exclusive();
    }
}

/* Lets go of it; false when the loading is to end. */
static bool leave_lock(struct replay *p) NO_THREAD_SAFETY_ANALYSIS
{
    if (p->held > 0) {
        p->held = 0;
        keyspace_unlock_exclusive();
        reclaim_run();
    }
    return load_step(p->done_bytes + p->r.at, true);
}

/* ---- one command ---- */

static enum aof_load_result refuse(struct replay *p, uint64_t at, struct slice why)
{
    struct slice name = p->r.argv[0];
    snprintf(p->load->error, sizeof(p->load->error),
             "the command '%.*s' at offset %" PRIu64 " cannot be run: %.*s",
             name.len < ECHO_MAX ? (int)name.len : ECHO_MAX, name.ptr, at,
             why.len < 160 ? (int)why.len : 160, why.ptr);
    return AOF_LOAD_BAD;
}

static void run_whole(struct call *c)
{
    call_run(c);
    while (c->continuation.step && !call_continue(c)) {
    }
}

/* Commands that need the world, or no lock, are few in a log: SELECT, functions. */
static bool run_beside(struct replay *p, struct call *c) NO_THREAD_SAFETY_ANALYSIS
{
    bool go_on = leave_lock(p);
    if (c->held == ACCESS_WORLD) {
        gil_stop_world();
        run_whole(c);
        gil_resume_world();
    } else {
        run_whole(c);
    }
    return go_on;
}

static enum aof_load_result run_command(struct replay *p, uint64_t at)
{
    struct call c = {.argc = p->r.argc,
                     .argv = p->r.argv,
                     .reply = &p->reply,
                     .session = &p->session,
                     .now_ms = clock_wall_ms()};
    bool go_on = true;
    call_prepare(&c, &p->arena);
    if (c.refusal.ptr) {
        return refuse(p, at, c.refusal);
    }
    c.held = command_access(c.cmd);
    reply_begin(&p->reply, 2);
    if (c.held == ACCESS_EXCLUSIVE || c.held == ACCESS_SHARED) {
        c.held = ACCESS_EXCLUSIVE;
        take_lock(p);
        run_whole(&c);
        if (p->held >= HOLD_COMMANDS) {
            go_on = leave_lock(p);
        }
    } else {
        go_on = run_beside(p, &c);
    }
    reply_end(&p->reply);
    enum aof_load_result result = go_on ? AOF_LOAD_FINE : AOF_LOAD_STOPPED;
    p->load->commands++;
    notes_outdate();
    if (c.failed) {
        p->load->failed++;
        stats_add(STAT_UNEXPECTED_ERRORS, 1);
        propagation_error_note(false, c.argv[0], p->reply.last_error);
        /* In another database all that follows would be wrong. */
        result = call_arg_is(&c, 0, "select") ? refuse(p, at, p->reply.last_error) : result;
    }
    reply_reset(&p->reply);
    arena_reset(&p->arena);
    return result;
}

/* ---- heads of units ---- */

/* The unit is run: what its head said is so. */
static void apply_head(struct replay *p, struct slice key) NO_THREAD_SAFETY_ANALYSIS
{
    take_lock(p);
    dots_apply(p->session.db_index, key);
    p->has_head = false;
}

static enum aof_load_result take_head(struct replay *p, uint64_t at)
{
    bool alone = false;
    const char *error = p->has_head || p->in_unit ? "it stands amid a unit"
                                                  : dots_take_record(p->r.argc, p->r.argv, &alone);
    if (error) {
        return refuse(p, at, slice_cstr(error));
    }
    p->has_head = true;
    if (alone) {
        apply_head(p, SLICE(""));
    }
    return p->held < HOLD_COMMANDS || leave_lock(p) ? AOF_LOAD_FINE : AOF_LOAD_STOPPED;
}

/* ---- transactions ---- */

static bool is_word(const struct replay *p, const char *word)
{
    return p->r.argc == 1 && slice_equal_nocase(p->r.argv[0], word);
}

/* MULTI has been read: looks for its EXEC, then goes back to behind MULTI. What is said of the file
 * is said as of a record. */
static enum aof_record find_exec(struct replay *p)
{
    uint64_t begin = p->r.at;
    enum aof_record record;
    do {
        record = aof_reader_next(&p->r);
        if (record == AOF_COMMAND && is_word(p, "multi")) {
            p->r.error = "MULTI within a transaction";
            p->r.error_at = p->r.at;
            record = AOF_DAMAGED;
        }
    } while (record == AOF_NOTE || (record == AOF_COMMAND && !is_word(p, "exec")));
    p->in_unit = record == AOF_COMMAND;
    aof_reader_seek(&p->r, begin);
    return record == AOF_END ? AOF_TORN : record;
}

/* ---- the file ---- */

static enum aof_load_result judge(struct replay *p, enum aof_record record)
{
    switch (record) {
    case AOF_END:
        return AOF_LOAD_FINE;
    case AOF_TORN:
        snprintf(p->load->error, sizeof(p->load->error),
                 "it ends within a command or transaction; what is whole ends at offset %" PRIu64,
                 p->load->whole);
        return AOF_LOAD_TORN;
    case AOF_DAMAGED:
        snprintf(p->load->error, sizeof(p->load->error), "%s, at offset %" PRIu64, p->r.error,
                 p->r.error_at);
        return AOF_LOAD_BAD;
    default:
        snprintf(p->load->error, sizeof(p->load->error), "cannot read it: %s", strerror(errno));
        return AOF_LOAD_BAD;
    }
}

static void end_unit(struct replay *p, struct slice key)
{
    if (p->has_head) {
        apply_head(p, key);
    }
}

static enum aof_load_result run_record(struct replay *p, uint64_t at)
{
    struct slice key = p->r.argc > 1 ? p->r.argv[1] : SLICE("");
    if (dots_is_record(p->r.argv[0])) {
        return take_head(p, at);
    }
    enum aof_load_result result = run_command(p, at);
    if (result == AOF_LOAD_FINE && !p->in_unit) {
        end_unit(p, key);
    }
    return result;
}

static enum aof_load_result replay_commands(struct replay *p)
{
    for (;;) {
        uint64_t at = p->r.at;
        enum aof_record record = aof_reader_next(&p->r);
        if (record == AOF_COMMAND && is_word(p, "multi") && !p->in_unit) {
            record = find_exec(p);
            if (record == AOF_COMMAND) {
                continue;
            }
        }
        if (record == AOF_COMMAND && p->in_unit && is_word(p, "exec")) {
            p->in_unit = false;
            end_unit(p, SLICE(""));
        } else if (record == AOF_COMMAND) {
            enum aof_load_result result = run_record(p, at);
            if (result != AOF_LOAD_FINE) {
                return result;
            }
        } else if (record == AOF_END && p->has_head) {
            return judge(p, AOF_TORN);
        } else if (record == AOF_NOTE) {
            notes_take_line(p->r.argv[0]);
        } else {
            return judge(p, record);
        }
        if (!p->in_unit && !p->has_head) {
            p->load->whole = p->r.at;
        }
    }
}

/* True when the file begins as an RDB file does. */
static bool is_rdb(int fd)
{
    char head[5];
    return pread(fd, head, sizeof(head), 0) == sizeof(head) && memcmp(head, "REDIS", 5) == 0;
}

/* Loads the RDB part; false with the fault set. */
static bool load_preamble(const char *name, struct aof_load *load, enum aof_load_result *result)
{
    struct rdb_file_loaded loaded;
    if (rdb_file_load_preamble(name, clock_wall_ms(), &loaded) == RDB_FILE_FINE) {
        load->whole = loaded.bytes;
        return true;
    }
    snprintf(load->error, sizeof(load->error), "%s", loaded.error);
    *result = loaded.stopped ? AOF_LOAD_STOPPED : AOF_LOAD_BAD;
    return false;
}

static enum aof_load_result replay_file(int fd, uint64_t done_bytes, struct aof_load *load)
{
    struct replay p = {.load = load, .done_bytes = done_bytes};
    aof_reader_init(&p.r, fd, load->bytes, load->whole);
    session_init_internal(&p.session);
    arena_init(&p.arena, ARENA_BYTES);
    reply_init(&p.reply);
    enum aof_load_result result = replay_commands(&p);
    if (!leave_lock(&p) && result == AOF_LOAD_FINE) {
        result = AOF_LOAD_STOPPED;
    }
    aof_reader_deinit(&p.r);
    reply_deinit(&p.reply);
    arena_deinit(&p.arena);
    session_deinit(&p.session);
    return result;
}

enum aof_load_result aof_load_file(const char *name, uint64_t done_bytes, struct aof_load *load)
{
    struct stat about;
    enum aof_load_result result = AOF_LOAD_FINE;
    *load = (struct aof_load){0};
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        return AOF_LOAD_MISSING;
    }
    if (fd < 0 || fstat(fd, &about) < 0) {
        snprintf(load->error, sizeof(load->error), "cannot open it: %s", strerror(errno));
        result = AOF_LOAD_BAD;
    } else if (about.st_size == 0) {
        result = AOF_LOAD_EMPTY;
    } else {
        load->bytes = (uint64_t)about.st_size;
        expire_frozen = true;
        if (!is_rdb(fd) || load_preamble(name, load, &result)) {
            result = replay_file(fd, done_bytes, load);
        }
        expire_frozen = false;
    }
    if (fd >= 0) {
        close(fd);
    }
    return result;
}
