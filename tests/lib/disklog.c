/* A layer between a server and libc that records what it does to files below a directory, in the
 * order in which it happened: preloaded by lib/disk.py, which builds from the record what a disk
 * may hold after the power went. A call is recorded after it was made; a sync before (S) and, when
 * it succeeded, after it (E): what is recorded before S is on the disk from E on. Records are
 * appended by one writev each, which the kernel keeps whole. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MAGIC 0x4b534944 /* "DISK" */
#define FDS_MAX 65536

/* lib/disk.py's HEAD. */
struct record {
    uint32_t magic, bytes;
    int32_t kind, pid, fd, flags;
    int64_t offset, time_ns;
};

static char root[PATH_MAX], log_path[PATH_MAX];
static size_t root_len;
static int log_fd = -1;
static int is_child;
/* Descriptors of files below the directory. */
static unsigned char tracked[FDS_MAX];

__attribute__((constructor)) static void begin(void)
{
    const char *directory = getenv("KEYDB_TEST_DISK_ROOT"), *path = getenv("KEYDB_TEST_DISK_LOG");
    if (directory && path && strlen(directory) < PATH_MAX && strlen(path) < PATH_MAX) {
        snprintf(root, sizeof(root), "%s", directory);
        snprintf(log_path, sizeof(log_path), "%s", path);
        root_len = strlen(root);
    }
}

static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static int open_log(void)
{
    return (int)syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_APPEND | O_CLOEXEC);
}

static void record(int kind, int fd, int flags, int64_t offset, const void *bytes, size_t len)
{
    int saved = errno;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct record head = {MAGIC, (uint32_t)len, kind,   (int32_t)getpid(),
                          fd,    flags,         offset, now.tv_sec * 1000000000LL + now.tv_nsec};
    struct iovec parts[2] = {{&head, sizeof(head)}, {(void *)bytes, len}};
    /* A child closes what it did not open itself, so there the log is opened each time. */
    int own = is_child ? open_log() : log_fd >= 0 ? log_fd : (log_fd = open_log());
    if (own < 0 || syscall(SYS_writev, own, parts, 2) != (long)(sizeof(head) + len)) {
        _exit(98);
    }
    if (is_child) {
        syscall(SYS_close, own);
    }
    errno = saved;
}

/* The path below the directory, NULL when it is not there. */
static const char *below(const char *name, char full[PATH_MAX])
{
    if (!root_len || !name) {
        return NULL;
    }
    int len;
    if (name[0] == '/') {
        len = snprintf(full, PATH_MAX, "%s", name);
    } else {
        char here[PATH_MAX];
        len = getcwd(here, sizeof(here)) ? snprintf(full, PATH_MAX, "%s/%s", here, name) : -1;
    }
    if (len < 0 || len >= PATH_MAX) {
        return NULL;
    }
    if (strncmp(full, root, root_len) != 0 || (full[root_len] != '/' && full[root_len] != '\0')) {
        return NULL;
    }
    return full[root_len] ? full + root_len + 1 : "";
}

static int is_tracked(int fd)
{
    return fd >= 0 && fd < FDS_MAX && tracked[fd];
}

static int note_open(int fd, const char *name, int flags)
{
    char full[PATH_MAX];
    const char *path = fd >= 0 ? below(name, full) : NULL;
    if (fd >= 0 && fd < FDS_MAX) {
        tracked[fd] = path != NULL;
    }
    if (path) {
        record('O', fd, flags, 0, path, strlen(path));
    }
    return fd;
}

static mode_t mode_of(int flags, va_list args)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

#define WRAP_OPEN(function)                                                                        \
    int function(const char *name, int flags, ...)                                                 \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode_t mode = mode_of(flags, args);                                                        \
        va_end(args);                                                                              \
        return note_open(((int (*)(const char *, int, ...))real(#function))(name, flags, mode),    \
                         name, flags);                                                             \
    }
WRAP_OPEN(open)
WRAP_OPEN(open64)

#define WRAP_OPEN_2(function)                                                                      \
    int function(const char *name, int flags);                                                     \
    int function(const char *name, int flags)                                                      \
    {                                                                                              \
        return note_open(((int (*)(const char *, int))real(#function))(name, flags), name, flags); \
    }
WRAP_OPEN_2(__open_2)
WRAP_OPEN_2(__open64_2)

int close(int fd)
{
    if (is_tracked(fd)) {
        tracked[fd] = 0;
    }
    return ((int (*)(int))real("close"))(fd);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    static ssize_t (*next)(int, const void *, size_t);
    next = next ? next : (ssize_t(*)(int, const void *, size_t))real("write");
    ssize_t done = next(fd, bytes, len);
    if (done > 0 && is_tracked(fd)) {
        record('W', fd, 0, lseek(fd, 0, SEEK_CUR) - done, bytes, (size_t)done);
    }
    return done;
}

#define WRAP_PWRITE(function)                                                                      \
    ssize_t function(int fd, const void *bytes, size_t len, off_t offset)                          \
    {                                                                                              \
        ssize_t done = ((ssize_t(*)(int, const void *, size_t, off_t))real(#function))(            \
            fd, bytes, len, offset);                                                               \
        if (done > 0 && is_tracked(fd)) {                                                          \
            record('W', fd, 0, offset, bytes, (size_t)done);                                       \
        }                                                                                          \
        return done;                                                                               \
    }
WRAP_PWRITE(pwrite)
WRAP_PWRITE(pwrite64)

#define WRAP_FTRUNCATE(function)                                                                   \
    int function(int fd, off_t size)                                                               \
    {                                                                                              \
        int result = ((int (*)(int, off_t))real(#function))(fd, size);                             \
        if (result == 0 && is_tracked(fd)) {                                                       \
            record('T', fd, 0, size, NULL, 0);                                                     \
        }                                                                                          \
        return result;                                                                             \
    }
WRAP_FTRUNCATE(ftruncate)
WRAP_FTRUNCATE(ftruncate64)

#define WRAP_TRUNCATE(function)                                                                    \
    int function(const char *name, off_t size)                                                     \
    {                                                                                              \
        char full[PATH_MAX];                                                                       \
        int result = ((int (*)(const char *, off_t))real(#function))(name, size);                  \
        const char *path = result == 0 ? below(name, full) : NULL;                                 \
        if (path) {                                                                                \
            record('T', -1, 0, size, path, strlen(path));                                          \
        }                                                                                          \
        return result;                                                                             \
    }
WRAP_TRUNCATE(truncate)
WRAP_TRUNCATE(truncate64)

static int sync_with(const char *name, int fd)
{
    int (*next)(int) = (int (*)(int))real(name);
    int concerned = is_tracked(fd);
    if (concerned) {
        record('S', fd, 0, 0, NULL, 0);
    }
    int result = next(fd);
    if (concerned && result == 0) {
        record('E', fd, 0, 0, NULL, 0);
    }
    return result;
}

int fsync(int fd)
{
    return sync_with("fsync", fd);
}

int fdatasync(int fd)
{
    return sync_with("fdatasync", fd);
}

/* Of both names one may be elsewhere: it stays out then. */
static int note_paths(int kind, int result, const char *from, const char *to)
{
    char full_from[PATH_MAX], full_to[PATH_MAX], both[2 * PATH_MAX];
    const char *old = below(from, full_from), *new = below(to, full_to);
    if (result == 0 && old && new) {
        size_t len = strlen(old) + 1;
        memcpy(both, old, len);
        memcpy(both + len, new, strlen(new));
        record(kind, -1, 0, 0, both, len + strlen(new));
    }
    return result;
}

int rename(const char *from, const char *to)
{
    int (*next)(const char *, const char *) = (int (*)(const char *, const char *))real("rename");
    return note_paths('R', next(from, to), from, to);
}

int link(const char *from, const char *to)
{
    int (*next)(const char *, const char *) = (int (*)(const char *, const char *))real("link");
    return note_paths('L', next(from, to), from, to);
}

static int note_path(int kind, int result, const char *name)
{
    char full[PATH_MAX];
    const char *path = result == 0 ? below(name, full) : NULL;
    if (path) {
        record(kind, -1, 0, 0, path, strlen(path));
    }
    return result;
}

int unlink(const char *name)
{
    return note_path('U', ((int (*)(const char *))real("unlink"))(name), name);
}

int mkdir(const char *name, mode_t mode)
{
    return note_path('M', ((int (*)(const char *, mode_t))real("mkdir"))(name, mode), name);
}

/* The child's descriptors are its parent's: said by itself, before anything else. */
pid_t fork(void)
{
    int parent = (int)getpid();
    pid_t pid = ((pid_t(*)(void))real("fork"))();
    if (pid == 0) {
        is_child = 1;
        record('F', parent, 0, 0, NULL, 0);
    }
    return pid;
}
