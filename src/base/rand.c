/* xoshiro256** (Blackman and Vigna, public domain) a thread, and the system's generator for
 * secrets. */
#include "base/rand.h"

#include "base/compiler.h"
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Words of generator state; all zero means "not seeded yet", a state the generator never reaches.
 */
static _Thread_local uint64_t state[4];

static uint64_t rotate_left(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

uint64_t rand_u64(void)
{
    if (unlikely((state[0] | state[1] | state[2] | state[3]) == 0)) {
        rand_secret(state, sizeof(state));
        state[0] |= 1;
    }
    uint64_t result = rotate_left(state[1] * 5, 7) * 9;
    uint64_t shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotate_left(state[3], 45);
    return result;
}

void rand_set_seed(uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        state[i] = seed ^ (seed >> 29);
    }
    state[0] |= 1;
}

uint64_t rand_below(uint64_t bound)
{
    assert(bound >= 1);
    /* Lemire's method: the high word of a product is uniform once the few low words that would be
     * hit too often are rejected. */
    __uint128_t product = (__uint128_t)rand_u64() * bound;
    if (unlikely((uint64_t)product < bound)) {
        uint64_t threshold = (0 - bound) % bound;
        while ((uint64_t)product < threshold) {
            product = (__uint128_t)rand_u64() * bound;
        }
    }
    return (uint64_t)(product >> 64);
}

void rand_secret(void *out, size_t len)
{
    char *p = out;
    while (len > 0) {
        ssize_t got = getrandom(p, len, 0);
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            log_warning("The system has no random numbers to give: %s", strerror(errno));
            abort();
        }
        p += got;
        len -= (size_t)got;
    }
}

void rand_hex(char *out, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    while (len > 0) {
        unsigned char raw[32];
        size_t chunk = len < sizeof(raw) ? len : sizeof(raw);
        rand_secret(raw, chunk);
        for (size_t i = 0; i < chunk; i++) {
            *out++ = digits[raw[i] & 15];
        }
        len -= chunk;
    }
}
