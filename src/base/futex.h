/* The two futex calls that locks park with (futex(2), private to the process). State: none. */
#ifndef BASE_FUTEX_H
#define BASE_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/* Sleeps while *word is `expected`, at most `timeout_ns` (0: without limit). May return early for
 * no reason. */
void futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
/* Wakes up to `count` sleepers on `word`. */
void futex_wake(_Atomic uint32_t *word, int count);

/* One step of a spinning wait: a pause of 1 to 8 processor hints, drawn from `*seed`, so that
 * waiters do not step in time with one another. */
static inline void spin_pause(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    for (uint32_t i = (*seed >> 29) + 1; i > 0; i--) {
        __builtin_ia32_pause();
    }
}

/* Rounds of spin_pause before parking: about 2 microseconds, a pause hint being 20 to 50 ns on the
 * machines we know (DESIGN, 2: a longer wait costs more than the system call). */
#define SPIN_ROUNDS 12

#endif
