/* What we ask of the compiler: branch hints, checked results, and clang's thread-safety
 * capabilities (https://clang.llvm.org/docs/ThreadSafetyAnalysis.html), which are empty for gcc. */
#ifndef BASE_COMPILER_H
#define BASE_COMPILER_H

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(format_index, first_index)                                                     \
    __attribute__((format(printf, format_index, first_index)))
#define NORETURN __attribute__((noreturn))
#define ALIGNED(bytes) __attribute__((aligned(bytes)))
#define UNUSED __attribute__((unused))
/* For the few functions of the hottest path that have more than one caller. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Bytes of a cache line on the machines we build for. */
#define CACHE_LINE_BYTES 64

#if defined(__clang__)
#define TS_ATTRIBUTE(x) __attribute__((x))
#else
#define TS_ATTRIBUTE(x)
#endif

#define CAPABILITY(name) TS_ATTRIBUTE(capability(name))
#define GUARDED_BY(lock) TS_ATTRIBUTE(guarded_by(lock))
#define ACQUIRE(...) TS_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define ACQUIRE_SHARED(...) TS_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define RELEASE(...) TS_ATTRIBUTE(release_capability(__VA_ARGS__))
#define RELEASE_SHARED(...) TS_ATTRIBUTE(release_shared_capability(__VA_ARGS__))
#define RELEASE_GENERIC(...) TS_ATTRIBUTE(release_generic_capability(__VA_ARGS__))
#define TRY_ACQUIRE(result, ...) TS_ATTRIBUTE(try_acquire_capability(result, __VA_ARGS__))
#define TRY_ACQUIRE_SHARED(result, ...)                                                            \
    TS_ATTRIBUTE(try_acquire_shared_capability(result, __VA_ARGS__))
#define REQUIRES(...) TS_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define REQUIRES_SHARED(...) TS_ATTRIBUTE(requires_shared_capability(__VA_ARGS__))
#define EXCLUDES(...) TS_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define ASSERT_HELD(...) TS_ATTRIBUTE(assert_capability(__VA_ARGS__))
#define ASSERT_HELD_SHARED(...) TS_ATTRIBUTE(assert_shared_capability(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS TS_ATTRIBUTE(no_thread_safety_analysis)

#endif
