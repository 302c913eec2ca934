/* See hash.h. The long form consumes 16 bytes a step and folds the last 16 bytes, overlapping, at
 * the end. */
#include "base/hash.h"

#include "base/rand.h"

struct hash_secret hash_secret = {
    {0x2d358dccaa6c78a5u, 0x8bb84b93962eacc9u, 0x4b33a62ed433d4a3u, 0x4d5a2da51de1aa47u}};

void hash_setup(void)
{
    rand_secret(&hash_secret, sizeof(hash_secret));
    for (int i = 0; i < 4; i++) {
        hash_secret.word[i] |= 1; /* a zero word would annihilate a product */
    }
}

void hash_set_secret(uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        hash_secret.word[i] = (seed ^ (seed >> 29)) | 1;
    }
}

uint64_t hash_long(const char *bytes, size_t len)
{
    const struct hash_secret *k = &hash_secret;
    uint64_t state = k->word[3] ^ len;
    const char *last = bytes + len - 16;
    for (const char *p = bytes; p < last; p += 16) {
        state = hash_fold(hash_load64(p) ^ k->word[1], hash_load64(p + 8) ^ state);
    }
    uint64_t mixed = hash_fold(hash_load64(last) ^ k->word[0], hash_load64(last + 8) ^ state);
    return hash_fold(mixed ^ k->word[2], k->word[3] ^ len);
}
