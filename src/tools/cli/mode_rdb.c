/* --rdb and --functions-rdb: see modes.h.
 *
 * The file gets its name when all of it is on disk: it is written under a temporary name beside the
 * one that was asked for, which a broken transfer takes with it. What is no ordinary file (a pipe,
 * /dev/null) is written to as it is. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/modes.h"
#include "tools/cli/transfer.h"

struct file {
    const char *asked; /* what the user wrote */
    char *path;        /* the same behind symbolic links; NULL: written to as it is */
    char *temporary;   /* NULL with `path` */
    int fd;
};

static bool report(const char *what, const char *path)
{
    fprintf(stderr, "%s '%s': %s\n", what, path, strerror(errno));
    return false;
}

static bool open_file(struct file *f, const char *asked)
{
    struct stat about;
    memset(f, 0, sizeof(*f));
    f->asked = asked;
    if (strcmp(asked, "-") == 0) {
        f->fd = STDOUT_FILENO;
        return true;
    }
    bool exists = stat(asked, &about) == 0;
    if (exists && !S_ISREG(about.st_mode)) {
        f->fd = open(asked, O_WRONLY | O_CLOEXEC);
        return f->fd >= 0 || report("Error opening", asked);
    }
    char *real = exists ? realpath(asked, NULL) : NULL;
    f->path = tool_strdup(real != NULL ? real : asked);
    free(real);
    struct text name;
    text_init(&name);
    text_append_format(&name, "%s.%ld.tmp", f->path, (long)getpid());
    f->temporary = tool_strdup(name.data);
    text_deinit(&name);
    f->fd = open(f->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (f->fd < 0) {
        (void)report("Error opening", asked);
        free(f->path);
        free(f->temporary);
        return false;
    }
    return true;
}

static bool write_some(void *context, const char *data, size_t len)
{
    struct file *f = context;
    while (len > 0) {
        ssize_t n = write(f->fd, data, len);
        if (n >= 0) {
            data += n;
            len -= (size_t)n;
        } else if (errno != EINTR || session_interrupted != 0) {
            return report("Error writing data to file", f->asked);
        }
    }
    return true;
}

/* The directory's entry is to last, too. File systems that cannot do that are fine. */
static void sync_directory(const char *path)
{
    char *directory = tool_strdup(path);
    char *slash = strrchr(directory, '/');
    if (slash != NULL) {
        slash[slash == directory ? 1 : 0] = '\0';
    }
    int fd = open(slash != NULL ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
    free(directory);
}

/* Closes it, and keeps it if it is `good` still. */
static bool close_file(struct file *f, bool good)
{
    if (f->fd == STDOUT_FILENO) {
        return good;
    }
    if (good && fsync(f->fd) != 0 && errno != EINVAL && errno != EROFS) {
        good = report("Fail to fsync", f->asked);
    }
    if (close(f->fd) != 0 && good) {
        good = report("Error writing data to file", f->asked);
    }
    if (f->path != NULL) {
        if (good && rename(f->temporary, f->path) != 0) {
            good = report("Error renaming to", f->asked);
        }
        if (good) {
            sync_directory(f->path);
        } else {
            (void)unlink(f->temporary);
        }
    }
    free(f->path);
    free(f->temporary);
    return good;
}

static bool receive_file(struct session *s, struct payload *p)
{
    const char *asked = s->o->rdb_path;
    if (p->marked) {
        fprintf(stderr,
                "SYNC sent to master, writing bytes of bulk transfer until EOF marker to '%s'\n",
                asked);
    } else {
        fprintf(stderr, "SYNC sent to master, writing %llu bytes to '%s'\n", p->announced, asked);
    }
    struct file f;
    if (!open_file(&f, asked)) {
        return false;
    }
    bool good = transfer_receive(s, p, write_some, &f);
    if (!good) {
        fprintf(stderr, "I/O Error reading RDB payload from socket\n");
    }
    if (!close_file(&f, good)) {
        return false;
    }
    if (p->marked) {
        fprintf(stderr, "Transfer finished with success after %llu bytes\n", p->taken_bytes);
    } else {
        fprintf(stderr, "Transfer finished with success.\n");
    }
    return true;
}

int mode_rdb(struct session *s)
{
    bool functions = s->o->mode == MODE_FUNCTIONS_RDB;
    session_catch_interrupts(s);
    (void)transfer_configure(s, "capa", "eof"); /* what an old server refuses it does not need */
    if (s->link != NULL) {
        (void)transfer_configure(s, "rdb-only", "1");
    }
    if (s->link == NULL) {
        return 1;
    }
    if (functions && !transfer_configure(s, "rdb-filter-only", "functions")) {
        fprintf(stderr, "Failed requesting functions only RDB from server, aborting\n");
        return 1;
    }
    struct payload p;
    if (!transfer_begin(s, &p)) {
        return 1;
    }
    bool good = receive_file(s, &p);
    payload_deinit(&p);
    return good ? 0 : 1;
}
