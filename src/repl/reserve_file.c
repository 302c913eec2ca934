/* See reserve_file.h. */
#include "repl/reserve_file.h"

#include "base/crc.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

struct head {
    uint64_t crc, life, start, zero;
};

static_assert(sizeof(struct head) + CHAIN_BLOCK_BYTES == RESERVE_SLOT_BYTES, "a block a slot");

/* ---- its making ---- */

static int open_nameless(const char *name)
{
    int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) {
        return fd;
    }
    /* A file system without such files. Another server's of that name is not taken for ours. */
    unlink(name);
    fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        unlink(name);
    }
    return fd;
}

static int take_room(int fd, uint64_t bytes)
{
    while (fallocate(fd, 0, 0, (off_t)bytes) != 0) {
        if (errno == EOPNOTSUPP || errno == ENOSYS) {
            return ftruncate(fd, (off_t)bytes) == 0 ? 0 : errno;
        }
        if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

int reserve_file_create(const char *name, uint64_t bytes, int *fd)
{
    int made = open_nameless(name);
    int error = made < 0 ? errno : take_room(made, bytes);
    if (error && made >= 0) {
        close(made);
    }
    *fd = error ? -1 : made;
    return error;
}

/* ---- slots ---- */

static uint64_t crc_of(const char *slot)
{
    return crc64(0, slot + sizeof(uint64_t), RESERVE_SLOT_BYTES - sizeof(uint64_t));
}

void reserve_slot_fill(char *slot, uint64_t life, uint64_t start,
                       const char bytes[CHAIN_BLOCK_BYTES])
{
    struct head head = {.life = life, .start = start};
    memcpy(slot, &head, sizeof(head));
    memcpy(slot + sizeof(head), bytes, CHAIN_BLOCK_BYTES);
    head.crc = crc_of(slot);
    memcpy(slot, &head.crc, sizeof(head.crc));
}

int reserve_file_write(int fd, uint64_t index, const char *slots, unsigned count)
{
    size_t left = (size_t)count * RESERVE_SLOT_BYTES;
    off_t at = (off_t)(index * RESERVE_SLOT_BYTES);
    while (left > 0) {
        ssize_t wrote = pwrite(fd, slots, left, at);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            return wrote < 0 ? errno : ENOSPC;
        }
        slots += wrote;
        at += wrote;
        left -= (size_t)wrote;
    }
    return 0;
}

int reserve_file_read(int fd, uint64_t index, uint64_t life, uint64_t start, char *slot,
                      const char **bytes)
{
    size_t got = 0;
    off_t at = (off_t)(index * RESERVE_SLOT_BYTES);
    while (got < RESERVE_SLOT_BYTES) {
        ssize_t more = pread(fd, slot + got, RESERVE_SLOT_BYTES - got, at + (off_t)got);
        if (more < 0 && errno == EINTR) {
            continue;
        }
        if (more <= 0) {
            return more < 0 ? errno : EBADMSG; /* somebody has cut it off */
        }
        got += (size_t)more;
    }
    struct head head;
    memcpy(&head, slot, sizeof(head));
    *bytes = slot + sizeof(head);
    bool whole = head.life == life && head.start == start && head.crc == crc_of(slot);
    return whole ? 0 : EBADMSG;
}
