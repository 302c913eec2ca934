/* See epoch_file.h. */
#include "active/epoch_file.h"

#include "base/file.h"
#include "base/log.h"
#include "base/rand.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEMPORARY_FILE "temp-" EPOCH_FILE
static const char prefix[] = "active-node 1 ";
#define PREFIX_CHARS (sizeof(prefix) - 1)
#define FILE_CHARS (PREFIX_CHARS + ORIGIN_CHARS + 1)

static bool parse(struct slice text, struct origin_id *last)
{
    return text.len == FILE_CHARS && memcmp(text.ptr, prefix, PREFIX_CHARS) == 0 &&
           text.ptr[FILE_CHARS - 1] == '\n' &&
           origin_parse(slice_of(text.ptr + PREFIX_CHARS, ORIGIN_CHARS), last);
}

bool epoch_file_read(struct origin_id *last)
{
    char text[FILE_CHARS + 1];
    int fd = open(EPOCH_FILE, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        last->epoch = 0;
        rand_secret(last->node, sizeof(last->node));
        return true;
    }
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text));
    int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    if (got < 0) {
        log_warning("Can't read the node's id from %s: %s", EPOCH_FILE, strerror(error));
        return false;
    }
    if (!parse(slice_of(text, (size_t)got), last)) {
        log_warning("%s is not the file of a node's id", EPOCH_FILE);
        return false;
    }
    return true;
}

static int write_file(const char *text)
{
    int fd = open(TEMPORARY_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        return errno;
    }
    int error = file_write_all(fd, slice_of(text, FILE_CHARS));
    if (!error && fsync(fd) < 0) {
        error = errno;
    }
    close(fd);
    if (!error && rename(TEMPORARY_FILE, EPOCH_FILE) < 0) {
        error = errno;
    }
    return error ? error : file_sync_directory(".");
}

bool epoch_file_write(const struct origin_id *last)
{
    char text[FILE_CHARS];
    memcpy(text, prefix, PREFIX_CHARS);
    origin_format(last, text + PREFIX_CHARS);
    text[FILE_CHARS - 1] = '\n';
    int error = write_file(text);
    if (error) {
        log_warning("Can't write the node's id to %s: %s", EPOCH_FILE, strerror(error));
    }
    return !error;
}
