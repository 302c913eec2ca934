/* recv, send and sendmsg without glibc's cancellation points, which nobody needs here and which
 * cost more instructions than the rest of the call before the kernel (about 60 of 80; its
 * syscall() still 15). State: none. */
#ifndef NET_SYS_H
#define NET_SYS_H

#include "base/compiler.h"

#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* A sanitizer wants to see the calls that write memory. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SYS_BY_LIBRARY 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__x86_64__)
#define SYS_BY_LIBRARY 1
#endif

/* A system call, with errno as libc's functions set it. */
#ifdef SYS_BY_LIBRARY
#define sys_call(number, a, b, c, d, e, f) syscall((number), (a), (b), (c), (d), (e), (f))
#else
/* The registers are those of the kernel's x86-64 convention (System V ABI, appendix A.2.1). */
static ALWAYS_INLINE ssize_t sys_call(long number, long a, const void *b, size_t c, long d, long e,
                                      long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    if (unlikely(result < 0)) {
        errno = (int)-result;
        return -1;
    }
    return result;
}
#endif

static inline ssize_t sys_recv(int fd, void *bytes, size_t len)
{
    return sys_call(SYS_recvfrom, fd, bytes, len, 0, 0, 0);
}

static inline ssize_t sys_send(int fd, const void *bytes, size_t len)
{
    return sys_call(SYS_sendto, fd, bytes, len, MSG_NOSIGNAL, 0, 0);
}

static inline ssize_t sys_sendmsg(int fd, const struct msghdr *message)
{
    return sys_call(SYS_sendmsg, fd, message, MSG_NOSIGNAL, 0, 0, 0);
}

#endif
