/* Memory: the one door to the allocator. jemalloc counts for us (every thread's allocated and
 * deallocated bytes), so an allocation pays nothing for accounting. Sanitizer builds use the
 * sanitizer's allocator and its count. State: atomic. Failures: the plain verbs never return NULL;
 * a failed allocation logs the size and aborts, since nothing sensible can follow. Sizes that a
 * client chose go through the _try verbs, which return NULL, or are reserved before the work
 * begins. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* The Makefile says whether malloc is jemalloc's; who compiles without it gets the portable form.
 */
#if !defined(KEYDB_JEMALLOC)
#define KEYDB_JEMALLOC 0
#endif
#if KEYDB_JEMALLOC
/* Declared here rather than by <jemalloc/jemalloc.h>, so that including this header stays cheap. */
extern void sdallocx(void *ptr, size_t size, int flags);
#endif

/* Logs that `size` bytes were not to be had, and aborts. */
NORETURN void mem_die(size_t size);
/* What the verbs below do when the allocator has refused: they spend the thread's reserve
 * (mem_reserve), try again, and die. */
void *mem_alloc_again(size_t size) __attribute__((malloc, alloc_size(1), returns_nonnull));
#if !defined(KEYDB_DEBUG)
#define KEYDB_DEBUG 0
#endif
/* Debug builds: the plain verbs die as well where a test has asked for it (mem_fail_above). */
void mem_check_seam(size_t size);

/* Allocates `size` bytes (0 is taken as 1), 16-byte aligned. Never NULL. The caller owns them. */
__attribute__((malloc, alloc_size(1), returns_nonnull)) static inline void *mem_alloc(size_t size)
{
    if (KEYDB_DEBUG) {
        mem_check_seam(size);
    }
    void *ptr = malloc(size != 0 ? size : 1);
    return unlikely(ptr == NULL) ? mem_alloc_again(size) : ptr;
}

/* Like mem_alloc, zeroed. */
void *mem_calloc(size_t count, size_t size)
    __attribute__((malloc, alloc_size(1, 2), returns_nonnull));
/* Like mem_alloc, aligned to `alignment` (a power of two). */
void *mem_alloc_aligned(size_t alignment, size_t size)
    __attribute__((malloc, alloc_size(2), returns_nonnull));
/* Resizes `ptr` (may be NULL) to `size` bytes. Never NULL. */
void *mem_realloc(void *ptr, size_t size) __attribute__((alloc_size(2), returns_nonnull));
/* Like mem_alloc and mem_realloc, but NULL when the memory is not to be had; `ptr` then lives on. A
 * block of several megabytes from here, or from mem_realloc, that has to move when it grows moves
 * by its pages (base/mem_pages.h): in no time, and what nobody has touched stays untouched. */
void *mem_try_alloc(size_t size) MUST_CHECK;
void *mem_try_realloc(void *ptr, size_t size) MUST_CHECK;
/* Frees what the verbs above returned; NULL is fine. */
static inline void mem_free(void *ptr)
{
    if (ptr != NULL) { /* which jemalloc finds out late */
        free(ptr);
    }
}
/* Frees `ptr`, whose allocation had asked for `size` bytes (cheaper: no size look-up). NULL is
 * fine. */
static inline void mem_free_sized(void *ptr, size_t size)
{
#if KEYDB_JEMALLOC
    if (likely(ptr != NULL)) {
        sdallocx(ptr, size != 0 ? size : 1, 0);
    }
#else
    (void)size;
    free(ptr);
#endif
}
/* The same two for blocks of some pages that come and go in bursts, and will be wanted again: what
 * is free of them stays resident for a minute, not for ten seconds as other memory does, so that
 * the next burst finds its pages there. They are freed by mem_free_reused. */
void *mem_alloc_reused(size_t size) __attribute__((malloc, alloc_size(1), returns_nonnull));
void mem_free_reused(void *ptr);
/* A NUL-terminated copy of `len` bytes. The caller owns it. */
char *mem_dup(const char *bytes, size_t len) __attribute__((malloc, returns_nonnull));
/* Bytes the allocator really set aside for `ptr` / would set aside for a request of `size`. */
size_t mem_usable_size(const void *ptr);
size_t mem_good_size(size_t size);
/* The size class of a request, computed: asking the allocator costs more than an allocation.
 * jemalloc's classes (quantum 16): steps of 16 up to 128, then four classes to each doubling. With
 * another allocator this merely rounds up. */
static inline size_t mem_size_class(size_t size)
{
    if (size <= 128) {
        return (size + 15) & ~(size_t)15;
    }
    unsigned log2_floor = 63u - (unsigned)__builtin_clzll(size - 1);
    size_t step = (size_t)1 << (log2_floor - 2);
    return (size + step - 1) & ~(step - 1);
}
/* For work whose need a client's request decides, deep inside code that allocates by the plain
 * verbs (a list takes a copy of a large element): sets `bytes` aside for the calling thread. True:
 * until mem_unreserve() the plain verbs of this thread find that much, even if the allocator has
 * nothing else. False: the memory is not there, the work must not begin. The pages are not touched.
 * A reserve that is there already is given back first. */
bool mem_reserve(size_t bytes) MUST_CHECK;
void mem_unreserve(void);
/* Test seam: from now on every call of a _try verb, and of mem_reserve, for more than `bytes`
 * fails, on every thread; SIZE_MAX switches it off. In debug builds the plain verbs die then, as
 * they would where the allocator refuses: that is how tests find large allocations that nobody
 * asked for first. */
void mem_fail_above(size_t bytes);
/* Test seam: from now on the `calls`-th call of a _try verb on this thread (1 is the next) fails,
 * once; 0 switches it off. */
void mem_fail_after(unsigned calls);

/* Bytes in use in the whole process as the allocator counts them. Any thread; under a microsecond.
 * Counts the threads that have entered, plus what the last mem_stats() found that others hold. */
size_t mem_used_bytes(void);
/* Bytes that the calling thread has allocated so far less those that it has freed, whoever had
 * allocated them: for who wants to know by how much it has grown the process since a moment ago.
 * Two loads. INT64_MAX where the allocator does not count by threads, or the thread has not
 * entered. */
static inline int64_t mem_own_balance(void);
/* The highest value that mem_used_bytes() has returned so far. */
size_t mem_peak_bytes(void);
/* Resident set size of the process in bytes, from /proc/self/stat; 0 when unreadable. */
size_t mem_rss_bytes(void);
/* Allocator figures for INFO: bytes allocated, in active pages, in resident pages. Any thread; tens
 * of microseconds. Where the sum of mem_used_bytes() is more than 1 % off what is really in use
 * (memory of threads that never entered; allocated_bytes without what the threads' caches hold), it
 * is corrected by the difference from then on. */
struct mem_stats {
    size_t allocated_bytes;
    size_t active_bytes;
    size_t resident_bytes;
};
struct mem_stats mem_stats(void);
/* Threads that may be registered at once. */
#define MEM_MAX_THREADS 96
/* Makes the calling thread's counters visible to mem_used_bytes(). Each thread calls it once when
 * it starts and mem_thread_leave() before it ends (its balance is kept). Entering twice does
 * nothing; without a free place the thread stays uncounted until mem_stats() corrects the sum. */
void mem_thread_enter(void);
void mem_thread_leave(void);
#if KEYDB_JEMALLOC
/* The calling thread's counters, both NULL before it enters; mem_own_balance's. */
extern _Thread_local const volatile uint64_t *mem_own_allocated, *mem_own_deallocated;
#endif
static inline int64_t mem_own_balance(void)
{
#if KEYDB_JEMALLOC
    if (likely(mem_own_allocated != NULL)) {
        return (int64_t)(*mem_own_allocated - *mem_own_deallocated);
    }
#endif
    return INT64_MAX;
}
/* Name and version of the allocator, as INFO's mem_allocator shows it ("jemalloc-5.3.0"). */
const char *mem_allocator_name(void);
/* Has threads of the allocator's return dirty pages to the system after a while, instead of those
 * that allocate; or no more. False when the allocator refuses. One that has no such threads does
 * nothing. */
bool mem_set_background(bool on) MUST_CHECK;
/* Returns dirty pages to the system (MEMORY PURGE). */
void mem_purge(void);
/* Sets `size` bytes to zero. Of a large block the whole pages are given back to the system instead,
 * which supplies zeros when they are touched: no time is spent, and no memory, on what nobody
 * touches. `ptr` is in a block of this header. */
void mem_zero(void *ptr, size_t size);
/* Has the system supply the pages of a fresh block at once (MADV_POPULATE_WRITE, Linux 5.14;
 * elsewhere they come one by one as they are touched). */
void mem_populate(void *ptr, size_t size);

#endif
