/* Random numbers. Fast ones are per thread (xoshiro256**, seeded from the system); secret ones come
 * from getrandom(2). State: thread-owned. */
#ifndef BASE_RAND_H
#define BASE_RAND_H

#include <stddef.h>
#include <stdint.h>

/* The next 64 random bits of the calling thread. Not for secrets. */
uint64_t rand_u64(void);
/* Test seam: fixes what the calling thread gets from now on. */
void rand_set_seed(uint64_t seed);
/* Uniform in [0, bound), bound >= 1, without modulo bias. */
uint64_t rand_below(uint64_t bound);
/* Fills `out` with bytes from the system's generator; aborts when there is none. */
void rand_secret(void *out, size_t len);
/* Fills `out` with `len` lower-case hexadecimal digits of secret randomness (run ids); no NUL. */
void rand_hex(char *out, size_t len);

#endif
