/* See digest.h. Elements of a sequence are mixed in order; sequences in any order give the same:
 * a set is so many sequences of one element. A digest belongs to the thread that computes it. */
#include "module/digest.h"

#include "base/num.h"
#include "module/text.h"
#include "module/types.h"

#include <assert.h>
#include <openssl/evp.h>
#include <string.h>

#define SHA1_BYTES 20

struct RedisModuleDigest {
    uint8_t sequence[SHA1_BYTES]; /* that is open */
    uint8_t sum[SHA1_BYTES];      /* of those that have ended */
    struct module_place at;
    RedisModuleString *key; /* made when asked for */
};

static void sha1(const void *bytes, size_t len, uint8_t digest[SHA1_BYTES])
{
    unsigned digest_len = 0;
    int ok = EVP_Digest(bytes, len, digest, &digest_len, EVP_sha1(), NULL);
    assert(ok == 1 && digest_len == SHA1_BYTES);
    (void)ok;
}

static void add_to(uint8_t into[SHA1_BYTES], const uint8_t from[SHA1_BYTES])
{
    for (int i = 0; i < SHA1_BYTES; i++) {
        into[i] ^= from[i];
    }
}

void digest_value(const struct module_kind *k, struct module_place at, void *value,
                  uint8_t digest[SHA1_BYTES])
{
    const RedisModuleType *t = type_of_kind(k);
    RedisModuleDigest d = {.at = at};
    if (t->methods.digest) {
        const char *outer = type_enter(t);
        t->methods.digest(&d, value);
        type_leave(outer);
    }
    memcpy(digest, d.sum, SHA1_BYTES);
    if (d.key) {
        text_release(d.key);
    }
}

static void rm_add_string(RedisModuleDigest *d, const char *bytes, size_t len)
{
    uint8_t element[SHA1_BYTES], mixed[SHA1_BYTES];
    sha1(bytes, len, element);
    add_to(d->sequence, element);
    sha1(d->sequence, SHA1_BYTES, mixed);
    memcpy(d->sequence, mixed, SHA1_BYTES);
}

static void rm_add_number(RedisModuleDigest *d, long long number)
{
    char text[NUM_I64_MAX_CHARS];
    rm_add_string(d, text, num_format_i64(text, number));
}

static void rm_end_sequence(RedisModuleDigest *d)
{
    add_to(d->sum, d->sequence);
    memset(d->sequence, 0, SHA1_BYTES);
}

static int rm_db_of(RedisModuleDigest *d)
{
    return d->at.db;
}

static const RedisModuleString *rm_key_of(RedisModuleDigest *d)
{
    if (!d->key && d->at.key.ptr) {
        d->key = text_create(d->at.key);
    }
    return d->key;
}

const struct api_function digest_functions[] = {
    API(DigestAddStringBuffer, rm_add_string), API(DigestAddLongLong, rm_add_number),
    API(DigestEndSequence, rm_end_sequence),   API(GetDbIdFromDigest, rm_db_of),
    API(GetKeyNameFromDigest, rm_key_of),      {NULL, NULL},
};
