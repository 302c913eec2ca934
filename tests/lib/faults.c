/* A layer between a server and libc that makes calls on files fail: preloaded by lib/faults.py,
 * which writes what is to fail into a file that both map. Only files whose name has ".rdb", ".aof",
 * ".acl" or ".conf" in it are concerned, and their directory's syncs. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The order of lib/faults.py's FIELDS: an errno for each call, 0: none; the calls of all
 * processes are counted, and the one with the number `kill_at` is not made: its process ends. */
struct control {
    volatile int32_t write_error, fsync_error, rename_error, open_error, fork_error;
    volatile int32_t short_writes; /* half of what is asked, at least a byte */
    volatile int32_t kill_at, calls;
    volatile int32_t write_after; /* writes that still succeed before write_error */
    volatile int32_t sync_hangs;  /* syncs of files do not come back as long as this is set */
    volatile int32_t fstat_error; /* of files that are open for writing */
    volatile int32_t slow_ms; /* each call that is concerned takes longer by that, and each fork */
};

static struct control none, *control = &none;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("KEYDB_TEST_FAULTS");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd >= 0) {
        void *map = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        control = map == MAP_FAILED ? &none : map;
        close(fd);
    }
}

static int concerns_name(const char *name)
{
    return name && (strstr(name, ".rdb") || strstr(name, ".aof") || strstr(name, ".acl") ||
                    strstr(name, ".conf") || strstr(name, ".keys") || strstr(name, "active-node"));
}

static int real_fstat(const char *function, int fd, struct stat *about)
{
    return ((int (*)(int, struct stat *))dlsym(RTLD_NEXT, function))(fd, about);
}

static int concerns(int fd)
{
    char link[64], name[4096];
    struct stat about;
    if (fd < 3 || real_fstat("fstat", fd, &about) < 0) {
        return 0;
    }
    if (S_ISDIR(about.st_mode)) {
        return 1;
    }
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = S_ISREG(about.st_mode) ? readlink(link, name, sizeof(name) - 1) : 0;
    if (len <= 0) {
        return 0;
    }
    name[len] = '\0';
    return concerns_name(name);
}

static void be_slow(void)
{
    if (control->slow_ms) {
        usleep((useconds_t)control->slow_ms * 1000);
    }
}

/* One more call that is concerned. */
static void count(void)
{
    be_slow();
    int32_t number = __atomic_add_fetch(&control->calls, 1, __ATOMIC_SEQ_CST);
    if (control->kill_at && number == control->kill_at) {
        kill(getpid(), SIGKILL);
        pause();
    }
}

static int fails(int32_t error)
{
    if (error) {
        errno = error;
    }
    return error != 0;
}

/* Before a write: false when it fails; *len may become less. */
static int may_write(int fd, size_t *len)
{
    if (concerns(fd)) {
        count();
        if (control->write_error && control->write_after-- <= 0 && fails(control->write_error)) {
            return 0;
        }
        if (control->short_writes && *len > 1) {
            *len = (*len + 1) / 2;
        }
    }
    return 1;
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    static ssize_t (*next)(int, const void *, size_t);
    next = next ? next : (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    return may_write(fd, &len) ? next(fd, bytes, len) : -1;
}

static ssize_t pwrite_with(const char *name, int fd, const void *bytes, size_t len, off_t offset)
{
    ssize_t (*next)(int, const void *, size_t, off_t) =
        (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, name);
    return may_write(fd, &len) ? next(fd, bytes, len, offset) : -1;
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
    return pwrite_with("pwrite", fd, bytes, len, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t offset)
{
    return pwrite_with("pwrite64", fd, bytes, len, offset);
}

int ftruncate(int fd, off_t size)
{
    if (concerns(fd)) {
        count();
    }
    return ((int (*)(int, off_t))dlsym(RTLD_NEXT, "ftruncate"))(fd, size);
}

static void count_name(const char *name)
{
    if (concerns_name(name)) {
        count();
    }
}

int truncate(const char *name, off_t size)
{
    count_name(name);
    return ((int (*)(const char *, off_t))dlsym(RTLD_NEXT, "truncate"))(name, size);
}

int unlink(const char *name)
{
    count_name(name);
    return ((int (*)(const char *))dlsym(RTLD_NEXT, "unlink"))(name);
}

/* Directories are always concerned. */
int mkdir(const char *name, mode_t mode)
{
    count();
    return ((int (*)(const char *, mode_t))dlsym(RTLD_NEXT, "mkdir"))(name, mode);
}

static int sync_with(const char *name, int fd)
{
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    if (concerns(fd)) {
        count();
        if (fails(control->fsync_error)) {
            return -1;
        }
    }
    while (control->sync_hangs && concerns(fd)) {
        usleep(1000);
    }
    return next(fd);
}

int fsync(int fd)
{
    return sync_with("fsync", fd);
}

int fdatasync(int fd)
{
    return sync_with("fdatasync", fd);
}

int rename(const char *from, const char *to)
{
    int (*next)(const char *, const char *) =
        (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    if (concerns_name(from)) {
        count();
        if (fails(control->rename_error)) {
            return -1;
        }
    }
    return next(from, to);
}

static int open_with(const char *function, const char *name, int flags, mode_t mode)
{
    int (*next)(const char *, int, ...) =
        (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, function);
    if (concerns_name(name) && (flags & O_ACCMODE) != O_RDONLY) {
        count();
        if (fails(control->open_error)) {
            return -1;
        }
    }
    return next(name, flags, mode);
}

int open(const char *name, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return open_with("open", name, flags, mode);
}

int open64(const char *name, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return open_with("open64", name, flags, mode);
}

pid_t fork(void)
{
    pid_t (*next)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
    be_slow();
    return fails(control->fork_error) ? -1 : next();
}

static int fstat_with(const char *function, int fd, struct stat *about)
{
    int flags = control->fstat_error ? fcntl(fd, F_GETFL) : 0;
    if (flags > 0 && (flags & O_ACCMODE) != O_RDONLY && concerns(fd) &&
        fails(control->fstat_error)) {
        return -1;
    }
    return real_fstat(function, fd, about);
}

int fstat(int fd, struct stat *about)
{
    return fstat_with("fstat", fd, about);
}

int fstat64(int fd, struct stat64 *about)
{
    return fstat_with("fstat64", fd, (struct stat *)about);
}

int stat64(const char *name, struct stat64 *about)
{
    if (concerns_name(name)) {
        be_slow();
    }
    return ((int (*)(const char *, struct stat64 *))dlsym(RTLD_NEXT, "stat64"))(name, about);
}
