/* See full_sync_source.h. */
#include "active/full_sync_source.h"

#include "active/full_sync_send.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/fork_child.h"
#include "persist/child_report.h"
#include "persist/rdb_module.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct full_sync_source {
    uint32_t references; /* behind current.lock */
    int fd, pid;         /* pid: likewise, 0 when the child has ended */
    uint64_t bytes;
    uint64_t begun_ms;
    _Atomic enum full_sync_source_state state;
    struct version_vector *positions;
};

/* The one that there is, which counts as no holder. */
static struct {
    struct lock lock;
    struct full_sync_source *source;
} current = {.lock = LOCK_INIT(LOCK_RANK_REPLICAS, "full sync")};

/* ---- its beginning ---- */

static int open_file(void)
{
    static const char name[] = "temp-full-sync.keys";
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd >= 0) {
        unlink(name);
    }
    return fd;
}

/* What the forked process does: see fork_child.h. */
static void NORETURN run_child(const struct full_sync_moment *moment, int fd)
    REQUIRES_SHARED(keyspace_lock);
static void NORETURN run_child(const struct full_sync_moment *moment, int fd)
{
    errno = EIO;
    bool told = full_sync_tell(moment, full_sync_write_fd, &fd);
    child_report_exit(told ? 0 : errno);
}

static struct full_sync_source *create(struct node *n, const char **error) REQUIRES(keyspace_lock);
static struct full_sync_source *create(struct node *n, const char **error)
{
    *error = rdb_module_untold_data();
    if (*error) {
        return NULL;
    }
    struct full_sync_moment moment = full_sync_now(n);
    int fd = open_file();
    if (fd < 0) {
        *error = strerror(errno);
        return NULL;
    }
    int pid = child_report_fork(CHILD_FULL_SYNC, fd);
    if (pid == 0) {
        run_child(&moment, fd);
    }
    if (pid < 0) {
        *error = strerror(errno);
        close(fd);
        return NULL;
    }
    struct full_sync_source *s = mem_calloc(1, sizeof(*s));
    s->fd = fd;
    s->pid = pid;
    s->begun_ms = clock_mono_us() / 1000;
    s->positions = version_vector_create(node_origins(n));
    log_notice("Writing the data set for active peers, child %d", pid);
    return s;
}

struct full_sync_source *full_sync_source_join(struct node *n,
                                               bool (*will_do)(const struct version_vector *moment,
                                                               void *context),
                                               void *context, const char **error)
{
    lock_acquire(&current.lock);
    struct full_sync_source *s = current.source;
    bool does = s && s->state != FULL_SYNC_SOURCE_FAILED && will_do(s->positions, context);
    bool writes = s && s->pid != 0;
    if (does) {
        s->references++;
    }
    lock_release(&current.lock);
    if (does) {
        return s;
    }
    if (writes) {
        *error = "another data set is being written";
        return NULL;
    }
    if (node_is_merging(n)) {
        *error = "a data set is being merged here";
        return NULL;
    }
    s = create(n, error);
    if (!s) {
        log_warning("Can't write the data set for active peers: %s", *error);
        return NULL;
    }
    lock_acquire(&current.lock);
    s->references = 1;
    current.source = s;
    lock_release(&current.lock);
    return s;
}

/* ---- its end ---- */

static void destroy(struct full_sync_source *s)
{
    fork_child_kill(&s->pid);
    close(s->fd);
    mem_free(s->positions);
    mem_free(s);
}

void full_sync_source_release(struct full_sync_source **source)
{
    struct full_sync_source *s = *source;
    *source = NULL;
    if (!s) {
        return;
    }
    lock_acquire(&current.lock);
    bool last = --s->references == 0;
    if (last && current.source == s) {
        current.source = NULL;
    }
    lock_release(&current.lock);
    if (last) {
        destroy(s);
    }
}

void full_sync_sources_forget(void)
{
    lock_acquire(&current.lock);
    current.source = NULL;
    lock_release(&current.lock);
}

static void note_end(struct full_sync_source *s, struct child_end end)
{
    struct stat about;
    bool good = end.error == 0 && fstat(s->fd, &about) == 0;
    if (good) {
        s->bytes = (uint64_t)about.st_size;
    }
    atomic_store_explicit(&s->state, good ? FULL_SYNC_SOURCE_READY : FULL_SYNC_SOURCE_FAILED,
                          memory_order_release);
    if (good) {
        log_notice("The data set for active peers is written: %" PRIu64 " bytes in %" PRIu64 " ms",
                   s->bytes, clock_mono_us() / 1000 - s->begun_ms);
    } else {
        log_warning("The child that writes the data set for active peers failed: %s",
                    fork_child_why(end));
    }
}

bool full_sync_sources_look(void)
{
    struct child_end end = {0, 0};
    lock_acquire(&current.lock);
    struct full_sync_source *s = current.source;
    bool ended = s && fork_child_has_ended(&s->pid, &end);
    if (ended) {
        s->references++;
    }
    lock_release(&current.lock);
    if (ended) {
        note_end(s, end);
        full_sync_source_release(&s);
    }
    return ended;
}

/* ---- what readers see ---- */

const struct version_vector *full_sync_source_positions(const struct full_sync_source *s)
{
    return s->positions;
}

enum full_sync_source_state full_sync_source_state(const struct full_sync_source *s)
{
    return atomic_load_explicit(&s->state, memory_order_acquire);
}

uint64_t full_sync_source_bytes(const struct full_sync_source *s)
{
    return s->bytes;
}

ssize_t full_sync_source_read(const struct full_sync_source *s, char *to, size_t len, uint64_t at)
{
    return pread(s->fd, to, len, (off_t)at);
}
