/* See fork_child.h. */
#include "engine/fork_child.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/spike.h"
#include "base/stats.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <unistd.h>

static void (*begin_child)(enum child_kind kind);
static bool is_child;
static _Atomic uint64_t latest_us;

uint64_t fork_child_latest_us(void)
{
    return atomic_load_explicit(&latest_us, memory_order_relaxed);
}

void fork_child_reset_stats(void)
{
    atomic_store_explicit(&latest_us, 0, memory_order_relaxed);
}

bool fork_child_is_here(void)
{
    return is_child;
}

void fork_child_set_begin(void (*begin)(enum child_kind kind))
{
    begin_child = begin;
}

/* What the child does first. */
static void become_child(enum child_kind kind, int parent, int keep)
{
    is_child = true;
    lock_forbid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(ECHILD);
    }
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    /* Connections that the server closes are to be closed, whatever this process does. */
    if (keep < 3) {
        close_range(3, ~0U, 0);
    } else {
        if (keep > 3) {
            close_range(3, (unsigned)keep - 1, 0);
        }
        close_range((unsigned)keep + 1, ~0U, 0);
    }
    if (begin_child) {
        begin_child(kind);
    }
}

int fork_child(enum child_kind kind, int keep)
{
    int parent = (int)getpid();
    uint64_t begin = spike_begin(), begin_us = clock_mono_us();
    int pid = (int)fork();
    if (pid == 0) {
        become_child(kind, parent, keep);
        return 0;
    }
    int error = errno;
    if (pid > 0) {
        atomic_store_explicit(&latest_us, clock_mono_us() - begin_us, memory_order_relaxed);
        stats_add(STAT_FORKS, 1);
    }
    spike_end("fork", begin);
    errno = error;
    return pid;
}
