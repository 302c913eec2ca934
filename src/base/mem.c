/* Memory accounting over jemalloc, the sanitizers' allocator, or glibc's. */
#include "base/mem.h"

#include "base/log.h"
#include "base/mem_pages.h"

#include <assert.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MEM_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEM_SANITIZER 1
#endif

#if defined(MEM_SANITIZER)
/* Of <sanitizer/allocator_interface.h>, which Debian's gcc does not ship. */
size_t __sanitizer_get_current_allocated_bytes(void);
size_t __sanitizer_get_heap_size(void);
#elif KEYDB_JEMALLOC
#include <jemalloc/jemalloc.h>
/* Read by jemalloc when it starts. No arena of their own for requests from 8 MiB on: what a thread
 * has freed could not serve its own smaller ones then, which spend_reserve() relies on. */
__attribute__((visibility("default"), used)) const char *malloc_conf = "oversize_threshold:0";
#endif

static _Atomic size_t peak_bytes;
static _Thread_local unsigned fail_countdown;
static _Atomic size_t fail_above = SIZE_MAX;
static _Thread_local void *reserve;

#if KEYDB_JEMALLOC
_Thread_local const volatile uint64_t *mem_own_allocated, *mem_own_deallocated;
#endif

void mem_die(size_t size)
{
    log_warning("Out of memory: an allocation of %zu bytes failed", size);
    abort();
}

/* ---- blocks that grow by moving their pages ---- */

/* From this size on the verbs whose sizes clients choose lay blocks at the beginning of a page, and
 * let them grow by moving pages. A move costs 20 to 80 us whatever the size (measured to 256 MiB),
 * copying 4 MiB, with the page faults of the copy, 3 to 10 ms. Below, a copy into memory that the
 * allocator keeps warm is as good. */
#define MOVABLE_BYTES ((size_t)4 << 20)

#if KEYDB_JEMALLOC && !defined(MEM_SANITIZER)

static void *allocate(size_t size)
{
    if (unlikely(size >= MOVABLE_BYTES)) {
        return mallocx(size, MALLOCX_ALIGN(MEM_PAGE_BYTES));
    }
    return malloc(size != 0 ? size : 1);
}

/* Moves a block's content to a new one, with its pages where both begin with one; NULL when there
 * is no memory. */
static void *move_to_larger(void *ptr, size_t had, size_t size)
{
    char *moved = allocate(size);
    if (moved == NULL) {
        return NULL;
    }
    bool by_pages = had >= MOVABLE_BYTES && ((uintptr_t)ptr | had) % MEM_PAGE_BYTES == 0;
    if (by_pages && !mem_pages_move(moved, ptr, had)) {
        /* The new block's addresses are somebody else's now: the allocator must not have them back.
         */
        moved = allocate(size);
        if (moved == NULL) {
            return NULL;
        }
        by_pages = false;
    }
    if (!by_pages) {
        memcpy(moved, ptr, had);
    }
    free(ptr);
    return moved;
}

static void *resize(void *ptr, size_t size)
{
    size_t had = size >= MOVABLE_BYTES && ptr != NULL ? mem_usable_size(ptr) : SIZE_MAX;
    if (likely(had >= size)) {
        return ptr == NULL ? allocate(size) : realloc(ptr, size != 0 ? size : 1);
    }
    return xallocx(ptr, size, 0, 0) >= size ? ptr : move_to_larger(ptr, had, size);
}

#else

static void *allocate(size_t size)
{
    return malloc(size != 0 ? size : 1);
}

static void *resize(void *ptr, size_t size)
{
    return realloc(ptr, size != 0 ? size : 1);
}

#endif

/* ---- allocation ---- */

/* Gives the reserve back to the allocator, for an allocation that it has refused; false without
 * one. */
static bool spend_reserve(void)
{
    bool had = reserve != NULL;
    mem_unreserve();
    return had;
}

void *mem_alloc_again(size_t size)
{
    void *ptr = spend_reserve() ? malloc(size != 0 ? size : 1) : NULL;
    if (ptr == NULL) {
        mem_die(size);
    }
    return ptr;
}

/* ---- blocks that are wanted again ---- */

#if KEYDB_JEMALLOC && !defined(MEM_SANITIZER)

/* Milliseconds. */
#define REUSED_DECAY ((ssize_t)60 * 1000)

/* An arena of their own; MALLOCX_ARENA of it, 0: there is none. */
static int reused_arena;

static void make_reused_arena(void)
{
    unsigned arena;
    char name[48];
    ssize_t decay_ms = REUSED_DECAY;
    size_t size = sizeof(arena);
    if (mallctl("arenas.create", &arena, &size, NULL, 0) == 0) {
        snprintf(name, sizeof(name), "arena.%u.dirty_decay_ms", arena);
        (void)mallctl(name, NULL, NULL, &decay_ms, sizeof(decay_ms));
        reused_arena = MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE;
    }
}

void *mem_alloc_reused(size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_reused_arena);
    if (KEYDB_DEBUG) {
        mem_check_seam(size);
    }
    void *ptr = mallocx(size != 0 ? size : 1, reused_arena);
    return unlikely(ptr == NULL) ? mem_alloc_again(size) : ptr;
}

void mem_free_reused(void *ptr)
{
    if (ptr != NULL) {
        dallocx(ptr, MALLOCX_TCACHE_NONE);
    }
}

#else

void *mem_alloc_reused(size_t size)
{
    return mem_alloc(size);
}

void mem_free_reused(void *ptr)
{
    mem_free(ptr);
}

#endif

/* ---- zeroed, aligned, resized ---- */

/* Up to so many bytes an allocation that is then set to zero is cheaper than calloc, for which
 * jemalloc has no fast way. */
#define SMALL_CALLOC_BYTES 1024

void *mem_calloc(size_t count, size_t size)
{
    void *ptr;
    size_t bytes;
    if (likely(!__builtin_mul_overflow(count, size, &bytes) && bytes <= SMALL_CALLOC_BYTES)) {
        return memset(mem_alloc(bytes), 0, bytes);
    }
    if (KEYDB_DEBUG) {
        mem_check_seam(count * size);
    }
    do {
        ptr = calloc(count != 0 ? count : 1, size != 0 ? size : 1);
    } while (unlikely(ptr == NULL) && spend_reserve());
    if (unlikely(ptr == NULL)) {
        mem_die(count * size);
    }
    return ptr;
}

void *mem_alloc_aligned(size_t alignment, size_t size)
{
    assert(alignment != 0 && (alignment & (alignment - 1)) == 0);
    if (alignment < sizeof(void *)) {
        alignment = sizeof(void *);
    }
    void *ptr = NULL;
    if (KEYDB_DEBUG) {
        mem_check_seam(size);
    }
    while (unlikely(posix_memalign(&ptr, alignment, size != 0 ? size : 1) != 0)) {
        if (!spend_reserve()) {
            mem_die(size);
        }
    }
    return ptr;
}

void *mem_realloc(void *ptr, size_t size)
{
    void *moved;
    if (KEYDB_DEBUG) {
        mem_check_seam(size);
    }
    do {
        moved = resize(ptr, size);
    } while (unlikely(moved == NULL) && spend_reserve());
    if (unlikely(moved == NULL)) {
        mem_die(size);
    }
    return moved;
}

void mem_check_seam(size_t size)
{
    if (unlikely(size > atomic_load_explicit(&fail_above, memory_order_relaxed))) {
        mem_die(size);
    }
}

void mem_fail_above(size_t bytes)
{
    atomic_store_explicit(&fail_above, bytes, memory_order_relaxed);
}

void mem_fail_after(unsigned calls)
{
    fail_countdown = calls;
}

/* True when a test seam wants this call to fail, or no allocator could satisfy it: sizes above
 * PTRDIFF_MAX never succeed, and asking would only make sanitizers complain. */
static bool mem_must_fail(size_t size)
{
    if (unlikely(fail_countdown != 0) && --fail_countdown == 0) {
        return true;
    }
    return size > PTRDIFF_MAX || size > atomic_load_explicit(&fail_above, memory_order_relaxed);
}

void *mem_try_alloc(size_t size)
{
    if (mem_must_fail(size)) {
        return NULL;
    }
    return allocate(size);
}

void *mem_try_realloc(void *ptr, size_t size)
{
    if (mem_must_fail(size)) {
        return NULL;
    }
    return resize(ptr, size);
}

bool mem_reserve(size_t bytes)
{
    mem_unreserve();
    reserve = mem_try_alloc(bytes);
    return reserve != NULL;
}

void mem_unreserve(void)
{
    free(reserve);
    reserve = NULL;
}

char *mem_dup(const char *bytes, size_t len)
{
    assert(len < PTRDIFF_MAX);
    char *copy = mem_alloc(len + 1);
    if (len > 0) {
        memcpy(copy, bytes, len);
    }
    copy[len] = '\0';
    return copy;
}

size_t mem_usable_size(const void *ptr)
{
    /* The count is asked for, not the right to write there: the const is kept in spirit. */
    return malloc_usable_size((void *)(uintptr_t)ptr);
}

/* ---- accounting ---- */

static size_t mem_remember_peak(size_t used)
{
    size_t seen = atomic_load_explicit(&peak_bytes, memory_order_relaxed);
    while (used > seen &&
           !atomic_compare_exchange_weak_explicit(&peak_bytes, &seen, used, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
    return used;
}

size_t mem_peak_bytes(void)
{
    return atomic_load_explicit(&peak_bytes, memory_order_relaxed);
}

size_t mem_rss_bytes(void)
{
    char text[1024];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t len = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (len <= 0) {
        return 0;
    }
    text[len] = '\0';
    /* Field 2, the program's name, may hold blanks: count from behind its closing parenthesis. RSS
     * in pages is field 24 (proc(5)). */
    char *p = strrchr(text, ')');
    for (int field = 2; p != NULL && field < 24; field++) {
        p = strchr(p + 1, ' ');
    }
    return p == NULL ? 0 : strtoull(p + 1, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

#if KEYDB_JEMALLOC && !defined(MEM_SANITIZER)

/* One registered thread: jemalloc's two counters in that thread's thread-local storage, both NULL
 * when the place is free. They are written by their thread without a lock; a torn sum is off by
 * what that thread did between the two reads. */
struct mem_thread {
    const volatile uint64_t *allocated;
    const volatile uint64_t *deallocated;
};

/* Guards `threads` and `departed`: a counter must not be read once its thread has gone. The fork
 * handlers keep it usable in children. */
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static struct mem_thread threads[MEM_MAX_THREADS];
static unsigned thread_places; /* places ever used */
static int64_t departed;       /* balance of threads that have left */
static _Thread_local int own_place = -1;
static _Atomic int64_t correction; /* what mem_stats() found that the sum does not see */

static int64_t mem_thread_balance(const struct mem_thread *t)
{
    return (int64_t)(*t->allocated - *t->deallocated);
}

static void mem_fork_prepare(void)
{
    pthread_mutex_lock(&registry);
}

static void mem_fork_parent(void)
{
    pthread_mutex_unlock(&registry);
}

/* In a child only the caller runs on: the others' balances are frozen, and their storage may go. */
static void mem_fork_child(void)
{
    for (unsigned i = 0; i < thread_places; i++) {
        if (threads[i].allocated != NULL && (int)i != own_place) {
            departed += mem_thread_balance(&threads[i]);
            threads[i] = (struct mem_thread){NULL, NULL};
        }
    }
    pthread_mutex_unlock(&registry);
}

static void mem_register_fork_handlers(void)
{
    if (pthread_atfork(mem_fork_prepare, mem_fork_parent, mem_fork_child) != 0) {
        mem_die(0);
    }
}

void mem_thread_enter(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, mem_register_fork_handlers);
    if (own_place >= 0) {
        return;
    }
    uint64_t *allocated, *deallocated;
    size_t size = sizeof(allocated);
    if (mallctl("thread.allocatedp", &allocated, &size, NULL, 0) != 0 ||
        mallctl("thread.deallocatedp", &deallocated, &size, NULL, 0) != 0) {
        return; /* jemalloc without statistics: mem_stats() corrects nothing either */
    }
    pthread_mutex_lock(&registry);
    for (int i = 0; i < MEM_MAX_THREADS && own_place < 0; i++) {
        if (threads[i].allocated == NULL) {
            threads[i] = (struct mem_thread){allocated, deallocated};
            own_place = i;
            if ((unsigned)i >= thread_places) {
                thread_places = (unsigned)i + 1;
            }
        }
    }
    pthread_mutex_unlock(&registry);
    mem_own_allocated = allocated;
    mem_own_deallocated = deallocated;
}

void mem_thread_leave(void)
{
    if (own_place < 0) {
        return;
    }
    mem_own_allocated = mem_own_deallocated = NULL;
    pthread_mutex_lock(&registry);
    departed += mem_thread_balance(&threads[own_place]);
    threads[own_place] = (struct mem_thread){NULL, NULL};
    pthread_mutex_unlock(&registry);
    own_place = -1;
}

static int64_t mem_sum_threads(void)
{
    pthread_mutex_lock(&registry);
    int64_t sum = departed;
    for (unsigned i = 0; i < thread_places; i++) {
        if (threads[i].allocated != NULL) {
            sum += mem_thread_balance(&threads[i]);
        }
    }
    pthread_mutex_unlock(&registry);
    return sum;
}

size_t mem_used_bytes(void)
{
    int64_t used = mem_sum_threads() + atomic_load_explicit(&correction, memory_order_relaxed);
    /* Memory that a thread nobody counted handed to one that frees it can pull the sum below zero.
     */
    return mem_remember_peak(used > 0 ? (size_t)used : 0);
}

static size_t mem_read_stat(const char *name)
{
    size_t value = 0;
    size_t size = sizeof(value);
    return mallctl(name, &value, &size, NULL, 0) == 0 ? value : 0;
}

struct mem_stats mem_stats(void)
{
    uint64_t epoch = 1;
    size_t size = sizeof(epoch);
    mallctl("epoch", &epoch, &size, &epoch, size);
    struct mem_stats stats = {
        .allocated_bytes = mem_read_stat("stats.allocated"),
        .active_bytes = mem_read_stat("stats.active"),
        .resident_bytes = mem_read_stat("stats.resident"),
    };
    /* What threads have freed and keep for their next requests counts as allocated there. */
    char cached[48];
    snprintf(cached, sizeof(cached), "stats.arenas.%u.tcache_bytes", (unsigned)MALLCTL_ARENAS_ALL);
    int64_t truth = (int64_t)(stats.allocated_bytes - mem_read_stat(cached));
    int64_t off = truth - mem_sum_threads();
    int64_t corrected_off = off - atomic_load_explicit(&correction, memory_order_relaxed);
    if (truth != 0 && llabs(corrected_off) > truth / 100) {
        atomic_store_explicit(&correction, off, memory_order_relaxed);
    }
    return stats;
}

size_t mem_good_size(size_t size)
{
    return nallocx(size != 0 ? size : 1, 0);
}

#define MEM_TEXT_OF(number) #number
#define MEM_VERSION_TEXT(major, minor, bugfix)                                                     \
    MEM_TEXT_OF(major) "." MEM_TEXT_OF(minor) "." MEM_TEXT_OF(bugfix)

const char *mem_allocator_name(void)
{
    return "jemalloc-" MEM_VERSION_TEXT(JEMALLOC_VERSION_MAJOR, JEMALLOC_VERSION_MINOR,
                                        JEMALLOC_VERSION_BUGFIX);
}

void mem_purge(void)
{
    mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
    char name[32];
    snprintf(name, sizeof(name), "arena.%u.purge", (unsigned)MALLCTL_ARENAS_ALL);
    mallctl(name, NULL, NULL, NULL, 0);
}

bool mem_set_background(bool on)
{
    return mallctl("background_thread", NULL, NULL, &on, sizeof(on)) == 0;
}

#else

bool mem_set_background(bool on)
{
    (void)on;
    return true;
}

void mem_thread_enter(void)
{
}

void mem_thread_leave(void)
{
}

void mem_purge(void)
{
#if !defined(MEM_SANITIZER)
    malloc_trim(0);
#endif
}

size_t mem_used_bytes(void)
{
    return mem_remember_peak(mem_stats().allocated_bytes);
}

size_t mem_good_size(size_t size)
{
    /* glibc: 8 bytes of header, steps of 16, at least 24 usable. */
    return size <= 24 ? 24 : ((size + 8 + 15) & ~(size_t)15) - 8;
}

#if defined(MEM_SANITIZER)

struct mem_stats mem_stats(void)
{
    size_t used = __sanitizer_get_current_allocated_bytes();
    size_t heap = __sanitizer_get_heap_size();
    return (struct mem_stats){used, heap > used ? heap : used, mem_rss_bytes()};
}

const char *mem_allocator_name(void)
{
    return "sanitizer";
}

#else

struct mem_stats mem_stats(void)
{
    struct mallinfo2 info = mallinfo2();
    size_t used = info.uordblks + info.hblkhd;
    return (struct mem_stats){used, info.arena + info.hblkhd, mem_rss_bytes()};
}

const char *mem_allocator_name(void)
{
    return "libc";
}

#endif
#endif

/* From this size on a system call costs less than the writing. */
#define ZERO_BY_PAGES_BYTES ((size_t)1 << 20)

void mem_zero(void *ptr, size_t size)
{
    const uintptr_t page = 4096;
    uintptr_t start = (uintptr_t)ptr, stop = start + size;
    uintptr_t begin = (start + page - 1) & ~(page - 1), end = stop & ~(page - 1);
    /* The allocators' blocks are private anonymous mappings, whose pages come back as zeros
     * (madvise(2)); where pages are locked, or larger, the call fails. */
    if (size < ZERO_BY_PAGES_BYTES || madvise((void *)begin, end - begin, MADV_DONTNEED) != 0) {
        memset(ptr, 0, size);
        return;
    }
    memset(ptr, 0, begin - start);
    memset((void *)end, 0, stop - end);
}

void mem_populate(void *ptr, size_t size)
{
    const uintptr_t page = 4096;
    uintptr_t begin = ((uintptr_t)ptr + page - 1) & ~(page - 1);
    uintptr_t end = ((uintptr_t)ptr + size) & ~(page - 1);
    if (end > begin) {
#ifdef MADV_POPULATE_WRITE
        (void)madvise((void *)begin, end - begin, MADV_POPULATE_WRITE);
#endif
    }
}
