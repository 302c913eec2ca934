/* What AddressSanitizer's allocator lacks (gcc 12, clang 14; LLVM has it since 16): it takes no
 * care of forks. A child that is forked while another thread is inside malloc or free inherits the
 * allocator's locks as they are, and hangs in its first allocation. jemalloc and glibc's malloc
 * hold their locks over a fork; here it is done for them, in that variant only. Our own allocations
 * the Makefile has the linker send here (--wrap), and a fork waits until nobody is amid one: so it
 * finds the quarantine's locks free. What libc and libraries allocate themselves passes by (a
 * thread's beginning and end do so), and for that the fork takes the allocator's and the stack
 * depot's own locks, as LLVM does: the runtime keeps them to itself, and is linked statically to
 * have them. State: the locks, of all threads. */
#if defined(KEYDB_FORK_GUARD)

#include <pthread.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t size);
int __real_posix_memalign(void **ptr, size_t alignment, size_t size);
void __real_free(void *ptr);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *ptr, size_t size);
int __wrap_posix_memalign(void **ptr, size_t alignment, size_t size);
void __wrap_free(void *ptr);

/* Shared by who allocates, exclusive for who forks, who is let in first. */
static pthread_rwlock_t guard = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

/* The runtime's, in C++: lsan_common.h, sanitizer_stackdepot.h. */
void _ZN6__lsan13LockAllocatorEv(void);
void _ZN6__lsan15UnlockAllocatorEv(void);
void _ZN11__sanitizer17StackDepotLockAllEv(void);
void _ZN11__sanitizer19StackDepotUnlockAllEv(void);

static void unlock_runtime(void)
{
    _ZN11__sanitizer19StackDepotUnlockAllEv();
    _ZN6__lsan15UnlockAllocatorEv();
}

static void before_fork(void)
{
    pthread_rwlock_wrlock(&guard);
    _ZN6__lsan13LockAllocatorEv();
    _ZN11__sanitizer17StackDepotLockAllEv();
}

static void after_fork(void)
{
    unlock_runtime();
    pthread_rwlock_unlock(&guard);
}

static void in_child(void)
{
    unlock_runtime();
    guard = (pthread_rwlock_t)PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

void *__wrap_malloc(size_t size)
{
    pthread_rwlock_rdlock(&guard);
    void *ptr = __real_malloc(size);
    pthread_rwlock_unlock(&guard);
    return ptr;
}

void *__wrap_calloc(size_t count, size_t size)
{
    pthread_rwlock_rdlock(&guard);
    void *ptr = __real_calloc(count, size);
    pthread_rwlock_unlock(&guard);
    return ptr;
}

void *__wrap_realloc(void *ptr, size_t size)
{
    pthread_rwlock_rdlock(&guard);
    void *moved = __real_realloc(ptr, size);
    pthread_rwlock_unlock(&guard);
    return moved;
}

int __wrap_posix_memalign(void **ptr, size_t alignment, size_t size)
{
    pthread_rwlock_rdlock(&guard);
    int error = __real_posix_memalign(ptr, alignment, size);
    pthread_rwlock_unlock(&guard);
    return error;
}

void __wrap_free(void *ptr)
{
    pthread_rwlock_rdlock(&guard);
    __real_free(ptr);
    pthread_rwlock_unlock(&guard);
}

#else
typedef int mem_fork_needs_nothing_here;
#endif
