/* See thread_cpus.h. */
#include "base/thread_cpus.h"

#include "base/mem.h"
#include "base/num.h"

#include <errno.h>
#include <string.h>

static char *lists[THREAD_WORK_COUNT];
static cpu_set_t began_with;
static bool noted;

/* Reads "N", "N-M" or "N-M:step" into the set. */
static bool parse_range(struct slice range, cpu_set_t *cores)
{
    int64_t first, last, step = 1;
    const char *colon = range.len ? memchr(range.ptr, ':', range.len) : NULL;
    if (colon) {
        size_t at = (size_t)(colon - range.ptr);
        if (!num_parse_i64(slice_of(colon + 1, range.len - at - 1), &step)) {
            return false;
        }
        range.len = at;
    }
    const char *dash = range.len ? memchr(range.ptr, '-', range.len) : NULL;
    size_t at = dash ? (size_t)(dash - range.ptr) : range.len;
    if (!num_parse_i64(slice_of(range.ptr, at), &first)) {
        return false;
    }
    last = first;
    if (dash && !num_parse_i64(slice_of(dash + 1, range.len - at - 1), &last)) {
        return false;
    }
    if (first < 0 || last < first || last >= CPU_SETSIZE || step < 1 || (colon && !dash)) {
        return false;
    }
    for (int64_t core = first; core <= last; core += step) {
        CPU_SET((size_t)core, cores);
        if (step > last - core) {
            break; /* the sum could pass the largest number */
        }
    }
    return true;
}

bool thread_cpus_parse(struct slice list, cpu_set_t *cores)
{
    CPU_ZERO(cores);
    for (;;) {
        const char *comma = list.len ? memchr(list.ptr, ',', list.len) : NULL;
        size_t len = comma ? (size_t)(comma - list.ptr) : list.len;
        if (!parse_range(slice_of(list.ptr, len), cores)) {
            return false;
        }
        if (!comma) {
            return true;
        }
        list = slice_of(comma + 1, list.len - len - 1);
    }
}

static bool is_set(enum thread_work work)
{
    return lists[work] && lists[work][0];
}

bool thread_cpus_of(enum thread_work work, cpu_set_t *cores)
{
    if (is_set(work)) {
        return thread_cpus_parse(slice_cstr(lists[work]), cores);
    }
    /* A thread inherits the cores of its starter. */
    *cores = began_with;
    return noted && is_set(THREAD_WORK_SERVER);
}

int thread_cpus_confine(enum thread_work work)
{
    cpu_set_t cores;
    bool is_child = work == THREAD_WORK_AOF_REWRITE || work == THREAD_WORK_SAVE;
    /* A child may have been forked by a thread that is pinned to one core. */
    if (!thread_cpus_of(work, &cores) && !(is_child && noted)) {
        return 0;
    }
    return sched_setaffinity(0, sizeof(cores), &cores) == 0 ? 0 : errno;
}

void thread_cpus_setup(void)
{
    noted = sched_getaffinity(0, sizeof(began_with), &began_with) == 0;
}

void thread_cpus_teardown(void)
{
    for (int i = 0; i < THREAD_WORK_COUNT; i++) {
        mem_free(lists[i]);
        lists[i] = NULL;
    }
}

static bool check_list(const struct option *option UNUSED, struct slice text, const char **error)
{
    cpu_set_t cores;
    *error = "argument must be a list of cores, such as 0,2-5 or 0-7:2";
    return text.len == 0 || thread_cpus_parse(text, &cores);
}

#define CPU_LIST(option_name, work)                                                                \
    {                                                                                              \
        .name = option_name, .type = OPTION_STRING, .flags = OPTION_IMMUTABLE,                     \
        .target = &lists[work], .initial = "", .check = check_list                                 \
    }

const struct option thread_cpus_options[] = {
    CPU_LIST("server_cpulist", THREAD_WORK_SERVER),
    CPU_LIST("bio_cpulist", THREAD_WORK_BACKGROUND),
    CPU_LIST("aof_rewrite_cpulist", THREAD_WORK_AOF_REWRITE),
    CPU_LIST("bgsave_cpulist", THREAD_WORK_SAVE),
    {.name = NULL},
};
