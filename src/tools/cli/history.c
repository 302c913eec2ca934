/* The lines typed at the prompt: see history.h. */
#include "tools/cli/history.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/text.h"

/* Lines longer than this stay out of the file and are not read from it. */
#define HISTORY_LINE_BYTES_MAX (64 * 1024)

struct history {
    char *path; /* NULL: memory only */
    char *lines[HISTORY_LINES_MAX];
    size_t count;
    bool regular; /* the file is one; a device (/dev/null) is never written to */
};

static bool remember(struct history *h, const char *line, size_t len)
{
    if (len == 0 || memchr(line, '\n', len) != NULL || memchr(line, '\0', len) != NULL) {
        return false;
    }
    if (h->count > 0 && strlen(h->lines[h->count - 1]) == len &&
        memcmp(h->lines[h->count - 1], line, len) == 0) {
        return false;
    }
    if (h->count == HISTORY_LINES_MAX) {
        free(h->lines[0]);
        memmove(h->lines, h->lines + 1, (HISTORY_LINES_MAX - 1) * sizeof(h->lines[0]));
        h->count--;
    }
    h->lines[h->count++] = tool_copy(line, len);
    return true;
}

/* Writes the lines in memory over the file, which had grown too long. */
static void rewrite(const struct history *h)
{
    int fd = open(h->path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    for (size_t i = 0; i < h->count; i++) {
        fprintf(file, "%s\n", h->lines[i]);
    }
    fclose(file);
}

static void load(struct history *h)
{
    FILE *file = fopen(h->path, "re");
    if (file == NULL) {
        h->regular = errno == ENOENT;
        return;
    }
    struct stat about;
    h->regular = fstat(fileno(file), &about) == 0 && S_ISREG(about.st_mode);
    char *line = NULL;
    size_t capacity = 0;
    size_t seen = 0;
    ssize_t len;
    while (h->regular && (len = getline(&line, &capacity, file)) > 0) {
        if (line[len - 1] == '\n') {
            len--;
        }
        if (len <= HISTORY_LINE_BYTES_MAX) {
            (void)remember(h, line, (size_t)len);
        }
        seen++;
    }
    free(line);
    fclose(file);
    if (seen > 2 * HISTORY_LINES_MAX) {
        rewrite(h);
    }
}

struct history *history_create(const char *path)
{
    struct history *h = tool_calloc(1, sizeof(*h));
    if (path != NULL && path[0] != '\0') {
        h->path = tool_strdup(path);
        load(h);
    }
    return h;
}

void history_destroy(struct history **h)
{
    if (*h != NULL) {
        for (size_t i = 0; i < (*h)->count; i++) {
            free((*h)->lines[i]);
        }
        free((*h)->path);
        free(*h);
        *h = NULL;
    }
}

void history_add(struct history *h, const char *line, size_t len)
{
    if (!remember(h, line, len) || h->path == NULL || !h->regular || len > HISTORY_LINE_BYTES_MAX) {
        return;
    }
    int fd = open(h->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return;
    }
    (void)fchmod(fd, 0600); /* a file made by another program may be open to all */
    struct text out;
    text_init(&out);
    text_append(&out, line, len);
    text_append_char(&out, '\n');
    ssize_t written = write(fd, out.data, out.len); /* one write, so that prompts do not mix */
    (void)written;
    text_deinit(&out);
    close(fd);
}

size_t history_count(const struct history *h)
{
    return h->count;
}

const char *history_line(const struct history *h, size_t index)
{
    assert(index < h->count);
    return h->lines[index];
}

size_t history_search(const struct history *h, const char *text, size_t before)
{
    assert(before <= h->count);
    for (size_t i = before; i-- > 0;) {
        if (strstr(h->lines[i], text) != NULL) {
            return i;
        }
    }
    return h->count;
}
