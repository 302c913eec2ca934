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
static const char prefix[] = "active-node 2 ", prefix_1[] = "active-node 1 ";
#define PREFIX_CHARS (sizeof(prefix) - 1)
#define CLOCK_CHARS 16
#define CLOCK_AT (PREFIX_CHARS + ORIGIN_CHARS + 1)
#define FILE_CHARS (CLOCK_AT + CLOCK_CHARS + 1)
/* Of version 1. */
#define FILE_1_CHARS (PREFIX_CHARS + ORIGIN_CHARS + 1)

/* As the epoch of an origin is written, which are the last digits of its text. */
static bool parse_clock(const char *digits, uint64_t *clock)
{
    char text[ORIGIN_CHARS];
    struct origin_id id;
    memset(text, '0', sizeof(text));
    memcpy(text + ORIGIN_CHARS - CLOCK_CHARS, digits, CLOCK_CHARS);
    bool good = origin_parse(slice_of(text, sizeof(text)), &id);
    *clock = good ? id.epoch : 0;
    return good;
}

static void format_clock(uint64_t clock, char digits[CLOCK_CHARS])
{
    char text[ORIGIN_CHARS];
    struct origin_id id = {.epoch = clock};
    origin_format(&id, text);
    memcpy(digits, text + ORIGIN_CHARS - CLOCK_CHARS, CLOCK_CHARS);
}

static bool parse(struct slice text, struct origin_id *last, uint64_t *clock)
{
    bool has_clock = text.len == FILE_CHARS && memcmp(text.ptr, prefix, PREFIX_CHARS) == 0;
    *clock = 0;
    if (!has_clock && (text.len != FILE_1_CHARS || memcmp(text.ptr, prefix_1, PREFIX_CHARS) != 0)) {
        return false;
    }
    return text.ptr[text.len - 1] == '\n' &&
           origin_parse(slice_of(text.ptr + PREFIX_CHARS, ORIGIN_CHARS), last) &&
           (!has_clock ||
            (text.ptr[CLOCK_AT - 1] == ' ' && parse_clock(text.ptr + CLOCK_AT, clock)));
}

bool epoch_file_read(struct origin_id *last, uint64_t *clock)
{
    char text[FILE_CHARS + 1];
    int fd = open(EPOCH_FILE, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        last->epoch = *clock = 0;
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
    if (!parse(slice_of(text, (size_t)got), last, clock)) {
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

bool epoch_file_write(const struct origin_id *last, uint64_t clock)
{
    char text[FILE_CHARS];
    memcpy(text, prefix, PREFIX_CHARS);
    origin_format(last, text + PREFIX_CHARS);
    text[CLOCK_AT - 1] = ' ';
    format_clock(clock, text + CLOCK_AT);
    text[FILE_CHARS - 1] = '\n';
    int error = write_file(text);
    if (error) {
        log_warning("Can't write the node's id to %s: %s", EPOCH_FILE, strerror(error));
    }
    return !error;
}

static bool is_of(int fd, const struct origin_id *own)
{
    char text[FILE_CHARS];
    struct origin_id last;
    uint64_t clock;
    return pread(fd, text, sizeof(text), 0) == (ssize_t)sizeof(text) &&
           parse(slice_of(text, sizeof(text)), &last, &clock) && last.epoch == own->epoch &&
           memcmp(last.node, own->node, sizeof(last.node)) == 0;
}

void epoch_file_note_clock(const struct origin_id *own, uint64_t clock)
{
    char digits[CLOCK_CHARS];
    int fd = open(EPOCH_FILE, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    if (is_of(fd, own)) {
        format_clock(clock, digits);
        ssize_t written UNUSED = pwrite(fd, digits, sizeof(digits), (off_t)CLOCK_AT);
    }
    close(fd);
}
