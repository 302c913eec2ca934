/* See aside_file.h. */
#include "active/aside_file.h"

#include "base/file.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "temp-full-sync"
#define SUFFIX ".keys"

static _Atomic uint64_t last_number;

int aside_file_create(uint64_t epoch, char name[ASIDE_NAME_BYTES])
{
    uint64_t number = atomic_fetch_add_explicit(&last_number, 1, memory_order_relaxed) + 1;
    snprintf(name, ASIDE_NAME_BYTES, PREFIX "-%" PRIu64 "-%" PRIu64 SUFFIX, epoch, number);
    /* One that is there is somebody else's, or the epoch was forgotten: not to be written over. */
    return open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

/* Names that earlier versions gave are such, too. */
static bool is_name(struct slice name)
{
    size_t prefix = strlen(PREFIX), suffix = strlen(SUFFIX);
    return name.len >= prefix + suffix && name.len < ASIDE_NAME_BYTES &&
           memcmp(name.ptr, PREFIX, prefix) == 0 &&
           memcmp(name.ptr + name.len - suffix, SUFFIX, suffix) == 0 &&
           !memchr(name.ptr, '/', name.len) && !memchr(name.ptr, '\0', name.len);
}

int aside_file_open(struct slice told, char name[ASIDE_NAME_BYTES])
{
    name[0] = '\0';
    if (!is_name(told)) {
        errno = EINVAL;
        return -1;
    }
    snprintf(name, ASIDE_NAME_BYTES, "%.*s", (int)told.len, told.ptr);
    return open(name, O_RDWR | O_CLOEXEC);
}

int aside_file_sync(const char *name)
{
    int error = file_sync(name);
    return error ? error : file_sync_directory(".");
}

void aside_file_remove(const char *name)
{
    if (unlink(name) < 0 && errno != ENOENT) {
        log_warning("Can't remove %s: %s", name, strerror(errno));
    }
}

void aside_file_remove_others(struct slice kept)
{
    DIR *directory = opendir(".");
    if (!directory) {
        log_warning("Can't look for data sets of an earlier life: %s", strerror(errno));
        return;
    }
    for (const struct dirent *e = readdir(directory); e; e = readdir(directory)) {
        struct slice name = slice_cstr(e->d_name);
        if (is_name(name) && !slice_equal(name, kept)) {
            log_notice("Removing %s: nothing needs it", e->d_name);
            aside_file_remove(e->d_name);
        }
    }
    closedir(directory);
}
