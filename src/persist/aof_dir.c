/* See aof_dir.h. */
#include "persist/aof_dir.h"

#include "base/file.h"
#include "base/log.h"
#include "base/spike.h"
#include "persist/aof_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Largest manifest that is read. */
#define MANIFEST_MAX_BYTES ((off_t)64 << 20)

const char *aof_dir_path(struct buf *path, const char *name)
{
    buf_clear(path);
    buf_printf(path, "%s/%s", aof_settings.dir_name, name);
    return buf_cstr(path);
}

int aof_dir_create(void)
{
    if (mkdir(aof_settings.dir_name, 0755) < 0 && errno != EEXIST) {
        return errno;
    }
    /* Who made it may have been killed before it was durable. */
    return file_sync_directory(".");
}

int aof_dir_sync(void)
{
    return file_sync_directory(aof_settings.dir_name);
}

int aof_dir_create_file(const char *name)
{
    struct buf path = {0};
    aof_dir_path(&path, name);
    /* Whoever still has an old file of that name open goes on with that one. */
    unlink(path.data);
    int fd = open(path.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int error = errno;
    buf_deinit(&path);
    errno = error;
    return fd;
}

/* ---- the manifest ---- */

static void manifest_path(struct buf *path, const char *prefix)
{
    buf_clear(path);
    buf_printf(path, "%s/%s%s.manifest", aof_settings.dir_name, prefix, aof_settings.file_name);
    buf_cstr(path);
}

/* The text of an open file. */
static bool read_text(int fd, struct buf *text)
{
    struct stat about;
    if (fstat(fd, &about) < 0 || about.st_size > MANIFEST_MAX_BYTES) {
        return false;
    }
    ssize_t got;
    do {
        got = read(fd, buf_reserve(text, 4096), 4096);
        text->len += got > 0 ? (size_t)got : 0;
    } while ((got > 0 && text->len <= (size_t)MANIFEST_MAX_BYTES) || (got < 0 && errno == EINTR));
    return got == 0;
}

int aof_dir_sync_all(const struct aof_manifest *m)
{
    struct buf path = {0};
    int error = 0;
    for (int i = 0; !error && i < m->count; i++) {
        if (m->files[i].kind != AOF_HISTORY) {
            error = file_sync(aof_dir_path(&path, m->files[i].name));
        }
    }
    if (!error && m->count > 0) {
        manifest_path(&path, "");
        error = file_sync(path.data);
        error = error ? error : aof_dir_sync();
        error = error ? error : file_sync_directory(".");
    }
    buf_deinit(&path);
    return error;
}

bool aof_dir_read_manifest(struct aof_manifest *m)
{
    struct buf path = {0}, text = {0};
    const char *error = NULL;
    int line = 0;
    manifest_path(&path, "");
    int fd = open(path.data, O_RDONLY | O_CLOEXEC);
    bool fine = fd < 0 && errno == ENOENT;
    if (fd < 0 && !fine) {
        log_warning("Cannot open the AOF manifest %s: %s", path.data, strerror(errno));
    } else if (fd >= 0 && !read_text(fd, &text)) {
        log_warning("Cannot read the AOF manifest %s: %s", path.data, strerror(errno));
    } else if (fd >= 0) {
        fine = aof_manifest_parse(m, buf_slice(&text), &error, &line);
        if (!fine) {
            log_warning("The AOF manifest %s is damaged: %s, in line %d", path.data, error, line);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    buf_deinit(&path);
    buf_deinit(&text);
    return fine;
}

/* Writes and syncs the whole text. */
static int write_text(int fd, struct slice text)
{
    int error = file_write_all(fd, text);
    return !error && fsync(fd) < 0 ? errno : error;
}

int aof_dir_write_manifest(const struct aof_manifest *m)
{
    struct buf temporary = {0}, path = {0}, text = {0};
    manifest_path(&temporary, "temp-");
    manifest_path(&path, "");
    aof_manifest_format(m, &text);
    int fd = open(temporary.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int error = fd < 0 ? errno : write_text(fd, buf_slice(&text));
    /* Were the rename to reach the disk before the entries of new files, a file would be missing.
     */
    error = error ? error : aof_dir_sync();
    if (fd >= 0 && close(fd) < 0 && !error) {
        error = errno;
    }
    if (!error && rename(temporary.data, path.data) < 0) {
        error = errno;
    }
    if (error && fd >= 0) {
        unlink(temporary.data);
    }
    buf_deinit(&temporary);
    buf_deinit(&path);
    buf_deinit(&text);
    return error ? error : aof_dir_sync();
}

/* ---- a single file of old ---- */

static bool is_there(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0;
}

/* Moves a file into the directory. Were it a rename, the disk might for a moment have neither name:
 * the removal of one and not the other. */
static int move_inside(const char *old, const char *inside)
{
    if (link(old, inside) < 0) {
        /* The file system cannot: the rename is the best there is. */
        return rename(old, inside) < 0 ? errno : aof_dir_sync();
    }
    int error = aof_dir_sync();
    return !error && unlink(old) < 0 ? errno : error;
}

bool aof_dir_upgrade(struct aof_manifest *m)
{
    struct buf inside = {0};
    const struct aof_file *base = aof_manifest_base(m);
    const char *old = aof_settings.file_name;
    aof_dir_path(&inside, old);
    /* Also after a crash between the two steps below. */
    bool begun = base && strcmp(base->name, old) == 0 && !is_there(inside.data);
    int error = 0;
    if ((m->count == 0 || begun) && is_there(old)) {
        log_notice("The AOF %s becomes the base of one with several files, in %s/", old,
                   aof_settings.dir_name);
        error = aof_dir_create();
        if (!error && !begun) {
            aof_manifest_add(m, slice_cstr(old), 1, AOF_BASE);
            error = aof_dir_write_manifest(m);
        }
        /* Found, the manifest may still be in the kernel's memory alone. */
        error = error ? error : aof_dir_sync();
        error = error ? error : move_inside(old, inside.data);
        error = error ? error : file_sync_directory(".");
    }
    buf_deinit(&inside);
    if (error) {
        log_warning("Cannot move the AOF %s into %s/: %s", old, aof_settings.dir_name,
                    strerror(error));
    }
    return error == 0;
}

/* ---- files ---- */

void aof_dir_delete_history(struct aof_manifest *m)
{
    struct buf path = {0};
    if (aof_settings.keeps_history) {
        return;
    }
    for (int i = 0; i < m->count; i++) {
        if (m->files[i].kind == AOF_HISTORY) {
            unlink(aof_dir_path(&path, m->files[i].name));
        }
    }
    buf_deinit(&path);
    aof_manifest_forget_history(m);
}

uint64_t aof_dir_file_bytes(const char *name)
{
    struct stat about;
    struct buf path = {0};
    uint64_t begin = spike_begin();
    uint64_t bytes = stat(aof_dir_path(&path, name), &about) == 0 ? (uint64_t)about.st_size : 0;
    spike_end("aof-fstat", begin);
    buf_deinit(&path);
    return bytes;
}

uint64_t aof_dir_bytes(const struct aof_manifest *m)
{
    uint64_t bytes = 0;
    for (int i = 0; i < m->count; i++) {
        bytes += m->files[i].kind == AOF_HISTORY ? 0 : aof_dir_file_bytes(m->files[i].name);
    }
    return bytes;
}
