/* See child_report.h. */
#include "persist/child_report.h"

#include "base/clock.h"
#include "engine/modules.h"
#include "keyspace/db.h"

#include <assert.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Looking at all mappings of a large process takes milliseconds. */
#define MEASURE_PERIOD_MS 1000
/* /proc/self/smaps_rollup is one kilobyte of text. */
#define ROLLUP_BYTES 4096

struct report {
    _Atomic uint64_t keys_done, keys_total, cow_bytes, cow_peak_bytes;
    _Atomic int64_t cow_measured_ms;
};

static struct {
    struct report *page; /* one a kind; NULL: the system had none to give; nothing is told then */
    struct report *own;  /* in a child: its kind's */
    bool tells;          /* in a child: modules know of it */
} state;

#define PAGE_BYTES (CHILD_KINDS * sizeof(struct report))

void child_report_setup(void)
{
    assert(!state.page);
    void *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    state.page = page == MAP_FAILED ? NULL : page;
}

void child_report_teardown(void)
{
    if (state.page) {
        munmap(state.page, PAGE_BYTES);
        state.page = NULL;
    }
}

/* Nothing is done yet. */
static void begin(enum child_kind kind, uint64_t total_keys)
{
    if (state.page) {
        struct report *r = &state.page[kind];
        r->keys_done = r->cow_bytes = r->cow_peak_bytes = 0;
        r->cow_measured_ms = 0;
        r->keys_total = total_keys;
    }
}

/* The sum of the lines "Private_Dirty:  N kB"; system calls only. */
static uint64_t private_dirty_bytes(void)
{
    static const char field[] = "Private_Dirty:";
    char text[ROLLUP_BYTES];
    size_t len = 0;
    ssize_t got;
    uint64_t kb = 0;
    int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    while (len < sizeof(text) - 1 && (got = read(fd, text + len, sizeof(text) - 1 - len)) > 0) {
        len += (size_t)got;
    }
    close(fd);
    text[len] = '\0';
    for (const char *p = text; (p = strstr(p, field)) != NULL;) {
        p += sizeof(field) - 1;
        kb += strtoull(p, NULL, 10);
    }
    return kb * 1024;
}

static void measure(struct report *r)
{
    uint64_t bytes = private_dirty_bytes();
    r->cow_bytes = bytes;
    if (bytes > r->cow_peak_bytes) {
        r->cow_peak_bytes = bytes;
    }
    r->cow_measured_ms = clock_wall_ms();
}

int child_report_fork(enum child_kind kind, int keep)
{
    begin(kind, db_all_keys());
    int pid = fork_child(kind, keep);
    if (pid == 0) {
        state.own = state.page ? &state.page[kind] : NULL;
        state.tells = fork_child_runs(kind) && modules_want(MODULES_PERSISTENCE);
    }
    if (pid == 0 && state.tells) {
        modules_tell_news(MODULES_PERSISTENCE, kind == CHILD_AOF_REWRITE ? 1 : 0, NULL);
    }
    return pid;
}

void child_report_keys(uint64_t more)
{
    struct report *r = state.own;
    if (!r) {
        return;
    }
    r->keys_done += more;
    if (clock_wall_ms() - r->cow_measured_ms >= MEASURE_PERIOD_MS) {
        measure(r);
    }
}

void child_report_exit(int error)
{
    if (state.tells) {
        modules_tell_news(MODULES_PERSISTENCE, error ? 4 : 3, NULL);
    }
    if (state.own) {
        measure(state.own);
    }
    fork_child_exit(error);
}

struct child_figures child_report_read(enum child_kind kind)
{
    if (!state.page) {
        return (struct child_figures){0};
    }
    const struct report *r = &state.page[kind];
    return (struct child_figures){.keys_done = r->keys_done,
                                  .keys_total = r->keys_total,
                                  .cow_bytes = r->cow_bytes,
                                  .cow_peak_bytes = r->cow_peak_bytes,
                                  .cow_measured_ms = r->cow_measured_ms};
}
