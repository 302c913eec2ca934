/* See file.h. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int file_write_all(int fd, struct slice bytes)
{
    while (bytes.len > 0) {
        ssize_t done = write(fd, bytes.ptr, bytes.len);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return done < 0 ? errno : EIO;
        }
        bytes = slice_of(bytes.ptr + done, bytes.len - (size_t)done);
    }
    return 0;
}

static int sync_path(const char *path, int flags)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    if (fd < 0) {
        return errno;
    }
    int error = fsync(fd) < 0 ? errno : 0;
    close(fd);
    /* Some file systems have nothing to sync there. */
    return error == EINVAL ? 0 : error;
}

int file_sync(const char *path)
{
    return sync_path(path, 0);
}

int file_sync_directory(const char *path)
{
    return sync_path(path, O_DIRECTORY);
}
