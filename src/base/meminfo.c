/* See meminfo.h. */
#include "base/meminfo.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool find(const char *text, const char *name, uint64_t *bytes)
{
    const char *line = strstr(text, name);
    uint64_t kib;
    if (!line || sscanf(line + strlen(name), " %" SCNu64 " kB", &kib) != 1 ||
        kib > UINT64_MAX / 1024) {
        return false;
    }
    *bytes = kib * 1024;
    return true;
}

bool meminfo_read(uint64_t *total_bytes, uint64_t *available_bytes)
{
    char text[4096];
    int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0) {
        close(fd);
    }
    if (len <= 0) {
        return false;
    }
    text[len] = '\0';
    return find(text, "MemTotal:", total_bytes) && find(text, "MemAvailable:", available_bytes) &&
           *available_bytes <= *total_bytes;
}
