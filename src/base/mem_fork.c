/* What AddressSanitizer's allocator lacks (gcc 12, clang 14): it takes no care of forks. A child
 * that is forked while another thread is inside malloc or free inherits the allocator's locks as
 * they are, and hangs in its first allocation. jemalloc and glibc's malloc hold their locks over a
 * fork; here it is done for them, in that variant only: the Makefile has the linker send our
 * allocations here (--wrap), and a fork waits until nobody is amid one. What libraries allocate
 * themselves passes by: that is rare while the server serves. State: the lock, of all threads. */
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

static void before_fork(void)
{
    pthread_rwlock_wrlock(&guard);
}

static void after_fork(void)
{
    pthread_rwlock_unlock(&guard);
}

static void in_child(void)
{
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
