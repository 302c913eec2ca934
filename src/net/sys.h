/* recv, send and sendmsg without glibc's cancellation points, which nobody needs here and which
 * cost more instructions than the rest of the call before the kernel (about 60 of 80). State: none.
 */
#ifndef NET_SYS_H
#define NET_SYS_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static inline ssize_t sys_recv(int fd, void *bytes, size_t len)
{
    return syscall(SYS_recvfrom, fd, bytes, len, 0, NULL, NULL);
}

static inline ssize_t sys_send(int fd, const void *bytes, size_t len)
{
    return syscall(SYS_sendto, fd, bytes, len, MSG_NOSIGNAL, NULL, 0);
}

static inline ssize_t sys_sendmsg(int fd, const struct msghdr *message)
{
    return syscall(SYS_sendmsg, fd, message, MSG_NOSIGNAL);
}

#endif
