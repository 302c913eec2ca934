/* See transfer.h. */
#include "repl/transfer.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "engine/fork_child.h"
#include "persist/child_report.h"
#include "persist/rdb_file.h"
#include "persist/save.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK_LEN 40
/* Of one step. */
#define STEP_BYTES ((size_t)256 * 1024)

struct transfer {
    _Atomic uint32_t references;
    _Atomic enum transfer_state state;
    struct chain chain;
    char mark[MARK_LEN]; /* by_pipe */
    bool by_pipe;
    int pid;            /* the child, 0 when it has ended */
    int fd;             /* the pipe, or the whole file; -1 */
    uint64_t file_left; /* of the file */
};

/* ---- the child ---- */

static void file_name(int pid, char name[40])
{
    snprintf(name, 40, "temp-repl-%d.rdb", pid);
}

/* What the forked process does: see engine/fork_child.h. `fd` -1: a file of its own. */
static void NORETURN run_child(int fd, int64_t now_ms, int stream_db, unsigned left_out)
    REQUIRES_SHARED(keyspace_lock);
static void NORETURN run_child(int fd, int64_t now_ms, int stream_db, unsigned left_out)
{
    if (fd < 0) {
        char name[40];
        file_name((int)getpid(), name);
        fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    }
    child_report_exit(fd < 0 ? errno : rdb_file_write(fd, now_ms, stream_db, left_out));
}

static void put_head(struct transfer *t)
{
    char head[64];
    rand_hex(t->mark, MARK_LEN);
    int len = snprintf(head, sizeof(head), "$EOF:%.*s\r\n", MARK_LEN, t->mark);
    chain_append(&t->chain, slice_of(head, (size_t)len));
}

static bool open_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return false;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return true;
}

struct transfer *transfer_start(bool by_pipe, int stream_db, unsigned left_out)
{
    int ends[2] = {-1, -1};
    int64_t now_ms = clock_wall_ms();
    if (by_pipe && !open_pipe(ends)) {
        log_warning("Can't send the data set to replicas: pipe: %s", strerror(errno));
        return NULL;
    }
    save_transfer_begins();
    int pid = child_report_fork(CHILD_TRANSFER, ends[1]);
    if (pid == 0) {
        run_child(ends[1], now_ms, stream_db, left_out);
    }
    if (pid < 0) {
        log_warning("Can't send the data set to replicas: fork: %s", strerror(errno));
        save_transfer_ended();
        if (by_pipe) {
            close(ends[0]);
            close(ends[1]);
        }
        return NULL;
    }
    if (by_pipe) {
        close(ends[1]);
    }
    struct transfer *t = mem_calloc(1, sizeof(*t));
    atomic_init(&t->references, 1);
    t->by_pipe = by_pipe;
    t->pid = pid;
    t->fd = ends[0];
    chain_init(&t->chain, 0);
    log_notice("Sending the data set to replicas by %s, child %d", by_pipe ? "pipe" : "file", pid);
    return t;
}

struct transfer *transfer_join(struct transfer *t, struct chain_reader *reader)
{
    assert(t->chain.end == 0);
    chain_reader_at_end(reader, &t->chain);
    atomic_fetch_add_explicit(&t->references, 1, memory_order_relaxed);
    return t;
}

void transfer_release(struct transfer **transfer)
{
    struct transfer *t = *transfer;
    *transfer = NULL;
    if (atomic_fetch_sub_explicit(&t->references, 1, memory_order_acq_rel) == 1) {
        assert(t->pid == 0 && t->fd < 0 && !t->chain.last);
        mem_free(t);
    }
}

enum transfer_state transfer_state(const struct transfer *t)
{
    return atomic_load_explicit(&t->state, memory_order_acquire);
}

bool transfer_has_mark(const struct transfer *t)
{
    return t->by_pipe;
}

int transfer_poll_fd(const struct transfer *t)
{
    return t->fd;
}

uint64_t transfer_bytes(const struct transfer *t)
{
    return t->chain.end;
}

/* ---- moving bytes ---- */

/* The child has ended; logs what was wrong. */
static bool note_child(struct child_end how)
{
    save_transfer_ended();
    if (how.error) {
        log_warning("The child that sends the data set failed: %s", fork_child_why(how));
    }
    return how.error == 0;
}

static void end(struct transfer *t, enum transfer_state state)
{
    if (t->fd >= 0) {
        close(t->fd);
        t->fd = -1;
    }
    chain_deinit(&t->chain);
    /* Release: who sees the state sees all bytes. */
    atomic_store_explicit(&t->state, state, memory_order_release);
    if (state == TRANSFER_COMPLETE) {
        log_notice("The data set for replicas is written: %" PRIu64 " bytes", t->chain.end);
    }
}

/* The file is whole if the child has ended well. */
static void look_at_child(struct transfer *t)
{
    char name[40], head[40];
    struct child_end how;
    struct stat about;
    file_name(t->pid, name);
    if (!fork_child_has_ended(&t->pid, &how)) {
        return;
    }
    t->fd = note_child(how) ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    unlink(name);
    if (t->fd < 0 || fstat(t->fd, &about) < 0) {
        end(t, TRANSFER_FAILED);
        return;
    }
    t->file_left = (uint64_t)about.st_size;
    int len = snprintf(head, sizeof(head), "$%" PRIu64 "\r\n", t->file_left);
    chain_append(&t->chain, slice_of(head, (size_t)len));
}

/* The child writes no more. */
static void end_pipe(struct transfer *t)
{
    if (note_child(fork_child_wait(&t->pid))) {
        chain_append(&t->chain, slice_of(t->mark, MARK_LEN));
        end(t, TRANSFER_COMPLETE);
    } else {
        end(t, TRANSFER_FAILED);
    }
}

void transfer_step(struct transfer *t)
{
    static char buffer[STEP_BYTES]; /* the sync thread's */
    if (!t->by_pipe && t->pid) {
        look_at_child(t);
        return;
    }
    if (t->by_pipe && t->chain.end == 0) {
        put_head(t);
    }
    ssize_t got = read(t->fd, buffer, sizeof(buffer));
    if (got > 0) {
        chain_append(&t->chain, slice_of(buffer, (size_t)got));
        t->file_left -= t->by_pipe ? 0 : (uint64_t)got;
    } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    } else if (t->by_pipe && got == 0) {
        end_pipe(t);
        return;
    } else if (t->by_pipe || t->file_left > 0) {
        end(t, TRANSFER_FAILED);
        return;
    }
    if (!t->by_pipe && t->file_left == 0) {
        end(t, TRANSFER_COMPLETE);
    }
}

void transfer_abandon(struct transfer *t)
{
    char name[40];
    if (t->pid) {
        file_name(t->pid, name);
        fork_child_kill(&t->pid);
        unlink(name);
        save_transfer_ended();
    }
    if (transfer_state(t) == TRANSFER_RUNNING) {
        end(t, TRANSFER_FAILED);
    }
}
