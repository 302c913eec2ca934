/* Passwords. What users keep of one is its SHA-256, so that a comparison takes the same time
 * whatever the two have in common, lengths included. requirepass is the default user's password as
 * an option; its text is kept for CONFIG GET and REWRITE. */
#include "engine/auth.h"

#include "base/mem.h"
#include "engine/acl.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define DIGEST_BYTES 32

static struct {
    bool required;          /* read by every thread for every request */
    struct buf requirepass; /* "" when none is set */
} auth;

/* Set at boot. */
static void (*watcher)(struct session *s);
static _Atomic(auth_ask_fn) asker;

/* The algorithm, looked for once: OpenSSL looks in its tables, behind locks, for one by name. Kept
 * to the end. */
static const EVP_MD *sha256;

static void fetch_sha256(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (!sha256) {
        abort();
    }
}

void auth_hash(struct slice password, char hash[AUTH_HASH_CHARS])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[DIGEST_BYTES];
    unsigned len = 0;
    static pthread_once_t fetched = PTHREAD_ONCE_INIT;
    pthread_once(&fetched, fetch_sha256);
    if (EVP_Digest(password.len > 0 ? password.ptr : "", password.len, digest, &len, sha256,
                   NULL) != 1) {
        abort(); /* only an allocation can fail in there */
    }
    assert(len == DIGEST_BYTES);
    for (unsigned i = 0; i < DIGEST_BYTES; i++) {
        hash[2 * i] = digits[digest[i] >> 4];
        hash[2 * i + 1] = digits[digest[i] & 15];
    }
}

void auth_forget(struct buf *secret)
{
    if (secret->data) {
        OPENSSL_cleanse(secret->data, secret->capacity);
    }
    buf_deinit(secret);
}

bool auth_required(void)
{
    return auth.required;
}

bool auth_default_takes_any(void)
{
    return acl_default_user()->nopass;
}

void auth_publish(void)
{
    const struct acl_user *user = acl_default_user();
    auth.required = !user->nopass || !user->enabled;
}

/* Takes the same time for every wrong password, and where there is no such user. */
static bool is_right(const struct acl_user *user, struct slice password)
{
    char hash[AUTH_HASH_CHARS];
    auth_hash(password, hash);
    bool right = user && user->nopass;
    for (int i = 0; user && i < user->password_count; i++) {
        right |= CRYPTO_memcmp(hash, user->passwords[i], AUTH_HASH_CHARS) == 0;
    }
    return right && user->enabled;
}

bool auth_check(struct session *s, struct slice name, struct slice password)
{
    const struct acl_user *user = acl_user_find(name);
    bool takes_any = user && user->nopass && user->enabled;
    bool right = takes_any || is_right(user, password);
    if (right) {
        auth_become(s, user);
    }
    return right;
}

bool auth_wants_exclusive(const struct session *s)
{
    return s->user_is_watched || auth_has_asker();
}

bool auth_has_asker(void)
{
    return atomic_load_explicit(&asker, memory_order_relaxed) != NULL;
}

void auth_set_asker(auth_ask_fn ask)
{
    atomic_store(&asker, ask);
}

enum auth_answer auth_ask(struct call *c, struct slice user, struct slice password,
                          struct buf *error)
{
    auth_ask_fn ask = atomic_load(&asker);
    return ask ? ask(c, user, password, error) : AUTH_LEFT;
}

void auth_note_change(struct session *s)
{
    if (unlikely(s->user_is_watched)) {
        s->user_is_watched = false;
        if (watcher) {
            watcher(s);
        }
    }
}

void auth_set_watcher(void (*changes)(struct session *s))
{
    watcher = changes;
}

void auth_become(struct session *s, const struct acl_user *user)
{
    auth_note_change(s);
    s->authenticated = true;
    s->acl = user;
    s->user = user->name;
}

void auth_apply_requirepass(struct acl_user *user)
{
    acl_set_password(user, buf_slice(&auth.requirepass));
}

static bool requirepass_parse(const struct option *option UNUSED, const struct slice *words,
                              int count, const char **error UNUSED)
{
    assert(count == 1);
    auth_forget(&auth.requirepass);
    buf_append_slice(&auth.requirepass, words[0]);
    acl_set_password(acl_default_user(), words[0]);
    auth_publish();
    return true;
}

static void requirepass_format(const struct option *option UNUSED, struct buf *out)
{
    buf_append_slice(out, buf_slice(&auth.requirepass));
}

const struct option auth_options[] = {
    {.name = "requirepass",
     .type = OPTION_CUSTOM,
     .flags = OPTION_SENSITIVE,
     .initial = "",
     .parse = requirepass_parse,
     .format = requirepass_format},
    {.name = NULL},
};
