/* See access.h. */
#include "metrics/access.h"

#include "engine/acl.h"
#include "engine/acl_log.h"
#include "engine/auth.h"
#include "metrics/settings.h"
#include "net/settings.h"

#include <event2/http.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>

/* Of "user:password", decoded. */
#define CREDENTIALS_MAX_BYTES ((size_t)4 * 1024)

/* ---- the token ---- */

static bool is_token(struct slice word)
{
    const char *token = metrics_settings.token;
    char right[AUTH_HASH_CHARS], given[AUTH_HASH_CHARS];
    if (!token || !token[0]) {
        return false;
    }
    auth_hash(slice_cstr(token), right);
    auth_hash(word, given);
    return CRYPTO_memcmp(right, given, AUTH_HASH_CHARS) == 0;
}

/* ---- Authorization ---- */

/* The credentials when the scheme is this one. */
static bool has_scheme(struct slice text, const char *scheme, struct slice *credentials)
{
    size_t len = strlen(scheme);
    if (text.len <= len + 1 || text.ptr[len] != ' ' ||
        !slice_equal_nocase(slice_of(text.ptr, len), scheme)) {
        return false;
    }
    *credentials = slice_of(text.ptr + len, text.len - len);
    while (credentials->len > 0 && credentials->ptr[0] == ' ') {
        *credentials = slice_of(credentials->ptr + 1, credentials->len - 1);
    }
    return true;
}

/* Decodes base64 into user and password, which point into `bytes`. */
static bool decode(struct slice text, char *bytes, struct slice *user, struct slice *password)
{
    unsigned padding = 0;
    while (padding < 2 && padding < text.len && text.ptr[text.len - 1 - padding] == '=') {
        padding++;
    }
    if (text.len == 0 || text.len % 4 || text.len / 4 * 3 > CREDENTIALS_MAX_BYTES) {
        return false;
    }
    int len =
        EVP_DecodeBlock((unsigned char *)bytes, (const unsigned char *)text.ptr, (int)text.len);
    if (len < (int)padding) {
        return false;
    }
    size_t whole = (size_t)len - padding;
    const char *colon = memchr(bytes, ':', whole);
    if (!colon) {
        return false;
    }
    *user = slice_of(bytes, (size_t)(colon - bytes));
    *password = slice_of(colon + 1, whole - user->len - 1);
    return true;
}

/* ---- users ---- */

static bool may_run(const struct session *s, const char *command, const char *word)
{
    struct slice argv[] = {slice_cstr(command), slice_cstr(word)};
    char full[64];
    int at;
    const struct command *cmd = command_find_full(argv[0]);
    snprintf(full, sizeof(full), "%s|%s", command, word);
    const struct command *sub = command_find_full(slice_cstr(full));
    return acl_check(s->acl, sub ? sub : cmd, argv, 2, &at) == ACL_ALLOWED;
}

static bool may_see_keys(struct session *s)
{
    struct slice argv[] = {SLICE("scan"), SLICE("0")};
    struct call c = {.session = s, .cmd = command_find_full(argv[0]), .argc = 2, .argv = argv};
    struct slice usage[] = {SLICE("memory"), SLICE("usage"), SLICE("")};
    int at;
    return acl_may_read_all_keys(&c) && acl_check(s->acl, command_find_full(SLICE("memory|usage")),
                                                  usage, 2, &at) == ACL_ALLOWED;
}

static int admit_user(struct session *s, struct visitor *v)
{
    if (!may_run(s, "info", "everything")) {
        acl_log_note(s, command_find_full(SLICE("info")), ACL_DENIED_COMMAND, ACL_CONTEXT_TOPLEVEL,
                     slice_cstr(s->user), SLICE("info"));
        return 403;
    }
    v->sees_slowlog = may_run(s, "slowlog", "get");
    v->sees_keys = may_see_keys(s);
    return 200;
}

/* Without a word the default user is who it is, as for whoever connects. */
static bool is_let_in_unasked(const struct session *s, const struct http_peer *peer)
{
    bool has_token = metrics_settings.token && metrics_settings.token[0];
    return s->authenticated && !has_token && (peer->local || !net_settings.protected_mode);
}

static int check_basic(struct session *s, struct slice credentials, struct visitor *v)
{
    char bytes[CREDENTIALS_MAX_BYTES + 4];
    struct slice user, password;
    int status = 401;
    if (decode(credentials, bytes, &user, &password)) {
        if (user.len == 0 && is_token(password)) {
            *v = (struct visitor){.sees_slowlog = true, .sees_keys = true};
            status = 200;
        } else if (auth_check(s, user, password)) {
            status = admit_user(s, v);
        } else {
            acl_log_note(s, command_find_full(SLICE("auth")), ACL_DENIED_AUTH, ACL_CONTEXT_TOPLEVEL,
                         user, SLICE("metrics"));
        }
    }
    OPENSSL_cleanse(bytes, sizeof(bytes));
    return status;
}

int access_check(const struct http_request *request, const struct http_peer *peer,
                 struct visitor *v, struct evkeyvalq *fields)
{
    struct session s;
    struct slice credentials;
    int status = 401;
    *v = (struct visitor){.sees_slowlog = false};
    session_init(&s, session_next_id());
    snprintf(s.peer, sizeof(s.peer), "%s", peer->address);
    if (has_scheme(request->authorization, "bearer", &credentials)) {
        if (is_token(credentials)) {
            *v = (struct visitor){.sees_slowlog = true, .sees_keys = true};
            status = 200;
        }
    } else if (has_scheme(request->authorization, "basic", &credentials)) {
        status = check_basic(&s, credentials, v);
    } else if (!request->authorization.ptr && is_let_in_unasked(&s, peer)) {
        status = admit_user(&s, v);
    }
    session_deinit(&s);
    if (status == 401) {
        evhttp_add_header(fields, "WWW-Authenticate", "Basic realm=\"keydb\", charset=\"UTF-8\"");
    }
    return status;
}
